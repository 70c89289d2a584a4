"""The table `information`: means over neurons and pairs, and what else is known of each run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest import traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.information.intervention_data import AGREES, DISAGREES
from palimpsest.information.interventions import percent_marked, percent_shuffled
from palimpsest.information.kinds import COMPARED, INFORMATION, MARKERS, SHUFFLES
from palimpsest.information.measured import means
from palimpsest.making import makes, reads
from palimpsest.memorisation.measures import bayes
from palimpsest.memorisation.runs import per_token, restrict
from palimpsest.traces import Trace


@dataclass(frozen=True)
class Results:
    """The tables of one run: its dataset, its trace, and what is measured of its model."""

    strings: pd.DataFrame
    trace: Trace
    answers: pd.DataFrame
    norms: pd.DataFrame
    neurons: pd.DataFrame
    pairs: pd.DataFrame


@reads(datasets=[STRINGS], traces=[traces.read], **{kind.name: [kind] for kind in COMPARED})
@makes(INFORMATION)
def information_table(
    datasets: Sequence[pd.DataFrame],
    traces: Sequence[Trace],
    answers: Sequence[pd.DataFrame],
    norms: Sequence[pd.DataFrame],
    neurons: Sequence[pd.DataFrame],
    pairs: Sequence[pd.DataFrame],
    n_layers: int,
) -> pd.DataFrame:
    """The table `information` of the runs of one model.

    Parameters
    ----------
    datasets, traces, answers, norms, neurons, pairs : of every run, in the same order
    n_layers : blocks of the model
    """
    runs = zip(datasets, traces, answers, norms, neurons, pairs, strict=True)
    parts = [of_run(Results(*run)) for run in runs]
    return pd.concat(parts, ignore_index=True).assign(n_layers=n_layers)[INFORMATION.names]


def of_run(run: Results) -> pd.DataFrame:
    """One row for each site and position."""
    about = {**run.trace.run, **intervention(run.trace.run["variant"])}
    return means(run.neurons, run.pairs).assign(
        **about,
        **accuracies(run.answers),
        **at_the_end(run),
        two_norm=run.norms["two_norm"].iloc[0],
        frobenius=run.norms["frobenius"].iloc[0],
    )


def intervention(variant: str) -> dict[str, str | float]:
    """What the training strings of a variant have, and the share of those that have it."""
    if (alpha := percent_marked(variant)) is not None:
        return {"intervention": MARKERS, "share": alpha / 100}
    return {"intervention": SHUFFLES, "share": percent_shuffled(variant) / 100}


def accuracies(answers: pd.DataFrame) -> dict[str, float]:
    """The number of answers, and the share of right ones: of all, and by whether markers agree."""
    right = answers["is_right"].to_numpy(dtype=float)
    role = answers["role"].to_numpy(dtype=object, na_value=None)
    found = {"n_answers": len(right), "accuracy": right.mean()}
    for name in (AGREES, DISAGREES):
        own = right[role == name]
        found[f"accuracy_{name}"] = own.mean() if len(own) else np.nan
    return found


def at_the_end(run: Results) -> dict[str, float]:
    """Losses at the end of training, and the shares of strings below their Bayes-optimal loss.

    A trained string below it is memorised, or the model is sure of too much. The held-out strings
    tell how many are below it without having been trained on.
    """
    trace, counts = restrict(run.trace, run.strings), run.strings["count"].to_numpy()
    tests = run.strings["test_count"].to_numpy()
    held_out = (run.strings["split"] == "held_out").to_numpy()
    optimal = run.strings["optimal_loss"].to_numpy()
    return {
        "train_loss": per_token(trace.nll[-1], trace, counts),
        "test_loss": per_token(trace.nll[-1], trace, tests),
        "memorised": share_below(trace.loss[-1:], optimal, counts > 0),
        "memorised_unseen": share_below(trace.loss[-1:], optimal, held_out),
    }


def share_below(loss: np.ndarray, optimal: np.ndarray, which: np.ndarray) -> float:
    """The share of some strings whose loss is below the Bayes-optimal loss; NaN if none has one.

    Parameters
    ----------
    loss : float[1, strings], nats per token
    optimal : float[strings], nats per token; NaN for a string that the language does not have
    which : bool[strings]
    """
    known = which & np.isfinite(optimal)
    if not known.any():
        return np.nan
    return float(bayes(loss[:, known], optimal[known]).memorised.mean())
