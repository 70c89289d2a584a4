"""The difference and the difference-in-differences estimator, with simultaneous bands.

Both estimate, for each cohort and time, how much training on a cohort's strings has changed what
the model predicts for these strings at that time. The strings that are never trained on are the
comparison.

A band is simultaneous: with the given confidence, all cells of a table are inside their bands at
once. It comes from a multiplier bootstrap. A draw gives each unit a random sign and multiplies the
unit's distance from the mean of its cohort by this sign, at all times together, so that the draw
depends on time as the data do. The draw's statistic is the largest studentised deviation over all
cells. It is studentised by the draw's own standard error, which keeps the error rate of small
cohorts.

A group whose outcomes or changes are equal up to rounding shows no spread, and yet its mean is not
known without error: if none of 32 strings was extracted, a tenth of their kind may be. In
a cell with such a group, the group has the spread of all units of the cell, as in a score test.
Where all of them are equal, the standard error is 0, and the estimate if only rounding is left.

Sources: Causal Estimation of Memorisation Profiles, sections 4 and 6; Callaway and Sant'Anna,
Difference-in-differences with multiple time periods (2021), theorem 2 and algorithm 1; Hall,
The bootstrap and Edgeworth expansion (1992), for studentised draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from palimpsest.allowed import CONFIDENCES, SEEDS, WHOLE, checked_number, checked_numbers, shown
from palimpsest.errors import Notice, UserError
from palimpsest.profiles.panel import NEVER, Panel, to_panel
from palimpsest.statistics import (
    CONFIDENCE,
    FEWEST_TERMS,
    is_constant,
    power_of_two,
    rounding_error,
    terms_of,
)

N_DRAWS = 1000


class LossWarning(Notice):
    """Training lowers the outcome of a panel at once, as it lowers a loss."""


def difference(
    panel: Panel | pd.DataFrame, confidence: float = CONFIDENCE, n: int = N_DRAWS, seed: int = 0
) -> pd.DataFrame:
    """The mean outcome of a cohort minus that of the units that are never treated.

    Unbiased if cohorts and untreated units are drawn from one distribution.

    Parameters
    ----------
    panel : a `Panel`, or a table with the columns unit, time, cohort (empty or infinite: never
        treated) and outcome (more is better)
    confidence : of the simultaneous band, in (0, 1)
    n : number of bootstrap draws, at least 1
    seed : of the draws, 0 or more

    Returns one row per cohort and time: cohort, time, estimate, std_error, lower, upper and
    significant. Estimates are in the unit of the outcome. `significant`: the band excludes 0.

    Raises `UserError` if a table is not a panel (see `palimpsest.profiles.panel.to_panel`), if an
    outcome is not finite, or if the confidence, n or the seed is not allowed.

    Warns with `LossWarning` if cohorts have significantly lower outcomes just after their
    treatment, and more of them do than have higher ones.

    Source: Causal Estimation of Memorisation Profiles, eq. 7.
    """
    panel, unit = _in_unit(_checked(panel, confidence, n, seed))
    table = _cells(panel, dict.fromkeys(panel.treated), confidence, n, seed)
    _warn_of_a_loss(panel, table[_is_just_after(panel, table)])
    return _times(table, unit)


def difference_in_differences(
    panel: Panel | pd.DataFrame, confidence: float = CONFIDENCE, n: int = N_DRAWS, seed: int = 0
) -> pd.DataFrame:
    """The change of a cohort since its base period, minus that of the units never treated.

    The base period of a cohort is the last time before its treatment. Unbiased if the cohort would
    have changed as the untreated units did, and if training has no effect before it happens. At
    times before the base period, nothing has happened yet: there an estimate beyond its band speaks
    against the first assumption. The base period itself has the estimate 0 without a band.

    The parameters, the result, the errors and the warning are those of `difference`. Also raises
    `UserError` if a cohort has no time before its treatment.

    Source: Causal Estimation of Memorisation Profiles, eq. 11.
    """
    panel, unit = _in_unit(_checked(panel, confidence, n, seed))
    table = _cells(panel, _base_periods(panel), confidence, n, seed)
    _warn_of_a_loss(panel, table[_is_just_after(panel, table)])
    return _times(table, unit)


def by_time_since_treatment(
    panel: Panel | pd.DataFrame, confidence: float = CONFIDENCE, n: int = N_DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Difference-in-differences, averaged over cohorts at equal times since their treatment.

    A cohort's first time after its treatment is 0, and times are counted in places of the panel:
    with a checkpoint every 1,000 steps, 2 means 2,000 steps later. All cohorts that have such a
    time weigh equally, so late times rest on early cohorts only. The band is simultaneous over the
    rows of this table.

    The parameters, errors and the warning are those of `difference_in_differences`.

    Returns one row per time since treatment, which is negative before: since, n_cohorts, estimate,
    std_error, lower, upper and significant. The base period, -1, is 0 without a band.

    Source: Causal Estimation of Memorisation Profiles, section 7 and figure 4.
    """
    panel, unit = _in_unit(_checked(panel, confidence, n, seed))
    bases = _base_periods(panel)
    groups, untreated = _groups(panel, n, seed)
    n_times = len(panel.times)
    since = np.arange(-max(bases.values()) - 1, n_times - min(bases.values()) - 1)
    total = _Sums.zeros(n, len(since))
    # The paths of the untreated units are averaged over cohorts before their spread is computed,
    # because all cohorts are compared with the same units.
    control = np.zeros((untreated.size, len(since)))
    control_spread, magnitude, counts = np.zeros((3, len(since)))
    for cohort, group in groups.items():
        places = slice(-bases[cohort] - 1 - since[0], n_times - bases[cohort] - 1 - since[0])
        treated, compared = (each.since(bases[cohort]) for each in (group, untreated))
        spread = _spread_of_constants(treated, compared)
        total.add(places, treated.sums(spread))
        control[:, places] += compared.at(slice(None))
        control_spread[places] += spread
        magnitude[places] += compared.magnitude
        counts[places] += 1
    compared = Group.of(control, untreated.signs, panel.stored, magnitude).sums(control_spread)
    contrast = total.minus(compared).divided_by(counts)
    table = pd.DataFrame({"since": since, "n_cohorts": counts.astype(int)})
    table = _with_bands(table, contrast, since == -1, confidence)
    _warn_of_a_loss(panel, table[since == 0], is_mean=True)
    return _times(table, unit)


