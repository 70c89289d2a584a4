"""The statistics that compare the methods of the competition with those of the literature.

Figure 5 of the paper has seven methods of the competition on one side and five of the literature on
the other. Fine-tuning is the baseline, and on neither side. The finding is not about the mean of a
side: "several top methods outperform existing ones". So a method counts if it is ahead of every
method of the literature, and several methods are at least two. The table of methods says which side
a method is on (`source`).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.claims import DIFFERENCE
from palimpsest.estimates import Estimate
from palimpsest.statistics import CONFIDENCE, DECIMALS, student, student_p_value
from palimpsest.unlearning.claims.claim_statistics import (
    by_problem_and_column,
    mean_of_own,
    of_first_setup,
    own,
    per_problem,
    statistic,
)
from palimpsest.unlearning.run.setups import COMPETITION, LITERATURE
from palimpsest.unlearning.tuning.jobs import DIRECT, LIGHT

SEVERAL = 2  # methods
OVER = "seeds, in every pair of methods"


def differences(values: pd.Series, sources: Mapping[str, str]) -> pd.Series:
    """Each competition's method minus each literature's; the index has the two names of a pair."""
    sides = side_of(values.index, sources)
    pairs = pd.MultiIndex.from_product(
        [values.index[sides == COMPETITION], values.index[sides == LITERATURE]]
    )
    ones, others = pairs.get_level_values(0), pairs.get_level_values(1)
    return pd.Series(values[ones].to_numpy() - values[others].to_numpy(), pairs, dtype=float)


def side_of(methods: Iterable[str], sources: Mapping[str, str]) -> np.ndarray:
    return np.array([sources.get(method, "") for method in methods], dtype=object)


def margin_of_rank(
    of_problem: Callable[..., pd.Series],
    arguments: Mapping,
    table: pd.DataFrame,
    rank: int | None = None,
) -> Estimate:
    """A margin of a competition's method over the literature's best method, by its rank.

    The margin of a method is the smallest of its mean differences to the literature's methods. At
    least `rank` methods are ahead only if the margin of this rank is above 0; the largest has rank
    1. None stands for the smallest margin: all are ahead only if it is above 0. The p-value is of
    this.
    """
    methods = own(pd.Series(0, table["method"].unique())).index
    remarks = remarks_on(methods, arguments["sources"])
    wide = by_problem_and_column(of_problem, table, **arguments)
    by_seed = wide.groupby(level="seed").mean()
    names = list(by_seed.columns.unique(0)) if by_seed.shape[1] else []
    rank = len(names) if rank is None else rank
    if not names or len(names) < rank or by_seed.isna().any(axis=None):
        return Estimate(remarks=remarks)
    pairs = np.stack([by_seed[name].to_numpy().T for name in names])
    means = pairs.mean(axis=2)
    place = np.argsort(-means.min(axis=1), kind="stable")[rank - 1]
    values = pairs[place, means[place].argmin()]
    ahead = [name for name, mean in zip(names, means.min(axis=1), strict=True) if mean > 0]
    lower, upper = interval_of_margin(pairs, rank)
    return Estimate(
        tuple(values),
        values.mean(),
        lower,
        upper,
        OVER,
        models=by_model(wide, rank),
        remarks=(f"ahead of all of the literature's: {', '.join(ahead) or 'none'}", *remarks),
        p_value=p_of_margin(pairs, rank),
    )


def by_model(wide: pd.DataFrame, rank: int) -> dict[str, float]:
    """The margin of a rank in each model; `wide` is float[problems, pairs]."""
    means = wide.groupby(level="model").mean().T
    margins = means.groupby(level=0).min()
    return {model: margins[model].nlargest(rank).iloc[-1] for model in margins}


def remarks_on(methods: Iterable[str], sources: Mapping[str, str]) -> tuple[str, ...]:
    """The methods of each side, and those of neither, such as a method of the user's own."""
    methods, sides = np.array(methods, dtype=object), side_of(methods, sources)
    groups = {
        "competition": methods[sides == COMPETITION],
        "literature": methods[sides == LITERATURE],
        "on neither side": methods[(sides != COMPETITION) & (sides != LITERATURE)],
    }
    return tuple(f"{side}: {', '.join(names) or 'none'}" for side, names in groups.items())


# In all that follows, `pairs` holds differences float[competition, literature, seeds]. A difference
# that is the same in all seeds, such as that of two methods without any quality, says nothing.


