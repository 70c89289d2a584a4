"""Means of the cells of a profile, and differences of them between panels, with their errors.

A mean of cells is a sum over units. So what each unit adds to its error is known, and the error of
a difference between two panels that measure the same units is smaller than that of either.

Source: Causal Estimation of Memorisation Profiles, sections 3 and 7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from palimpsest.profiles.panel import NEVER, Panel
from palimpsest.statistics import CONFIDENCE

INSTANTANEOUS, PERSISTENT, RESIDUAL = "instantaneous", "persistent", "residual"
INSTANTANEOUS_ORDER, RESIDUAL_ORDER = "instantaneous_order", "residual_order"
ORDERS = (INSTANTANEOUS_ORDER, RESIDUAL_ORDER)
FADING, FALLEN = "fading", "fallen"
PERSISTENT_SHARE, FADING_SHARE, FALLEN_SHARE = "persistent_share", "fading_share", "fallen_share"
SHARES = {PERSISTENT_SHARE: PERSISTENT, FADING_SHARE: FADING, FALLEN_SHARE: FALLEN}
FEWEST_OF_A_HALF = 2  # cohorts, whose spread is then known
FEWEST_LAGS = 6  # later times of a cohort whose last third is compared
DRAW = 16  # separates the random cohorts of placebos from other draws
FEWEST_UNTREATED = 4  # two placebos and two units to compare them with


class WithInterval(NamedTuple):
    """An estimate, its standard error and degrees of freedom, and Student's 95 % interval."""

    estimate: float
    std_error: float
    degrees: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Effect:
    """A statistic of panels.

    `errors` float[units] is what each unit adds to its error, by the unit's name: the sum of their
    squares is the variance. `cohorts` are the cohorts of these units, within which they are
    independent draws. `halves` says how cohorts differ, if the effect compares two halves of them.
    """

    value: float
    errors: pd.Series
    cohorts: pd.Series
    halves: Halves | None = None

    def interval(self) -> WithInterval:
        """Student's interval, with Welch's degrees of freedom over the cohorts.

        It is over units, and speaks of these cohorts alone. With `halves`, it is also over cohorts,
        and speaks of others that are trained on early or late.

        Source: Welch, The generalization of Student's problem (1947).
        """
        of_cohorts = self.errors.pow(2).groupby(self.cohorts).agg(["sum", "size"])
        variances = of_cohorts["sum"].to_numpy()
        freedom = np.maximum(of_cohorts["size"].to_numpy() - 1, 1)
        if self.halves is not None:
            variances, freedom = self.halves.beside(variances, freedom)
        variance = variances.sum()
        if variance == 0:
            return WithInterval(self.value, 0.0, np.inf, self.value, self.value)
        degrees = variance**2 / (variances**2 / freedom).sum()
        error = np.sqrt(variance)
        reach = stdtrit(degrees, (1 + CONFIDENCE) / 2) * error
        return WithInterval(self.value, error, degrees, self.value - reach, self.value + reach)


