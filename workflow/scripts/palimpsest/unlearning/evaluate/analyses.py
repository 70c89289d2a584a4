"""Which strings are hard to forget and whether methods agree on them."""

import itertools

import numpy as np
import pandas as pd

from palimpsest.statistics import with_exact_ties
from palimpsest.unlearning.attacks.quality import largest_epsilon
from palimpsest.unlearning.evaluate.samples import Problem
from palimpsest.unlearning.kinds import AGREEMENT
from palimpsest.unlearning.run.setups import ENDS, Setup

# Means over repetitions of equal epsilons differ by rounding errors. Values that are equal to this
# number of decimals count as ties.
DECIMALS = 9
FEWEST_STRINGS = 3  # two points always correlate perfectly


def mean_epsilons(epsilons: pd.DataFrame, setup: Setup) -> pd.DataFrame:
    """Mean epsilons [strings, methods] over the repetitions of a set-up, without the two ends.

    Epsilons are clipped at the largest that the set-up's n models can show. The cap of 50 is a
    convention, and one string on it would decide sums and correlations alone. Strings and methods
    are in the order of the table `epsilons`.
    """
    inside = epsilons[(epsilons["setup"] == setup.name) & ~epsilons["method"].isin(ENDS)]
    inside = inside.assign(epsilon=inside["epsilon"].clip(upper=largest_epsilon(setup.n)))
    means = inside.pivot_table("epsilon", "string_id", "method", aggfunc="mean", sort=False)
    means = pd.DataFrame(with_exact_ties(means), means.index, means.columns)
    strings = epsilons["string_id"].unique()
    return means.reindex(index=strings, columns=inside["method"].unique()).round(DECIMALS)


def hardness(problem: Problem, epsilons: pd.DataFrame) -> pd.DataFrame:
    """The table `unlearning_hardness`: the sum over all methods of the epsilon of each string.

    The epsilons come from the first set-up, see `mean_epsilons`. `loss_gap` is the loss of the
    retrained models minus the loss of the original models: a method has to raise the loss by this
    amount.

    Source: Are we making progress in unlearning?, section A.9, figure 14.
    """
    means = mean_epsilons(epsilons, problem.setups[0])
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

    The epsilons come from the first set-up, see `mean_epsilons`. A correlation is undefined for
    fewer than 3 strings, or if all epsilons of a method are equal.

    Source: Are we making progress in unlearning?, section A.9, figure 15.
    """
    means = mean_epsilons(epsilons, problem.setups[0])
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
