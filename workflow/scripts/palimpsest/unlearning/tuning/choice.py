"""The choice of the settings of methods, from a search over points of their grids.

The problems of the search are in no evaluation. The criterion compares forget strings with the
retrained models of these problems, so the retrained models of an evaluation stay unseen.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from palimpsest import tables
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.making import makes, reads
from palimpsest.unlearning.attacks.confidence import logit_scaled_confidence
from palimpsest.unlearning.attacks.quality import final_score, forgetting_quality
from palimpsest.unlearning.attacks.thresholds import attacks
from palimpsest.unlearning.evaluate.rules import Rules
from palimpsest.unlearning.evaluate.samples import PROBLEM_KEYS, Predictions, read_trained
from palimpsest.unlearning.interventions import RETAIN
from palimpsest.unlearning.kinds import SEARCHED, TUNING
from palimpsest.unlearning.methods.sets import MOST_UNSEEN, UNSEEN
from palimpsest.unlearning.methods.sets import RETAIN as RETAINED
from palimpsest.unlearning.run.setups import NONE, retraining_steps

# Strings whose loss differs by less than this between original and retrained models say nothing.
LEAST_GAP = 1e-6
KEPT = (RETAINED, UNSEEN)  # the sets of strings that are not to be forgotten


@dataclass(frozen=True)
class SearchProblem:
    """What the criterion needs of a problem of the search.

    `retrained` holds the losses float64[models, forget strings] of the retrained models, nats per
    token, and `n_tokens` the length int[forget strings] of each string. `kept` is the mean
    probability of a token that retrained models give to the strings of each set of `KEPT`. `steps`
    is the number of training steps of one retraining.
    """

    string_ids: np.ndarray
    retrained: np.ndarray
    n_tokens: np.ndarray
    kept: Mapping[str, float]
    steps: int


@reads(searched=SEARCHED, datasets=[STRINGS])
@makes(TUNING)
def choose(
    searched: pd.DataFrame,
    datasets: Sequence[pd.DataFrame],
    retrained: Sequence[str],
    methods: str,
    *,
    settings: Mapping[str, Mapping[str, dict]],
    phases: Mapping[str, Mapping[str, list[dict]]],
    epochs: int,
    batch_size: int,
    **rules,
) -> pd.DataFrame:
    """The points of all methods, each method's best first; writes the best of each to `methods`.

    Parameters
    ----------
    searched : all methods and problems
    datasets : one for each problem
    retrained : traces of the retrained models, equally many files for each problem
    methods : the table of methods (YAML) to write
    settings, phases : the values that every point sets, and its phases, by method
    epochs, batch_size : see `search_problem`
    rules : those of `Rules`
    """
    problems = problems_of(datasets, retrained, epochs, batch_size)
    by_method = {name: searched[searched["method"] == name] for name in settings}
    table = tuning(by_method, problems, settings, Rules(**rules))
    with tables.replacing(methods) as temporary:
        chosen = chosen_methods(phases, table)
        Path(temporary).write_text(yaml.safe_dump(chosen, sort_keys=False))
    return table


def problems_of(
    datasets: Sequence[pd.DataFrame], retrained: Sequence[str], epochs: int, batch_size: int
) -> dict[tuple, SearchProblem]:
    """What the criterion needs of every problem, by the values of `PROBLEM_KEYS`.

    `retrained` has equally many traces of each dataset.
    """
    problems = {}
    n_files = len(retrained) // len(datasets)
    for number, strings in enumerate(datasets):
        files = retrained[number * n_files : (number + 1) * n_files]
        predicted = read_trained(files, RETAIN, strings["string_id"].to_numpy(dtype=object))
        key = tuple(predicted.problem[name] for name in PROBLEM_KEYS)
        problems[key] = search_problem(strings, predicted, epochs, batch_size)
    return problems


def tuning(
    searched: Mapping[str, pd.DataFrame],
    problems: Mapping[tuple, SearchProblem],
    settings: Mapping[str, Mapping[str, dict]],
    rules: Rules,
) -> pd.DataFrame:
    """The table `unlearning_tuning`: every point, each method's points together, best first.

    The criterion is the final score of the paper, with probabilities as utility, in the mean over
    the problems. A point is allowed if it stays within the cut-off. The allowed point with the
    highest score is chosen; of equal ones, the one with the smaller distance left. This distance is
    sum |after - retrained| / sum |before - retrained| over the forget strings, where each loss is a
    mean over models. A method without an allowed point should get a warning in the table of
    methods.

    Parameters
    ----------
    searched : tables of kind `unlearning_searched`, by method, with all problems stacked; the point
        `none` holds the original models
    problems : by the values of `PROBLEM_KEYS`
    settings : for every method, the values that each point sets
    rules : how forgetting is scored
    """
    rows = [
        {
            "method": method,
            "point": point,
            "settings": json.dumps(settings[method][point]),
            **of_point(rows, table[table["point"] == NONE], problems, rules),
        }
        for method, table in searched.items()
        for point, rows in table.groupby("point", sort=False)
        if point != NONE
    ]
    found = pd.DataFrame(rows)
    found["place"] = found["method"].map({name: n for n, name in enumerate(searched)})
    found = found.sort_values(
        ["place", "allowed", "final_score", "distance_left"],
        ascending=[True, False, False, True],
        kind="stable",
    )
    found["chosen"] = ~found["method"].duplicated()
    return found.reset_index(drop=True)[TUNING.names]


def of_point(
    rows: pd.DataFrame,
    originals: pd.DataFrame,
    problems: Mapping[tuple, SearchProblem],
    rules: Rules,
) -> dict[str, float]:
    before = dict(list(originals.groupby(PROBLEM_KEYS)))
    each = [
        _on_problem(group, before[key], problems[key], rules)
        for key, group in rows.groupby(PROBLEM_KEYS, sort=False)
    ]
    means = {name: float(np.mean([found[name] for found in each])) for name in each[0]}
    within = all(found["steps_share"] <= rules.cutoff for found in each)
    return {**means, "n_problems": len(each), "allowed": bool(within)}


def _on_problem(
    rows: pd.DataFrame, originals: pd.DataFrame, problem: SearchProblem, rules: Rules
) -> dict[str, float]:
    """How a point did on one problem; its scores are 0 if a loss is not finite."""
    losses = _losses(rows, problem)
    before, after = _losses(originals, problem).mean(axis=0), losses.mean(axis=0)
    retrained = problem.retrained.mean(axis=0)
    way = retrained - before
    if np.abs(way).sum() < LEAST_GAP:
        raise UserError(
            "the original and the retrained models of a problem of the search know its forget "
            "strings equally well; give unlearning/search other languages or seeds"
        )
    quality = _quality(losses, problem, rules)
    return {
        "forgetting_quality": quality,
        "final_score": _final_score(quality, rows, problem),
        "distance_left": np.abs(after - retrained).sum() / np.abs(way).sum(),
        "gap_closed": (after - before).sum() / way.sum(),
        "retain_ratio": rows["retain_loss"].mean() / originals["retain_loss"].mean(),
        "unseen_ratio": rows["unseen_loss"].mean() / originals["unseen_loss"].mean(),
        "steps_share": rows["steps"].mean() / problem.steps,
    }


def _losses(rows: pd.DataFrame, problem: SearchProblem) -> np.ndarray:
    """Loss float64[models, forget strings] of the models of a point, nats per token."""
    wide = rows.pivot(index="origin", columns="string_id", values="loss")
    return wide[problem.string_ids].to_numpy()


def _quality(losses: np.ndarray, problem: SearchProblem, rules: Rules) -> float:
    """Forgetting quality of the models of a point; 0 if a loss is not finite."""
    if not np.isfinite(losses).all():
        return 0.0
    samples = (
        logit_scaled_confidence(loss * problem.n_tokens, problem.n_tokens, rules.confidence)
        for loss in (losses, problem.retrained)
    )
    epsilons = attacks(*samples, rules.delta, rules.thresholds).epsilon
    n_models = min(len(losses), len(problem.retrained))
    return forgetting_quality(epsilons, n_models, rules.bin_width)


def _final_score(quality: float, rows: pd.DataFrame, problem: SearchProblem) -> float:
    of_models = rows.drop_duplicates("origin")
    kept = ((np.exp(-of_models[f"{name}_loss"]).mean(), problem.kept[name]) for name in KEPT)
    return final_score(quality, *itertools.chain.from_iterable(kept))


def chosen_methods(
    phases: Mapping[str, Mapping[str, list[dict]]], table: pd.DataFrame
) -> dict[str, dict]:
    """A table of methods with the chosen point of every method in a table `unlearning_tuning`.

    `phases` holds the phases of every point, by method.
    """
    chosen = table[table["chosen"]].set_index("method")["point"]
    return {name: {"phases": phases[name][point]} for name, point in chosen.items()}


def search_problem(
    strings: pd.DataFrame, retrained: Predictions, epochs: int, batch_size: int
) -> SearchProblem:
    split, counts = strings["split"].to_numpy(), strings["count"].to_numpy()
    forget = split == "forget"
    kept = {
        RETAINED: np.repeat(np.flatnonzero(split == "train"), counts[split == "train"]),
        UNSEEN: np.flatnonzero(split == "test")[:MOST_UNSEEN],
    }
    return SearchProblem(
        strings.loc[forget, "string_id"].to_numpy(),
        retrained.loss[:, forget],
        retrained.n_tokens[forget],
        {name: _token_probability(retrained, rows) for name, rows in kept.items()},
        retraining_steps(epochs, int(counts[split == "train"].sum()), batch_size),
    )


def _token_probability(models: Predictions, rows: np.ndarray) -> float:
    """Geometric mean over the tokens of some strings, and mean over the models."""
    loss = models.nll[:, rows].sum(axis=1) / models.n_tokens[rows].sum()
    return float(np.exp(-loss).mean())