@dataclass(frozen=True)
class Halves:
    """The cohorts of two halves that are compared.

    Cohorts differ by more than the errors of their units: each is another sample of strings, at
    another step. So the difference of the halves is known only as well as cohorts are alike.

    `values` float[2, n] are the effects on the cohorts, and `errors` float[units, 2 n] what each
    unit adds to their errors, by the unit's name.
    """

    values: np.ndarray
    errors: pd.DataFrame

    def beside(self, variances: np.ndarray, freedom: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Variances and degrees of freedom of the mean of each half, and of what cohorts share.

        `variances` float[cohorts] and `freedom` are those of the difference over units. Cohorts
        share the units never treated, whose errors need not show as a spread of cohorts: what units
        add to the spread is less than the variance over units.
        """
        n = self.values.shape[1]
        errors = self.errors.to_numpy().reshape(-1, 2, n)
        spreads, of_units = (own.var(axis=-1, ddof=1) / n for own in (self.values, errors))
        total = variances.sum()
        shared = max(0.0, total - of_units.sum())
        degrees = total**2 / (variances**2 / freedom).sum() if total else np.inf
        return np.array([*spreads, shared]), np.array([n - 1, n - 1, degrees])


def combined(effects: Sequence[Effect], factors: Sequence[float]) -> Effect:
    """The sum of effects times their factors. What units of one name add is added up."""
    value = sum(factor * one.value for factor, one in zip(factors, effects, strict=True))
    errors = [factor * one.errors for factor, one in zip(factors, effects, strict=True)]
    cohorts = pd.concat([one.cohorts for one in effects])
    return Effect(
        value,
        pd.concat(errors).groupby(level=0).sum(),
        cohorts.groupby(level=0).first(),
        _halves_of(effects, factors),
    )


def _halves_of(effects: Sequence[Effect], factors: Sequence[float]) -> Halves | None:
    """The same sum of the cohorts of the halves, which are of the same cohorts in all effects."""
    if any(one.halves is None for one in effects):
        return None
    known = [(factor, one.halves) for factor, one in zip(factors, effects, strict=True)]
    errors = pd.concat([factor * own.errors for factor, own in known])
    values = sum(factor * own.values for factor, own in known)
    return Halves(values, errors.groupby(level=0).sum())


def mean(effects: Sequence[Effect]) -> Effect:
    return combined(effects, [1 / len(effects)] * len(effects))


def difference_of(one: Effect, other: Effect) -> Effect:
    return combined([one, other], [1.0, -1.0])


def ratio(above: Effect, below: Effect) -> Effect | None:
    """One effect as a share of another, to first order; None if the other may be 0.

    Source: ratios of means, Cochran, Sampling Techniques (1977), section 6.3.
    """
    bounds = below.interval()
    if not (bounds.lower > 0 or bounds.upper < 0):
        return None
    share = above.value / below.value
    linear = combined([above, below], [1 / below.value, -share / below.value])
    return replace(linear, value=share)


Weights = Callable[[np.ndarray], np.ndarray | None]


def part_of(panel: Panel, part: str, cells: np.ndarray | None = None) -> Effect | None:
    """A part of a panel's profile by difference-in-differences.

    Parameters
    ----------
    part : a key of `PARTS`
    cells : bool[cohorts, times], the cells that count; by default, all

    Returns None if no cell counts, or if the part is of two halves and one of them has none.
    """
    treated = panel.treated
    firsts = np.array([panel.first_after(cohort) for cohort in treated])
    lags = np.arange(len(panel.times)) - firsts[:, None]
    counts = (lags >= 0) & (firsts > 0)[:, None]
    if cells is not None:
        counts &= cells
    lags = np.where(counts, lags, -1)
    weights = PARTS[part](lags)
    if weights is None:
        return None
    found = _weighted(panel, weights, firsts)
    return replace(found, halves=_halves(panel, weights, firsts)) if part in ORDERS else found


def _weighted(panel: Panel, weights: np.ndarray, firsts: np.ndarray) -> Effect:
    """The sum of cells times float[cohorts, times]."""
    contrasts = weights.copy()
    contrasts[np.arange(len(firsts)), firsts - 1] -= weights.sum(axis=1)
    value, errors = 0.0, np.zeros(len(panel.cohorts))
    groups = [*zip(panel.treated, contrasts, strict=True), (NEVER, -contrasts.sum(axis=0))]
    for cohort, contrast in groups:
        is_in = panel.cohorts == cohort
        of_units = panel.outcome[is_in] @ contrast
        n = len(of_units)
        value += of_units.mean()
        errors[is_in] = (of_units - of_units.mean()) / np.sqrt(n * (n - 1))
    names = pd.Index(names_of(panel))
    return Effect(float(value), pd.Series(errors, names), pd.Series(panel.cohorts, names))


def _halves(panel: Panel, weights: np.ndarray, firsts: np.ndarray) -> Halves:
    """The spread of cohorts in the halves that float[cohorts, times] weighs: one cell for each."""
    rows = [np.flatnonzero(own.any(axis=1)) for own in (weights > 0, weights < 0)]
    cohorts = np.concatenate(rows)
    changes = panel.outcome[:, np.abs(weights[cohorts]).argmax(axis=1)]
    changes = changes - panel.outcome[:, firsts[cohorts] - 1]  # float[units, cohorts]
    values, errors = np.zeros(len(cohorts)), np.zeros(changes.shape)
    for column, cohort in enumerate(panel.treated[cohorts]):
        for group, sign in ((cohort, 1), (NEVER, -1)):
            is_in = panel.cohorts == group
            own, n = changes[is_in, column], is_in.sum()
            values[column] += sign * own.mean()
            errors[is_in, column] = sign * (own - own.mean()) / np.sqrt(n * (n - 1))
    return Halves(values.reshape(2, -1), pd.DataFrame(errors, names_of(panel)))


def names_of(panel: Panel) -> np.ndarray:
    """The names of the units; their places in the panel if it has none."""
    return np.arange(len(panel.cohorts)) if panel.units is None else panel.units


# Each of the following maps the times since the treatment int[cohorts, times], -1 for cells that do
# not count, to the weights of the cells.


def _instantaneous(lags: np.ndarray) -> np.ndarray | None:
    return _mean_of(lags == 0)


def _persistent(lags: np.ndarray) -> np.ndarray | None:
    return _mean_of(lags > 0)


def _residual(lags: np.ndarray) -> np.ndarray | None:
    return _mean_of(_at_the_end(lags))


def _instantaneous_order(lags: np.ndarray) -> np.ndarray | None:
    return _later_minus_earlier(lags == 0)


def _residual_order(lags: np.ndarray) -> np.ndarray | None:
    return _later_minus_earlier(_at_the_end(lags))


def _fading(lags: np.ndarray) -> np.ndarray | None:
    """The last third of the later times minus the third before it, within each cohort."""
    late, middle, _ = _thirds(lags)
    return _within_cohorts(late, middle)


def _fallen(lags: np.ndarray) -> np.ndarray | None:
    """The last third of the later times minus the effect just after, within each cohort."""
    late, middle, first = _thirds(lags)
    return _within_cohorts(late, first & middle.any(axis=1, keepdims=True))


def _thirds(lags: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cells of the last and the second third of later times, and those just after."""
    last = lags.max(axis=1, keepdims=True)
    late = (last >= FEWEST_LAGS) & (lags > 2 * last / 3)
    middle = (last >= FEWEST_LAGS) & (lags > last / 3) & ~late
    return late, middle, lags == 0


def _within_cohorts(cells: np.ndarray, others: np.ndarray) -> np.ndarray | None:
    """The mean of some cells minus that of others, within each cohort that has both."""
    is_whole = cells.any(axis=1) & others.any(axis=1)
    if not is_whole.any():
        return None
    found = np.zeros(cells.shape)
    for some, sign in ((cells, 1), (others, -1)):
        found[is_whole] += sign * some[is_whole] / some[is_whole].sum(axis=1, keepdims=True)
    return found / is_whole.sum()


PARTS: dict[str, Weights] = {
    INSTANTANEOUS: _instantaneous,
    PERSISTENT: _persistent,
    RESIDUAL: _residual,
    INSTANTANEOUS_ORDER: _instantaneous_order,
    RESIDUAL_ORDER: _residual_order,
    FADING: _fading,
    FALLEN: _fallen,
}


def _at_the_end(lags: np.ndarray) -> np.ndarray:
    is_last = np.arange(lags.shape[1]) == lags.shape[1] - 1
    return (lags >= 0) & is_last


def _mean_of(cells: np.ndarray) -> np.ndarray | None:
    return cells / cells.sum() if cells.any() else None


def _later_minus_earlier(cells: np.ndarray) -> np.ndarray | None:
    """The mean of the later half of the cohorts minus that of the earlier half.

    With an odd number of cohorts, the one in the middle is left out. None if a half has too few.
    """
    cohorts = np.flatnonzero(cells.any(axis=1))
    half = len(cohorts) // 2
    if half < FEWEST_OF_A_HALF:
        return None
    found = np.zeros(cells.shape)
    for some, sign in ((cohorts[len(cohorts) - half :], 1), (cohorts[:half], -1)):
        found[some] = sign * cells[some] / cells[some].sum()
    return found


def placebos(panel: Panel, cohorts: np.ndarray) -> Panel | None:
    """Half of the units never treated, as if they had been treated at random times of `cohorts`.

    The others are the comparison. Cohorts of placebos are as large as the median cohort of the
    panel, if there are enough units. Panels with units of the same names have the same placebos.
    None if there are too few units or no cohorts.
    """
    places = np.flatnonzero(panel.cohorts == NEVER)
    if len(places) < FEWEST_UNTREATED or not len(cohorts):
        return None
    chance = np.random.default_rng(DRAW)
    places = chance.permutation(places)
    sizes = np.unique(panel.cohorts[np.isfinite(panel.cohorts)], return_counts=True)[1]
    most = len(places) // 2
    size = min(most, max(2, int(np.median(sizes))))
    times = chance.permutation(cohorts)[: most // size]
    assigned = np.full(len(places), NEVER)
    assigned[: len(times) * size] = np.repeat(times, size)
    names = None if panel.units is None else panel.units[places]
    return replace(
        panel, cohorts=assigned, outcome=panel.outcome[places], units=names, rows=None, written=None
    )