def ends_of(pairs: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Student's intervals of the differences, float[competition, literature] each."""
    intervals = [[student(own, DECIMALS, confidence)[1:] for own in method] for method in pairs]
    lower, upper = np.moveaxis(np.array(intervals), 2, 0)
    alike = lower == upper
    return np.where(alike, -np.inf, lower), np.where(alike, np.inf, upper)


def interval_of_margin(pairs: np.ndarray, rank: int) -> tuple[float, float]:
    """The interval of the margin of a rank; NaN for one seed.

    Only the smallest true difference of a method can be below its own lower end, so the lower end
    of a margin is the smallest lower end, without a correction. If the margin of rank k is 0, at
    most k - 1 of n margins are above 0, so one of the n - k + 1 others would have to be found
    wrongly: lower ends are corrected for n - k + 1 (Bonferroni). The k-th largest of the upper ends
    is too low only if that of one of the k best methods is, and this is corrected for k, and for
    the number of the literature's methods, because the smallest of several differences is low by
    chance.

    Source: the intersection-union test (Berger, Technometrics 24, 1982) in each method, and a
    partial conjunction over the methods (Benjamini and Heller, Biometrics 64, 2008).
    """
    n_methods, n_others, _ = pairs.shape
    error = 1 - CONFIDENCE
    lower, _ = ends_of(pairs, 1 - error / (n_methods - rank + 1))
    _, upper = ends_of(pairs, 1 - error / (rank * n_others))
    return tuple(np.sort(ends.min(axis=1))[-rank] for ends in (lower, upper))


def p_of_margin(pairs: np.ndarray, rank: int) -> float:
    """The two-sided p-value of 0 as the margin of a rank, by the rules of the interval."""
    n_methods, n_others, _ = pairs.shape
    two_sided = np.array([[student_p_value(own, 0.0) for own in method] for method in pairs])
    up = pairs.mean(axis=2) > 0
    above, below = (np.where(side, two_sided / 2, 1 - two_sided / 2) for side in (up, ~up))
    above, below = (np.nan_to_num(p_values, nan=1.0) for p_values in (above, below))
    ahead = (n_methods - rank + 1) * np.sort(above.max(axis=1))[rank - 1]
    behind = rank * n_others * np.sort(below.min(axis=1))[-rank]
    return float(min(1.0, 2 * ahead, 2 * behind))


several_ahead = partial(margin_of_rank, rank=SEVERAL)
AHEAD = (
    "{} of a method of the competition minus that of the best method of the literature, of the "
    "method with the second largest difference (so that at least two are ahead)"
)


@statistic(
    "unlearning_tests",
    AHEAD.format("forgetting quality"),
    limits=DIFFERENCE,
    estimator=several_ahead,
)
def competition_forgets_more(tests: pd.DataFrame, sources: Mapping[str, str]) -> pd.Series:
    return differences(tests.set_index("method")["forgetting_quality"], sources)


UTILITY_OF_SCORE = {
    "final_score": "",
    "final_score_probability": "; utility is the mean probability of tokens in the place of the "
    "share of right tokens",
}


@statistic(
    "unlearning_scores",
    lambda score: AHEAD.format("final score") + UTILITY_OF_SCORE[score],
    estimator=several_ahead,
)
def competition_scores_more(
    scores: pd.DataFrame, score: str, sources: Mapping[str, str]
) -> pd.Series:
    return differences(of_first_setup(scores, score).mean(), sources)


# Another problem (Q5)

OF_OTHER_PROBLEM = (
    "on another problem with light tuning, the final score of a method of the competition minus "
    "that of the best method of the literature, of the method with the {} difference"
)


def score_by_tuning(transfer: pd.DataFrame, tuning: str) -> pd.Series:
    return transfer[transfer["tuning"] == tuning].set_index("method")["final_score"]


@statistic(
    "unlearning_transfer",
    OF_OTHER_PROBLEM.format("largest"),
    estimator=partial(margin_of_rank, rank=1),
)
def one_transfers(transfer: pd.DataFrame, sources: Mapping[str, str]) -> pd.Series:
    return differences(score_by_tuning(transfer, LIGHT), sources)


@statistic("unlearning_transfer", OF_OTHER_PROBLEM.format("smallest"), estimator=margin_of_rank)
def all_transfer(transfer: pd.DataFrame, sources: Mapping[str, str]) -> pd.Series:
    return differences(score_by_tuning(transfer, LIGHT), sources)


@statistic(
    "unlearning_transfer",
    "final score on another problem with light tuning minus that without, mean over the methods",
)
@per_problem
def light_tuning_helps(transfer: pd.DataFrame) -> float:
    light, direct = (score_by_tuning(transfer, tuning) for tuning in (LIGHT, DIRECT))
    return mean_of_own(light - direct)
