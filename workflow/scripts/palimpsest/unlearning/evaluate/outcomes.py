"""What became of every method, over all problems of one model and language.

A problem is a seed: it has training strings, a forget set and models of its own. A mean over
problems has Student's interval. With one problem, only the share of the gap closed has an interval:
that of its table, over strings and models.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest.estimates import clipped
from palimpsest.statistics import DECIMALS, Interval, student
from palimpsest.unlearning.evaluate.placebos import FORGET, PLACEBO, RETAINED
from palimpsest.unlearning.evaluate.samples import PROBLEM_KEYS
from palimpsest.unlearning.evaluate.verdicts import (
    Verdict,
    corrected_p_values,
    share_closed,
    verdict,
)
from palimpsest.unlearning.run.setups import ENDS, RETRAIN

# A share below this, of the forget strings, is shown as 0 %.
NOTHING = 0.005
# What a score can be. A final score can be slightly above 1, because utility can.
RANGES = {
    "forgetting_quality": (0, 1),
    "final_score": (0, np.inf),
    "final_score_probability": (0, np.inf),
}


@dataclass(frozen=True)
class Outcome:
    """One method, or one of the two ends, over the problems.

    Parameters
    ----------
    name : of the method
    n_problems : problems, tested or not
    verdict : told from retraining or not, and the share of the gap closed
    placebo, retained : share of the gap closed on placebos, and on retained strings
    reference : share of the gap that retraining closes on placebos; NaN if it is unknown
    spread : quartiles of the strings' shares of the gap (lower, upper), mean over the problems
    n_strings, n_clear : forget strings of all problems, and those with a clear gap
    tests : its rows of `unlearning_tests`
    p_values : float[problems], the smaller of the two tests' p-values, corrected (Holm)
    values : mean over the problems of a column of `unlearning_scores`, of `relative_quality`, and
        of the share of probability that is kept on retained and on test strings (`retain`, `test`)
    slow : it takes more steps than the cut-off allows
    """

    name: str
    n_problems: int
    verdict: Verdict
    placebo: Interval
    retained: Interval
    reference: Interval
    spread: tuple[float, float]
    n_strings: int
    n_clear: int
    tests: pd.DataFrame
    p_values: np.ndarray
    values: dict[str, Interval]
    slow: bool

    @property
    def is_end(self) -> bool:
        return self.name in ENDS

    @property
    def n_models(self) -> int | None:
        """Models of each kind in the smallest tested problem; None if nothing was tested."""
        return int(self.tests["n_models"].min()) if len(self.tests) else None

    @property
    def n_tested(self) -> int:
        """Forget strings of all tested problems."""
        return int(self.tests["n_strings"].sum())

    @property
    def closed(self) -> Interval:
        return self.verdict.closed

    @property
    def distance(self) -> float:
        """Distance from retraining: of the share on forget strings from 1, plus those on controls.

        On placebos and on retained strings, it is the distance from retraining's own share, or from
        0 if that is unknown. Without these parts, a method that raises the loss of all strings
        would look good. Infinite if no gap is clear.
        """
        if np.isnan(self.closed.mean):
            return np.inf
        damages = self.verdict.damage.mean, self.verdict.damage_to_retained.mean
        return abs(self.closed.mean - 1) + float(np.nansum(np.abs(damages)))


def outcomes(tests: pd.DataFrame, gaps: pd.DataFrame, scores: pd.DataFrame) -> list[Outcome]:
    """The outcome of every method in `scores`, nearest to retraining first, the slow ones last.

    All tables have only rows of one model and language; `scores` only of one set-up.
    """
    retrain = gaps[gaps["method"] == RETRAIN]
    found = [
        outcome(name, tests[tests["method"] == name], gaps[gaps["method"] == name], rows, retrain)
        for name, rows in scores.groupby("method", sort=False)
    ]
    return sorted(found, key=lambda one: (one.slow, one.distance))


def outcome(
    name: str,
    tests: pd.DataFrame,
    gaps: pd.DataFrame,
    scores: pd.DataFrame,
    retrain: pd.DataFrame,
) -> Outcome:
    tests = tests.dropna(subset=["p_value", "joint_p"])
    forget = gaps[gaps["string_role"] == FORGET]
    return Outcome(
        name,
        len(scores[PROBLEM_KEYS].drop_duplicates()),
        verdict(tests, gaps, scores, retrain),
        share_closed(gaps, PLACEBO),
        share_closed(gaps, RETAINED),
        share_closed(retrain, PLACEBO),
        (forget["lower_quartile"].mean(), forget["upper_quartile"].mean()),
        int(forget["n_strings"].sum()),
        int(forget["n_clear"].sum()),
        tests,
        corrected_p_values(tests),
        values(tests, scores),
        not scores["within_cutoff"].astype(bool).all(),
    )


def values(tests: pd.DataFrame, scores: pd.DataFrame) -> dict[str, Interval]:
    """Means over the problems, see `Outcome`; a problem counts once, whatever its repetitions."""
    kept = {
        which: scores[f"{which}_probability"] / scores[f"{which}_probability_retrained"]
        for which in ("retain", "test")
    }
    names = ["forgetting_quality", "final_score", "final_score_probability", "steps_share", *kept]
    of_problems = scores.assign(**kept).groupby(PROBLEM_KEYS, sort=False)[names].mean()
    given = {
        **{name: of_problems[name] for name in names},
        "relative_quality": tests["relative_quality"],
    }
    found = {name: over_problems(column) for name, column in given.items()}
    return {**found, **{name: clipped(found[name], ends) for name, ends in RANGES.items()}}


def over_problems(column: pd.Series) -> Interval:
    return student(column.dropna().to_numpy(dtype=float), DECIMALS)