@dataclass
class _Sums:
    """Sums over independent groups: of means, of their variances, and both for each draw.

    `mean`, `variance` and `rounding`, the largest rounding error of `mean`, are float64[cells];
    `drawn` and `drawn_variance` are float64[draws, cells].
    """

    mean: np.ndarray
    variance: np.ndarray
    rounding: np.ndarray
    drawn: np.ndarray
    drawn_variance: np.ndarray

    @classmethod
    def zeros(cls, n_draws: int, n_cells: int) -> _Sums:
        return cls(*np.zeros((3, n_cells)), *np.zeros((2, n_draws, n_cells)))

    def add(self, places: slice, other: _Sums) -> None:
        for name, values in vars(other).items():
            getattr(self, name)[..., places] += values

    def minus(self, other: _Sums) -> _Sums:
        return _Sums(
            self.mean - other.mean,
            self.variance + other.variance,
            self.rounding + other.rounding,
            self.drawn - other.drawn,
            self.drawn_variance + other.drawn_variance,
        )

    def divided_by(self, counts: np.ndarray) -> _Sums:
        return _Sums(
            self.mean / counts,
            self.variance / counts**2,
            self.rounding / counts,
            self.drawn / counts,
            self.drawn_variance / counts**2,
        )

    def deviations(self) -> np.ndarray:
        """float64[draws, cells]: absolute studentised deviations; NaN for a cell of constants."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.abs(self.drawn) / np.sqrt(self.drawn_variance)


@dataclass(frozen=True)
class Group:
    """The units of one cohort, and the means of their draws.

    `mean` float64[times]; `magnitude` float64[times], the largest absolute value that the outcomes
    were computed from; `n_terms`, the number of additions that would round as much as the outcomes
    are rounded (`statistics.terms_of`); `around` float64[units, times], the distances from the
    mean; `signs` float64[draws, units], and `mean_sign` float64[draws]; `drawn` float64[draws,
    times].
    """

    mean: np.ndarray
    magnitude: np.ndarray
    n_terms: int
    around: np.ndarray
    signs: np.ndarray
    mean_sign: np.ndarray
    drawn: np.ndarray

    @classmethod
    def of(
        cls,
        outcome: np.ndarray,
        signs: np.ndarray,
        stored: type = float,
        magnitude: np.ndarray | None = None,
    ) -> Group:
        """The group of units with the outcomes float64[units, times].

        `stored` is the type in which the outcomes were stored. `magnitude` is that of the outcomes
        themselves, unless they are differences of others.
        """
        mean = outcome.mean(0)
        around = outcome - mean
        if magnitude is None:
            magnitude = np.abs(outcome).max(0)
        n_terms = max(len(outcome), FEWEST_TERMS, terms_of(stored))
        drawn = signs @ around / len(outcome)
        return cls(mean, magnitude, n_terms, around, signs, signs.mean(axis=1), drawn)

    @property
    def size(self) -> int:
        return len(self.around)

    def at(self, times: np.ndarray) -> np.ndarray:
        """The outcomes at some times, which are given as bool[times] or as a slice."""
        return self.around[:, times] + self.mean[times]

    @cached_property
    def square(self) -> np.ndarray:
        """float64[times]: the mean square of the distances from the mean."""
        return np.einsum("nt,nt->t", self.around, self.around) / self.size

    @cached_property
    def constant(self) -> np.ndarray:
        """bool[times]: whether outcomes are equal up to rounding."""
        # No distance from the mean of equal outcomes is larger than the rounding.
        found = self.square <= rounding_error(self.magnitude, self.n_terms) ** 2
        found[found] = is_constant(self.around[:, found], self.magnitude[found], self.n_terms)
        return found

    def since(self, base: int | None) -> Group:
        """The changes of the outcomes since the base period; without one, the outcomes."""
        if base is None:
            return self
        return replace(
            self,
            mean=self.mean - self.mean[base],
            magnitude=np.maximum(self.magnitude, self.magnitude[base]),
            around=self.around - self.around[:, [base]],
            drawn=self.drawn - self.drawn[:, [base]],
        )

    def sums(self, spread_of_constants: np.ndarray) -> _Sums:
        """The means and variances of the outcomes.

        `spread_of_constants` float64[times] is the standard deviation where this group has none.
        """
        drawn, square = self.drawn, self.square
        if self.constant.any():
            # As if each unit were this far from the mean, to a side that only a draw's sign decides
            far = spread_of_constants * np.sqrt((self.size - 1) / self.size)
            square = np.where(self.constant, far**2, square)
            drawn = np.where(self.constant, np.outer(self.mean_sign, far), drawn)
        # A sign does not change a square, so a draw's mean square is that of the data.
        spread = square - drawn**2
        # Of few units, a draw may leave no spread. What is left then is the rounding of both terms.
        rounding = rounding_error(square + np.sqrt(square) * self.magnitude, self.size)
        np.copyto(spread, 0.0, where=spread <= rounding)
        return _Sums(
            self.mean,
            square / (self.size - 1),
            # As large as the spread that `is_constant` takes for rounding: what is constant up to
            # rounding has a mean up to rounding.
            rounding_error(self.magnitude, self.n_terms),
            drawn,
            spread / (self.size - 1),
        )


def _checked(panel: Panel | pd.DataFrame, confidence: float, n: int, seed: int) -> Panel:
    """The panel, if it and the other parameters are allowed; otherwise `UserError`."""
    checked_number("confidence", confidence, CONFIDENCES)
    checked_number("n", n, WHOLE)
    checked_number("seed", seed, SEEDS)
    if isinstance(panel, pd.DataFrame):
        return to_panel(panel)
    if not isinstance(panel, Panel):
        raise UserError(f"panel: is {shown(panel)} and must be a Panel or a table")
    outcome = checked_numbers(f"{panel.source}: outcome", panel.outcome, keeps_short=True)
    times, cohorts = (
        checked_numbers(f"{panel.source}: {name}", getattr(panel, name))
        for name in ("times", "cohorts")
    )
    panel = replace(panel, times=times, cohorts=cohorts, outcome=outcome)
    _check_panel(panel)
    return panel


def _in_unit(panel: Panel) -> tuple[Panel, float]:
    """The panel in another unit of outcome, in which no square is 0 or infinite, and that unit.

    The unit is a power of two, so no estimate changes by a bit.
    """
    stored = max(panel.outcome.dtype.type, panel.stored, key=lambda kind: np.finfo(kind).eps)
    outcome = panel.outcome.astype(float)
    unit = power_of_two(outcome)
    return replace(panel, outcome=outcome / unit, stored=stored), float(unit)


def _times(table: pd.DataFrame, unit: float) -> pd.DataFrame:
    names = ["estimate", "std_error", "lower", "upper"]
    return table.assign(**{name: table[name] * unit for name in names})


def _check_panel(panel: Panel) -> None:
    """`UserError` if the arrays of a panel do not fit together, as those of a table always do."""
    shape = len(panel.cohorts), len(panel.times)
    if panel.outcome.shape != shape:
        raise UserError(
            f"{panel.source}: outcome: has the shape {panel.outcome.shape} and must have a row for "
            f"each unit and a column for each time, {shape}"
        )
    if not (np.isfinite(panel.times).all() and (np.diff(panel.times) > 0).all()):
        raise UserError(f"{panel.source}: times: must be finite numbers in ascending order")
    sizes = dict(zip(*np.unique(panel.cohorts, return_counts=True), strict=True))
    if len(sizes) < 2 or NEVER not in sizes or -NEVER in sizes or min(sizes.values()) < 2:
        raise UserError(
            f"{panel.source}: cohorts: must be times of treatment, and infinite for units that are "
            "never treated; at least two units of each"
        )
    if not (finite := np.isfinite(panel.outcome)).all():
        unit, time = np.argwhere(~finite)[0]
        raise UserError(
            f"{panel.source}: outcome: is {panel.outcome[unit, time]} for unit {unit}, counted "
            f"from 0, at time {panel.times[time]:g} and must be a finite number; leave the unit out"
        )


def _is_just_after(panel: Panel, table: pd.DataFrame) -> np.ndarray:
    """bool[rows]: whether a row is of the first time at which its cohort has been treated."""
    firsts = {g: panel.first_after(g) for g in panel.treated}
    places = table["cohort"].map(firsts).to_numpy()
    return np.searchsorted(panel.times, table["time"]) == places


def _warn_of_a_loss(panel: Panel, just_after: pd.DataFrame, is_mean: bool = False) -> None:
    """Warn if the effects in these rows are those of training on a loss."""
    effects = just_after.loc[just_after["significant"], "estimate"]
    if (n_negative := int((effects < 0).sum())) > len(effects) / 2:
        counted = f"{n_negative} of {len(just_after)} effects are significantly negative"
        if is_mean:
            counted = "the mean effect is significantly negative"
        warnings.warn(
            f"{panel.source}: just after training, {counted}: training makes the outcome smaller. "
            + (
                "It was taken for a loss because of its column's name; if larger is better, give "
                "the column another name."
                if panel.is_loss
                else "Larger must be better; if the outcome is a loss, call its column loss, and "
                "its sign is turned."
            ),
            LossWarning,
            stacklevel=3,
        )


def _base_periods(panel: Panel) -> dict[float, int]:
    """The place of each cohort's base period among the times."""
    bases = {cohort: panel.first_after(cohort) - 1 for cohort in panel.treated}
    for cohort, base in bases.items():
        if base < 0:
            name = panel.named(cohort)
            raise UserError(
                f"{panel.place_of(cohort)}: {name} {'have' if ',' in name else 'has'} no base "
                f"period: the first time is {panel.shown(panel.times[0])}, and a time before the "
                "training is needed; add the outcomes of an earlier time, or leave the cohort out"
            )
    return bases


