"""The statistics that test the claims on rankings of methods and on ways of evaluating.

Two noisy rankings of the same methods never agree wholly, so the share of the pairs of methods in
the same order says little by itself. From this share, the share on which two repetitions of the
reference agree is subtracted. If an evaluation ranks methods as well as another repetition of the
reference does, the expected difference is 0. `claim_statistics.py` explains the intervals.

If two repetitions of the reference agree hardly better than by chance, any ranking would do as
well. Then there is no interval.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.claims import DIFFERENCE, NOT_NEGATIVE
from palimpsest.estimates import Estimate
from palimpsest.statistics import DECIMALS, pair_order
from palimpsest.unlearning.claims.claim_statistics import (
    FEWEST_METHODS,
    Values,
    mean_of_own,
    of_first_setup,
    over_problems,
    own,
    per_problem,
    statistic,
    within_in_every_method,
)
from palimpsest.unlearning.evaluate.placebos import FORGET
from palimpsest.unlearning.run.setups import FULL, NONE, RETRAIN, REUSE_N_1, REUSE_N_N

OUTSIDE = -1  # the number of a value that is compared with all repetitions
# Repetitions of the reference have to agree on more than this share of pairs; chance is 0.5.
KNOWN_ORDER = 0.6


def share_alike(one: pd.DataFrame, other: pd.DataFrame) -> float:
    """Share of the pairs of methods in the same order, mean over pairs of repetitions.

    `one` and `other` are float[repetitions, methods] with the same methods. Only repetitions with
    different numbers are compared: those with equal numbers can share models. A tie counts half.
    NaN if there are no such repetitions.
    """
    n = one.shape[1]
    orders = [[pair_order(row) for row in side.round(DECIMALS).to_numpy()] for side in (one, other)]
    found = [
        (1 + (first * second).sum() / (n * (n - 1))) / 2
        for number, first in zip(one.index, orders[0], strict=True)
        for other_number, second in zip(other.index, orders[1], strict=True)
        if number != other_number
    ]
    return float(np.mean(found)) if found else np.nan


def compared(one: pd.DataFrame, reference: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables float[repetitions, methods] with the methods that both define, without ends."""
    names = [
        name
        for name in own(reference.mean(skipna=False)).dropna().index
        if name in one and one[name].notna().all()
    ]
    return one[names], reference[names]


def of_pairs(of: Callable[[pd.DataFrame, pd.DataFrame], float]) -> Callable[..., float]:
    """A function of an evaluation and its reference; NaN for fewer than 3 methods."""

    def of_both(one: pd.DataFrame, reference: pd.DataFrame) -> float:
        one, reference = compared(one, reference)
        return of(one, reference) if one.shape[1] >= FEWEST_METHODS else np.nan

    return of_both


ALONE, CEILING, BEYOND = "alone", "ceiling", "beyond"
AGREEMENT = {
    ALONE: of_pairs(share_alike),
    CEILING: of_pairs(lambda one, reference: share_alike(reference, reference)),
    BEYOND: of_pairs(
        lambda one, reference: share_alike(one, reference) - share_alike(reference, reference)
    ),
}


def beyond_ceiling(agree: Values, arguments: Mapping, *frames: pd.DataFrame) -> Estimate:
    """An agreement with a reference beyond that of the reference with itself.

    The share of pairs in the same order and that of the reference with itself are remarks. There is
    no interval if the latter is not certainly above `KNOWN_ORDER`.
    """
    alone, ceiling = (partial(agree, agreement=name, **arguments) for name in (ALONE, CEILING))
    context = {"share of pairs in the same order": alone, "of two repetitions": ceiling}
    found = over_problems(agree, arguments, *frames, context=context)
    if not found.values or over_problems(ceiling, {}, *frames).lower > KNOWN_ORDER:
        return found
    return found.without_interval("the repetitions do not certainly agree on an order")


def ranking(reads: str, words: str) -> Callable:
    """Declare a statistic of the pairs of methods that are ordered alike."""
    text = (
        f"share of the pairs of methods that {words}, minus that of two repetitions of the latter"
    )
    return statistic(reads, text, limits=DIFFERENCE, estimator=beyond_ceiling)


# Set-ups.


def of_setup(scores: pd.DataFrame, setup: str) -> pd.DataFrame:
    """Forgetting quality float[repetitions, methods] under a set-up."""
    rows = scores[scores["setup"] == setup]
    return rows.pivot(index="repetition", columns="method", values="forgetting_quality")


@statistic(
    "unlearning_scores",
    "largest distance over the methods between forgetting quality under {setup} and under full, as "
    "a share of the distance between doing nothing and retraining under full",
    limits=NOT_NEGATIVE,
    estimator=within_in_every_method,
)
def distance_from_full(scores: pd.DataFrame, setup: str) -> pd.Series:
    """Forgetting quality under a set-up minus that under full, for each method.

    The difference is relative to the distance between doing nothing and retraining, which depends
    on the number of models. Undefined if retraining is not better than doing nothing.
    """
    full, cheap = of_setup(scores, FULL).mean(), of_setup(scores, setup).mean()
    whole = full.get(RETRAIN, np.nan) - full.get(NONE, np.nan)
    found = own(cheap - full)
    if found.isna().all() or not whole > 0:
        return pd.Series(dict.fromkeys([*found.index, "no methods"], np.nan))
    return found / whole


