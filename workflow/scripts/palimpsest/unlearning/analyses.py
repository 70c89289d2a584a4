"""Which strings are hard to forget, whether methods agree on them, and the tuning of methods."""

import itertools
import json
from collections.abc import Iterable

import numpy as np
import pandas as pd

from palimpsest.unlearning.kinds import AGREEMENT, TUNING
from palimpsest.unlearning.samples import Problem, UnlearnedModels
from palimpsest.unlearning.scores import Evaluation, Retraining, Rules
from palimpsest.unlearning.setups import ENDS

# Means over repetitions of equal epsilons differ by rounding errors. Values that are equal to this
# number of decimals count as ties.
DECIMALS = 9
FEWEST_STRINGS = 3  # two points always correlate perfectly


def mean_epsilons(epsilons: pd.DataFrame, setup: str) -> pd.DataFrame:
    """Mean epsilons [strings, methods] over the repetitions of a set-up, without the two ends.

    Strings and methods are in the order of the table `epsilons`.
    """
    inside = epsilons[(epsilons["setup"] == setup) & ~epsilons["method"].isin(ENDS)]
    means = inside.pivot_table("epsilon", "string_id", "method", aggfunc="mean", sort=False)
    strings = epsilons["string_id"].unique()
    return means.reindex(index=strings, columns=inside["method"].unique()).round(DECIMALS)


def hardness(problem: Problem, epsilons: pd.DataFrame) -> pd.DataFrame:
    """The table `unlearning_hardness`: the sum over all methods of the epsilon of each string.

    The epsilons come from the first set-up. `loss_gap` is the loss of the retrained models minus
    the loss of the original models: a method has to raise the loss by this amount.

    Source: Are we making progress in unlearning?, section A.9, figure 14.
    """
    means = mean_epsilons(epsilons, problem.setups[0].name)
    forgotten = problem.strings[problem.forget].set_index("string_id")
    loss_gap = problem.reference.loss.mean(axis=0) - problem.originals.loss.mean(axis=0)
    frame = pd.DataFrame(
        {
            **problem.keys,
            "string_id": forgotten.index,
            "count": forgotten["count"].to_numpy(),
            "log_prob": forgotten["log_prob"].to_numpy(),
            "epsilon_sum": means.reindex(forgotten.index).sum(axis=1).to_numpy(),
            "n_methods": means.shape[1],
            "loss_gap": loss_gap[problem.forget],
        }
    )
    return frame.sort_values("epsilon_sum", ascending=False, kind="stable", ignore_index=True)


def agreement(problem: Problem, epsilons: pd.DataFrame) -> pd.DataFrame:
    """The table `unlearning_agreement`: correlations over the strings between pairs of methods.

    A correlation is undefined for fewer than 3 strings, or if all epsilons of a method are equal.

    Source: Are we making progress in unlearning?, section A.9, figure 15.
    """
    means = mean_epsilons(epsilons, problem.setups[0].name)
    spread = means.nunique() > 1
    linear, of_ranks = (means.corr(kind, FEWEST_STRINGS) for kind in ("pearson", "spearman"))
    rows = [
        {
            **problem.keys,
            "method": one,
            "other": other,
            "n_strings": len(means),
            "pearson": linear.loc[one, other] if spread[one] and spread[other] else np.nan,
            "spearman": of_ranks.loc[one, other] if spread[one] and spread[other] else np.nan,
        }
        for one, other in itertools.combinations(means.columns, 2)
    ]
    return pd.DataFrame(rows, columns=AGREEMENT.names)


def tuning(
    problem: Problem,
    points: Iterable[UnlearnedModels],
    settings: dict[str, dict],
    rules: Rules,
    cost: Retraining,
) -> pd.DataFrame:
    """The table `unlearning_tuning`: the points of the methods' grids, each method's best first.

    Parameters
    ----------
    points : iterable of UnlearnedModels, one per point of a grid; the two ends are skipped
    settings : dict of point -> {"method": the point's method, "settings": the values that it sets}

    Points are sorted by their final score: the mean over the repetitions of the first set-up. A
    point that exceeds the cutoff in any repetition comes after all points that never exceed it.

    Source: Are we making progress in unlearning?, section 6, Q5.
    """
    setup = problem.setups[0]
    rows = []
    for point in points:
        if point.name in ENDS:
            continue
        evaluation = Evaluation(problem, point, rules)
        found = [
            evaluation.repetition(setup, repetition, cost)[1]
            for repetition in range(setup.repetitions)
        ]
        rows.append(
            {
                **problem.keys,
                "method": settings[point.name]["method"],
                "point": point.name,
                "settings": json.dumps(settings[point.name]["settings"]),
                "forgetting_quality": np.mean([row["forgetting_quality"] for row in found]),
                "final_score": np.mean([row["final_score"] for row in found]),
                "within_cutoff": all(row["within_cutoff"] for row in found),
            }
        )
    order = {name: place for place, name in enumerate(dict.fromkeys(r["method"] for r in rows))}
    rows.sort(key=lambda row: (order[row["method"]], not row["within_cutoff"], -row["final_score"]))
    return pd.DataFrame(rows, columns=TUNING.names)