def _groups(panel: Panel, n: int, seed: int) -> tuple[dict[float, Group], Group]:
    """Every cohort by its time, and the never-treated units."""
    chance = np.random.default_rng(seed)

    def group(cohort: float) -> Group:
        outcome = panel.outcome[panel.cohorts == cohort]
        signs = chance.integers(0, 2, (n, len(outcome)), dtype=np.int8)
        return Group.of(outcome, 2.0 * signs - 1.0, panel.stored)

    untreated = group(NEVER)
    return {cohort: group(cohort) for cohort in panel.treated}, untreated


def _spread_of_constants(group: Group, untreated: Group) -> np.ndarray:
    """float64[times]: the standard deviation of all units where either group has none.

    It is 0 elsewhere, and where all units are equal up to rounding.
    """
    where = group.constant | untreated.constant
    spread = np.zeros(len(where))
    if where.any():
        both = np.concatenate([each.at(where) for each in (group, untreated)])
        magnitude = np.maximum(group.magnitude, untreated.magnitude)[where]
        is_one = is_constant(both, magnitude, max(group.n_terms, untreated.n_terms, len(both)))
        spread[where] = np.where(is_one, 0.0, both.std(axis=0, ddof=1))
    return spread


def _contrasts(panel: Panel, bases: dict[float, int | None], n: int, seed: int) -> Iterator[_Sums]:
    groups, untreated = _groups(panel, n, seed)
    for cohort, group in groups.items():
        treated, compared = (each.since(bases[cohort]) for each in (group, untreated))
        spread = _spread_of_constants(treated, compared)
        yield treated.sums(spread).minus(compared.sums(spread))


