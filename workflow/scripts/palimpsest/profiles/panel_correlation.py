"""How alike the profiles of two panels are, without what errors add or take away.

Pearson's correlation of two estimated profiles, as in the paper, has two faults. Errors make it
smaller. Where both panels measure the same strings, common errors make it larger: it is then above
0 even where nothing is memorised. So the covariance of the errors is estimated by a multiplier
bootstrap over units, with the same signs for units of one name, and subtracted from the covariance
and from both variances.

Cells also have in common that effects fade with time since the treatment. Two models in which all
effects fade alike are then alike, even if the cohorts that one memorises say nothing about those
that the other one does. So the correlation is also given after the mean of the cells at each time
since the treatment is subtracted. All are of the cohorts of these panels: with few of them, it may
be high by chance.

Sources: Causal Estimation of Memorisation Profiles, section 7 and figure 6; for the correction,
Spearman, The proof and measurement of association between two things (1904).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from palimpsest.profiles.correlation import pearson, within
from palimpsest.profiles.effects import names_of
from palimpsest.profiles.kinds import AFTER, BEFORE
from palimpsest.profiles.panel import NEVER, Panel
from palimpsest.statistics import CONFIDENCE

N_DRAWS = 400
# Columns of a correlation and of the ends of its interval
ENDS = {
    "corrected": ("corrected", "lower", "upper"),
    "within_lags": ("within_lags", "within_lower", "within_upper"),
}


@dataclass(frozen=True)
class Profile:
    """The cells of a panel by difference-in-differences, and draws of their errors.

    `estimate` float[cohorts, times]; `drawn` float[draws, cohorts, times]; `lags` int[cohorts,
    times], times since the treatment, which are -1 in the base period.
    """

    cohorts: np.ndarray
    times: np.ndarray
    estimate: np.ndarray
    drawn: np.ndarray
    lags: np.ndarray

    @classmethod
    def of(cls, panel: Panel, signs: np.ndarray) -> Profile:
        """`signs` float[draws, units] are random signs of the panel's units.

        Only cohorts with a time before and a time after their treatment count.
        """
        firsts = {cohort: panel.first_after(cohort) for cohort in panel.treated}
        firsts = {cohort: f for cohort, f in firsts.items() if 0 < f < len(panel.times)}
        untreated, untreated_draws = _means(panel, signs, NEVER)
        shape = len(firsts), len(panel.times)
        estimate, drawn = np.zeros(shape), np.zeros((len(signs), *shape))
        for place, (cohort, first) in enumerate(firsts.items()):
            mean, draws = _means(panel, signs, cohort)
            change, change_draws = mean - untreated, draws - untreated_draws
            estimate[place] = change - change[first - 1]
            drawn[:, place] = change_draws - change_draws[:, [first - 1]]
        lags = np.arange(len(panel.times)) - np.array([*firsts.values()], dtype=int)[:, None]
        return cls(np.array([*firsts]), panel.times, estimate, drawn, lags)

    def at(self, cohorts: np.ndarray, times: np.ndarray) -> Profile:
        """The cells of some of its cohorts and times."""
        rows, columns = np.searchsorted(self.cohorts, cohorts), np.searchsorted(self.times, times)
        at = np.ix_(rows, columns)
        return Profile(cohorts, times, self.estimate[at], self.drawn[(..., *at)], self.lags[at])


def _means(panel: Panel, signs: np.ndarray, cohort: float) -> tuple[np.ndarray, np.ndarray]:
    """The mean outcome of a cohort float[times], and draws of its error float[draws, times]."""
    is_in = panel.cohorts == cohort
    outcome = panel.outcome[is_in]
    mean, n = outcome.mean(axis=0), len(outcome)
    return mean, signs[:, is_in] @ (outcome - mean) / np.sqrt(n * (n - 1))


def correlations(panels: Mapping[str, Panel], seed: int = 0) -> Iterator[dict]:
    """For each pair of panels and each side of the treatment: how alike their profiles are.

    Parameters
    ----------
    panels : by name, from the smallest model to the largest
    seed : of the draws

    Yields rows of the table `panels_correlation`, without `language`. Correlations are over the
    cells that both panels have. `corrected` is NaN where a profile does not vary beyond its errors,
    and `within_lags` where it does not vary beyond its errors and the mean of each lag.
    Before the treatment, nothing is memorised, so the covariance there is divided by the standard
    deviations after it: the truth is 0.
    """
    names = sorted({name for panel in panels.values() for name in names_of(panel)})
    place = {name: number for number, name in enumerate(names)}
    chance = np.random.default_rng(seed)
    signs = 2.0 * chance.integers(0, 2, (N_DRAWS, len(names)), dtype=np.int8) - 1.0
    of_units = {name: [place[unit] for unit in names_of(one)] for name, one in panels.items()}
    profiles = {name: Profile.of(one, signs[:, of_units[name]]) for name, one in panels.items()}
    for model, other in combinations(panels, 2):
        n_shared = len({*of_units[model]} & {*of_units[other]})
        for row in _of_pair(profiles[model], profiles[other]):
            yield {"panel": model, "other": other, "n_shared": n_shared, **row}


def _of_pair(one: Profile, other: Profile) -> Iterator[dict]:
    shared = [np.intersect1d(getattr(one, k), getattr(other, k)) for k in ("cohorts", "times")]
    one, other = (profile.at(*shared) for profile in (one, other))
    sides = {
        AFTER: (one.lags >= 0) & (other.lags >= 0),
        BEFORE: (one.lags < -1) & (other.lags < -1),
    }
    centres = {"corrected": _centred, "within_lags": _centred_within(one.lags, other.lags)}
    spreads = {name: _spread(one, other, sides[AFTER], of) for name, of in centres.items()}
    for side, cells in sides.items():
        x, y = one.estimate[cells], other.estimate[cells]
        row = {"cells": side, "n_cells": int(cells.sum()), "correlation": np.nan}
        row |= dict.fromkeys((*ENDS["corrected"], *ENDS["within_lags"]), np.nan)
        if cells.sum() > 1:
            row["correlation"] = pearson(x, y)
            for name, centred in centres.items():
                values = _corrected(_covariance(one, other, cells, centred), spreads[name])
                row |= dict(zip(ENDS[name], values, strict=True))
        yield row


@dataclass(frozen=True)
class Covariance:
    """A covariance over cells beyond that of the errors, and draws of it float[draws]."""

    value: float
    drawn: np.ndarray


# Values of some cells without what they have in common
Centred = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _covariance(one: Profile, other: Profile, cells: np.ndarray, centred: Centred) -> Covariance:
    x, y = (centred(own.estimate[cells], cells) for own in (one, other))
    x_drawn, y_drawn = (centred(own.drawn[:, cells], cells) for own in (one, other))
    of_errors = (x_drawn * y_drawn).mean()
    # A draw has the errors of the estimates, and once more as much.
    drawn = ((x + x_drawn) * (y + y_drawn)).mean(axis=-1) - 2 * of_errors
    return Covariance(float((x * y).mean() - of_errors), drawn)


def _centred(values: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Values float[..., n] of bool[cohorts, times] without their mean."""
    return values - values.mean(axis=-1, keepdims=True)


