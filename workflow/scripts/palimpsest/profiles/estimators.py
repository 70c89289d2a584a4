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

Sources: Causal Estimation of Memorisation Profiles, sections 4 and 6; Callaway and Sant'Anna,
Difference-in-differences with multiple time periods (2021), theorem 2 and algorithm 1; Hall,
The bootstrap and Edgeworth expansion (1992), for studentised draws.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest.errors import UserError
from palimpsest.profiles.panel import NEVER, Panel, to_panel
from palimpsest.statistics import CONFIDENCE

N_DRAWS = 1000


def difference(
    panel: Panel | pd.DataFrame, confidence: float = CONFIDENCE, n: int = N_DRAWS, seed: int = 0
) -> pd.DataFrame:
    """The mean outcome of a cohort minus that of the units that are never treated.

    Unbiased if cohorts and untreated units are drawn from one distribution.

    Parameters
    ----------
    panel : a `Panel`, or a table with the columns unit, time, cohort (empty or infinite: never
        treated) and outcome
    confidence : of the simultaneous band
    n : number of bootstrap draws
    seed : of the draws

    Returns
    -------
    One row per cohort and time: cohort, time, estimate, std_error, lower, upper and significant.
    Estimates are in the unit of the outcome. `significant`: the band excludes 0.

    Raises
    ------
    UserError
        If a table is not a panel; see `palimpsest.profiles.panel.to_panel`.

    Source: Causal Estimation of Memorisation Profiles, eq. 7.
    """
    panel = _as_panel(panel)
    bases = dict.fromkeys(panel.treated)
    return _cells(panel, bases, confidence, n, seed)


def difference_in_differences(
    panel: Panel | pd.DataFrame, confidence: float = CONFIDENCE, n: int = N_DRAWS, seed: int = 0
) -> pd.DataFrame:
    """The change of a cohort since its base period, minus that of the units never treated.

    The base period of a cohort is the last time before its treatment. Unbiased if the cohort would
    have changed as the untreated units did, and if training has no effect before it happens. At
    times before the base period, nothing has happened yet: there an estimate beyond its band speaks
    against the first assumption. The base period itself has the estimate 0 without a band.

    The parameters, the result and the errors are those of `difference`. Also raises `UserError` if
    a cohort has no time before its treatment.

    Source: Causal Estimation of Memorisation Profiles, eq. 11.
    """
    panel = _as_panel(panel)
    return _cells(panel, _base_periods(panel), confidence, n, seed)