@ranking("unlearning_scores", "{setup} orders by forgetting quality as full does")
@per_problem
def setup_ranks_as_full(scores: pd.DataFrame, setup: str, agreement: str = BEYOND) -> float:
    """Agreement of a cheap set-up's ranking by forgetting quality with that of full.

    The models of a cheap set-up are those of the first repetition of full. So all its repetitions
    have the number 0, and are compared with the other repetitions of full.
    """
    full, cheap = of_setup(scores, FULL), of_setup(scores, setup)
    return AGREEMENT[agreement](cheap.set_axis([0] * len(cheap)), full)


@statistic(
    "unlearning_effects unlearning_scores",
    "distance of the forgetting quality from that under full when the bootstrap draws from the "
    "smallest pool, minus the same for the largest pool, mean over the methods",
    limits=DIFFERENCE,
)
@per_problem
def larger_pools_are_nearer(effects: pd.DataFrame, scores: pd.DataFrame) -> float:
    """How much nearer to full the bootstrap is with the largest pool than with the smallest.

    The pools are parts of the models of full.
    """
    full = of_setup(scores, FULL).mean()
    rows = effects[effects["effect"] == "pool"]
    pools = rows.pivot_table(index="level", columns="method", values="forgetting_quality")
    if full.empty or len(pools) < 2:
        return np.nan
    distance = (pools - full.reindex(pools.columns)).abs()
    return mean_of_own(distance.loc[pools.index.min()] - distance.loc[pools.index.max()])


# Attackers.


def of_attacker(effects: pd.DataFrame, effect: str, attacker: str, value: float) -> pd.DataFrame:
    """Forgetting quality float[repetitions, methods] under some attackers."""
    rows = effects[(effects["effect"] == effect) & (effects["attacker"] == attacker)]
    rows = rows[rows["level"] == value]
    return rows.pivot(index="repetition", columns="method", values="forgetting_quality")


def most(effects: pd.DataFrame, effect: str) -> float:
    return effects.loc[effects["effect"] == effect, "level"].max()


def both_attackers(effects: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Forgetting quality if attackers are judged on the models of their fit, and on others."""
    n = most(effects, "attacker")
    return tuple(of_attacker(effects, "attacker", name, n) for name in ("same", "held-out"))


@statistic(
    "unlearning_effects",
    "forgetting quality under held-out attackers minus that under attackers on "
    "the models that they were fitted on, mean over the methods",
    limits=DIFFERENCE,
)
@per_problem
def overfitted(effects: pd.DataFrame) -> float:
    """How much lower the quality is if attackers are judged on the models of their fit."""
    same, held_out = both_attackers(effects)
    return mean_of_own((held_out - same).mean())


@ranking(
    "unlearning_effects",
    "these attackers order by forgetting quality as held-out attackers do",
)
@per_problem
def attackers_rank_alike(effects: pd.DataFrame, agreement: str = BEYOND) -> float:
    """Agreement of the ranking by attackers on their own models with that by held-out attackers."""
    return AGREEMENT[agreement](*both_attackers(effects))


@ranking(
    "unlearning_effects",
    "the fewest models to judge held-out attackers order by forgetting quality as the most models "
    "do",
)
@per_problem
def fewer_models_rank_alike(effects: pd.DataFrame, agreement: str = BEYOND) -> float:
    """Agreement of the rankings when the fewest and when the most models judge attackers."""
    values = effects.loc[effects["effect"] == "n", "level"]
    if values.nunique() < 2:
        return np.nan
    sides = (of_attacker(effects, "n", "held-out", of) for of in (values.min(), values.max()))
    return AGREEMENT[agreement](*sides)


# Other metrics.

GAPS = {"accuracy gap": "accuracy_gap", "membership inference gap": "mia_gap"}


def one_row(values: pd.Series, scores: pd.DataFrame) -> pd.DataFrame:
    """Values of methods over the models of `Problem.stock`, as float[1, methods].

    Where the first set-up uses the same original models in all repetitions, these models are those
    of repetition 0. So the values have the number 0, and are compared with the other repetitions.
    Under the other set-ups, the models are those of all repetitions together.
    """
    first = scores["setup"].iloc[0]
    return values.to_frame(0 if first in (REUSE_N_N, REUSE_N_1) else OUTSIDE).T


@ranking("unlearning_metrics unlearning_scores", "the {gap} orders as the forgetting quality does")
@per_problem
def gap_ranks_as_quality(
    metrics: pd.DataFrame, scores: pd.DataFrame, gap: str, agreement: str = BEYOND
) -> float:
    """Agreement of a gap to retrained models, where smaller is better, with forgetting quality."""
    gaps = metrics[metrics["metric"] == GAPS[gap]].set_index("method")["estimate"]
    quality = of_first_setup(scores, "forgetting_quality")
    return AGREEMENT[agreement](one_row(-gaps, scores), quality)


@ranking(
    "unlearning_gap_summary unlearning_scores",
    "the distance of the share from 1 orders as the forgetting quality does",
)
@per_problem
def share_ranks_as_quality(
    summary: pd.DataFrame, scores: pd.DataFrame, agreement: str = BEYOND
) -> float:
    """Agreement of how near the share of the gap closed is to 1 with forgetting quality."""
    share = summary[summary["string_role"] == FORGET].set_index("method")["share"]
    quality = of_first_setup(scores, "forgetting_quality")
    return AGREEMENT[agreement](one_row(-abs(share - 1), scores), quality)