def _cells(
    panel: Panel, bases: dict[float, int | None], confidence: float, n: int, seed: int
) -> pd.DataFrame:
    n_times = len(panel.times)
    largest = np.zeros(n)
    estimates, errors, rounding, is_base = [], [], [], []
    for base, contrast in zip(bases.values(), _contrasts(panel, bases, n, seed), strict=True):
        here = np.arange(n_times) == (-1 if base is None else base)
        np.fmax(largest, _largest(contrast, here), out=largest)
        estimates.append(contrast.mean)
        errors.append(np.sqrt(contrast.variance))
        rounding.append(contrast.rounding)
        is_base.append(here)
    table = pd.DataFrame(
        {
            "cohort": np.repeat(panel.treated, n_times),
            "time": np.tile(panel.times, len(panel.treated)),
        }
    )
    cells = (np.concatenate(each) for each in (estimates, errors, rounding, is_base))
    return _banded(table, *cells, _critical(largest, confidence))


def _largest(contrast: _Sums, is_base: np.ndarray) -> np.ndarray:
    """float64[draws]: the largest deviation over the cells, without those of a base period."""
    deviations = contrast.deviations()[:, ~is_base]
    if deviations.shape[1] == 0:
        return np.zeros(len(deviations))
    return np.nanmax(np.where(np.isnan(deviations), 0.0, deviations), axis=1)