def by_time_since_treatment(
    panel: Panel | pd.DataFrame, confidence: float = CONFIDENCE, n: int = N_DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Difference-in-differences, averaged over cohorts at equal times since their treatment.

    A cohort's first time after its treatment is 0, and times are counted in places of the panel:
    with a checkpoint every 1,000 steps, 2 means 2,000 steps later. All cohorts that have such a
    time weigh equally, so late times rest on early cohorts only. The band is simultaneous over the
    rows of this table.

    The parameters and errors are those of `difference_in_differences`.

    Returns
    -------
    One row per time since treatment, which is negative before: since, n_cohorts, estimate,
    std_error, lower, upper and significant. The base period, -1, is 0 without a band.

    Source: Causal Estimation of Memorisation Profiles, section 7 and figure 4.
    """
    panel = _as_panel(panel)
    bases = _base_periods(panel)
    groups, untreated = _groups(panel, n, seed)
    n_times = len(panel.times)
    since = np.arange(-max(bases.values()) - 1, n_times - min(bases.values()) - 1)
    total = _Sums.zeros(n, len(since))
    # The paths of the untreated units are averaged over cohorts before their spread is computed,
    # because all cohorts are compared with the same units.
    control = np.zeros((untreated.size, len(since)))
    counts = np.zeros(len(since))
    for cohort, group in groups.items():
        places = slice(-bases[cohort] - 1 - since[0], n_times - bases[cohort] - 1 - since[0])
        total.add(places, group.sums(bases[cohort]))
        control[:, places] += untreated.since(bases[cohort])
        counts[places] += 1
    compared = Group.of(control, untreated.signs).sums(None)
    contrast = total.minus(compared).divided_by(counts)
    table = pd.DataFrame({"since": since, "n_cohorts": counts.astype(int)})
    return _with_bands(table, contrast, since == -1, confidence)


@dataclass
class _Sums:
    """Sums over independent groups: of means, of their variances, and both for each draw.

    `mean` and `variance` are float64[cells]; `drawn` and `drawn_variance` float64[draws, cells].
    """

    mean: np.ndarray
    variance: np.ndarray
    drawn: np.ndarray
    drawn_variance: np.ndarray

    @classmethod
    def zeros(cls, n_draws: int, n_cells: int) -> "_Sums":
        return cls(
            *(np.zeros(shape) for shape in (n_cells, n_cells)), *np.zeros((2, n_draws, n_cells))
        )

    def add(self, places: slice, other: "_Sums") -> None:
        """Add the sums of another group to some of the cells."""
        for name, values in vars(other).items():
            getattr(self, name)[..., places] += values

    def minus(self, other: "_Sums") -> "_Sums":
        """The difference of two independent means."""
        return _Sums(
            self.mean - other.mean,
            self.variance + other.variance,
            self.drawn - other.drawn,
            self.drawn_variance + other.drawn_variance,
        )

    def divided_by(self, counts: np.ndarray) -> "_Sums":
        """The sums divided by float64[cells]."""
        return _Sums(
            self.mean / counts,
            self.variance / counts**2,
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

    `mean` float64[times]; `around` float64[units, times], the distances from the mean; `signs`
    float64[draws, units]; `drawn` float64[draws, times].
    """

    mean: np.ndarray
    around: np.ndarray
    signs: np.ndarray
    drawn: np.ndarray

    @classmethod
    def of(cls, outcome: np.ndarray, signs: np.ndarray) -> "Group":
        """The group of units with the outcomes float64[units, times]."""
        mean = outcome.mean(0)
        around = outcome - mean
        return cls(mean, around, signs, signs @ around / len(outcome))

    @property
    def size(self) -> int:
        """Number of units."""
        return len(self.around)

    def since(self, base: int | None) -> np.ndarray:
        """float64[units, times]: the outcomes, or their change since the base period."""
        paths = self.around + self.mean
        return paths if base is None else paths - paths[:, [base]]

    def sums(self, base: int | None) -> _Sums:
        """The means and variances of the outcomes, or of their change since the base period."""
        mean, drawn, around = self.mean, self.drawn, self.around
        if base is not None:
            mean, drawn = mean - mean[base], drawn - drawn[:, [base]]
            around = around - around[:, [base]]
        square = np.einsum("nt,nt->t", around, around) / self.size
        # A sign does not change a square, so a draw's mean square is that of the data.
        spread = np.maximum(square - drawn**2, 0)
        return _Sums(mean, square / (self.size - 1), drawn, spread / (self.size - 1))


def _as_panel(panel: Panel | pd.DataFrame) -> Panel:
    return panel if isinstance(panel, Panel) else to_panel(panel)


def _base_periods(panel: Panel) -> dict[float, int]:
    """The place of each cohort's base period among the times."""
    bases = {cohort: panel.first_after(cohort) - 1 for cohort in panel.treated}
    for cohort, base in bases.items():
        if base < 0:
            raise UserError(
                f"{panel.place_of(cohort)}: cohort {cohort:g} has no base period: the first time "
                f"is {panel.times[0]:g}, and a time before {cohort:g} is needed; add the outcomes "
                "of an earlier time, or leave the cohort out"
            )
    return bases


def _groups(panel: Panel, n: int, seed: int) -> tuple[dict[float, Group], Group]:
    """Every cohort by its time, and the units that are never treated."""
    chance = np.random.default_rng(seed)

    def group(cohort: float) -> Group:
        outcome = panel.outcome[panel.cohorts == cohort]
        signs = chance.integers(0, 2, (n, len(outcome)), dtype=np.int8)
        return Group.of(outcome, 2.0 * signs - 1.0)

    untreated = group(NEVER)
    return {cohort: group(cohort) for cohort in panel.treated}, untreated


def _contrasts(panel: Panel, bases: dict[float, int | None], n: int, seed: int) -> Iterator[_Sums]:
    """Every cohort against the units that are never treated."""
    groups, untreated = _groups(panel, n, seed)
    for cohort, group in groups.items():
        yield group.sums(bases[cohort]).minus(untreated.sums(bases[cohort]))


def _cells(
    panel: Panel, bases: dict[float, int | None], confidence: float, n: int, seed: int
) -> pd.DataFrame:
    """A table with one row per cohort and time."""
    n_times = len(panel.times)
    largest = np.zeros(n)
    estimates, errors, is_base = [], [], []
    for base, contrast in zip(bases.values(), _contrasts(panel, bases, n, seed), strict=True):
        here = np.arange(n_times) == (-1 if base is None else base)
        np.fmax(largest, _largest(contrast, here), out=largest)
        estimates.append(contrast.mean)
        errors.append(np.sqrt(contrast.variance))
        is_base.append(here)
    table = pd.DataFrame(
        {
            "cohort": np.repeat(panel.treated, n_times),
            "time": np.tile(panel.times, len(panel.treated)),
        }
    )
    cells = (np.concatenate(each) for each in (estimates, errors, is_base))
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
    return _banded(table, contrast.mean, np.sqrt(contrast.variance), is_base, critical)


def _banded(
    table: pd.DataFrame,
    estimate: np.ndarray,
    error: np.ndarray,
    is_base: np.ndarray,
    critical: float,
) -> pd.DataFrame:
    """The table with estimates, and bands of `critical` standard errors to both sides."""
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