def _centred_within(lags: np.ndarray, others: np.ndarray) -> Centred:
    """Without the mean of the cells at the same times since the treatment, in both panels."""
    groups = lags * (2 * others.shape[1] + 1) + others  # one number for each pair of times

    def centred(values: np.ndarray, cells: np.ndarray) -> np.ndarray:
        return within(groups[cells], values)

    return centred


def _spread(one: Profile, other: Profile, cells: np.ndarray, centred: Centred) -> Covariance | None:
    """The product of the two standard deviations; NaN where a variance is not above 0."""
    if cells.sum() < 2:
        return None
    own = [_covariance(profile, profile, cells, centred) for profile in (one, other)]
    with np.errstate(invalid="ignore"):
        return Covariance(
            float(np.prod([_root(np.array(one.value)) for one in own])),
            np.prod([_root(one.drawn) for one in own], axis=0),
        )


def _root(variance: np.ndarray) -> np.ndarray:
    return np.sqrt(np.where(variance > 0, variance, np.nan))


def _corrected(covariance: Covariance, spread: Covariance | None) -> tuple[float, float, float]:
    """The correlation without errors, and its interval from the draws.

    A draw in which a profile does not vary beyond its errors may be anything from -1 to 1.
    """
    if spread is None or np.isnan(spread.value):
        return np.nan, np.nan, np.nan
    ends = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
    drawn = np.clip(covariance.drawn / spread.drawn, -1, 1)
    lower, upper = (
        float(np.quantile(np.nan_to_num(drawn, nan=anything), end))
        for end, anything in zip(ends, (-1, 1), strict=True)
    )
    value = float(np.clip(covariance.value / spread.value, -1, 1))
    return value, lower, upper
