"""Likelihoods of strings under a model and under the language, for runs of several models."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd

from palimpsest import traces
from palimpsest.datasets.choices import candidates
from palimpsest.errors import UserError
from palimpsest.memorisation.joins import RUN
from palimpsest.memorisation.runs import of_run, restrict, run_name
from palimpsest.token_losses import TokenLosses
from palimpsest.traces import Trace

TRAIN, UNSEEN = "train", "unseen"
ROUNDING = 1e-6  # nats, below which Bayes-optimal losses do not differ
Measured = TypeVar("Measured", Trace, TokenLosses)


@dataclass(frozen=True)
class Likelihoods:
    """Likelihoods of one group of strings in one run.

    `nll` is float[epochs, strings] in nats, under the model. `language_nll` is float[strings] in
    nats, under the language, for the same predicted tokens: without a predicted end, both are of
    all strings that begin so.
    """

    nll: np.ndarray
    language_nll: np.ndarray


def read_runs(
    paths: list[str],
    strings: pd.DataFrame,
    learning: pd.DataFrame,
    read: Callable[[str], Measured] = traces.read,
) -> Iterator[tuple[Measured, pd.DataFrame, int]]:
    """Every run's trace, its table `strings`, and its epoch of optimal learning.

    `strings` and `learning` are stacked tables of these kinds. `read` may read the losses of tokens
    in place of traces. One file is read at a time, because the files of all runs may not fit into
    memory together. Raises `UserError` if a run has no dataset or no learning, or if its dataset
    has no known probabilities.
    """
    datasets = dict(list(strings.groupby(RUN[1:], sort=False)))
    optima = learning.drop_duplicates(RUN).set_index(RUN)["optimal_epoch"].to_dict()
    for path in paths:
        trace = read(path)
        run = tuple(trace.run[name] for name in RUN)
        if run not in optima or run[1:] not in datasets:
            raise UserError(
                f"{path}: {run_name(trace.run)} has no table `strings` or `learning`; the tables "
                "are not of the same runs; make them anew"
            )
        yield trace, of_run(trace, datasets[run[1:]]), int(optima[run])


def by_group(trace: Trace, strings: pd.DataFrame) -> dict[str, Likelihoods]:
    """The likelihoods of the distinct training strings and, as their placebo, the unseen strings.

    Unseen strings are the distinct strings that may stand in: they were never trained on.
    """
    return {
        name: Likelihoods(
            restrict(trace, members).nll, (members["optimal_loss"] * members["n_tokens"]).to_numpy()
        )
        for name, members in members_of_groups(strings).items()
    }


def members_of_groups(strings: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {TRAIN: strings[strings["count"] > 0], UNSEEN: strings[candidates(strings)]}


def check_optimal_losses(losses: TokenLosses, strings: pd.DataFrame, loss: np.ndarray) -> None:
    """Raise `UserError` unless the dataset's Bayes-optimal losses are those of the grammar.

    `loss` float64[tokens] are those of all tokens of the strings under the grammar, in nats.
    """
    n_tokens = strings["n_tokens"].to_numpy()
    total = (strings["optimal_loss"] * n_tokens).sum()
    is_near = abs(loss.sum() - total) < ROUNDING * max(1, len(loss))
    if len(loss) != n_tokens.sum() or not is_near:
        raise UserError(
            f"{run_name(losses.run)}: the Bayes-optimal losses of its dataset are not those of the "
            "grammar; the dataset is of another grammar: delete it and rerun"
        )