def _critical(largest: np.ndarray, confidence: float) -> float:
    """The quantile of float64[draws]; between two draws the larger one, which may be infinite.

    A draw is infinite if its signs leave no spread, which happens with two or three units.
    """
    return float(np.quantile(largest, confidence, method="higher"))


def _with_bands(
    table: pd.DataFrame, contrast: _Sums, is_base: np.ndarray, confidence: float
) -> pd.DataFrame:
    critical = _critical(_largest(contrast, is_base), confidence)
    error = np.sqrt(contrast.variance)
    return _banded(table, contrast.mean, error, contrast.rounding, is_base, critical)


def _banded(
    table: pd.DataFrame,
    estimate: np.ndarray,
    error: np.ndarray,
    rounding: np.ndarray,
    is_base: np.ndarray,
    critical: float,
) -> pd.DataFrame:
    """The table with estimates, and bands of `critical` standard errors on both sides.

    `rounding` float64[rows] is the largest rounding error of the estimates.
    """
    # A difference of two equal constants: only rounding is left.
    estimate = np.where((error == 0) & (np.abs(estimate) <= rounding), 0.0, estimate)
    with np.errstate(invalid="ignore"):
        reach = np.where(error == 0, 0.0, critical * error)
    reach[is_base] = np.nan
    lower, upper = estimate - reach, estimate + reach
    return table.assign(
        estimate=estimate,
        std_error=np.where(is_base, np.nan, error),
        lower=lower,
        upper=upper,
        significant=(lower > 0) | (upper < 0),
    )
