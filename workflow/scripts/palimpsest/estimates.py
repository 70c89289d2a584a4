"""From values per seed to an estimate with an interval, for all sections.

Every seed has strings and models of its own, so intervals are over the seeds. The models of a seed
share its strings; they are averaged first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from palimpsest.lazy_import import lazy_import
from palimpsest.number_format import alike, number
from palimpsest.statistics import CONFIDENCE, DECIMALS, Interval, student, student_p_value

pd = lazy_import("pandas")

SEEDS = "seeds"


class Estimate(NamedTuple):
    """A statistic and its 95 % interval.

    Parameters
    ----------
    values : the statistic of every seed in which it is defined
    mean : their mean
    lower, upper : the ends of the interval; NaN if there is no interval
    over : what the interval is over, in a few words
        If it is `SEEDS`, the interval is Student's interval of `values`, and the claim has a
        p-value.
    models : the statistic's mean over the seeds, by the name of every model in which it is defined
        None if the statistic is not computed by model.
    families : the same by the name of a family, if the statistic compares the models of a family
        Otherwise None; a family's value is then the mean over its models.
    coverage : lowest share of the training strings that have stand-ins, of the rows that are used
        NaN if unknown. It is shown for claims that rest on stand-ins.
    remarks : what a reader has to know about the rows that are used, each in a few words
        An empty remark is not shown.
    p_value : of the nearest bound of the claim's region, if the interval is not over seeds
        NaN if there is none. Over seeds, it is that of Student's test.
    p_of_chance : exact p-value that the orders of which the statistic is a mean are random
        The truth is then 0. NaN if the statistic is of no orders. It decides where all seeds give
        the same value, so that Student's test says nothing.
    counts_certain : whether the ends count cases that are certain one by one
        An example is the share of pairs of methods in a significant order. Then equal ends say that
        all cases are certain. Otherwise, equal ends say that nothing varies.
    """

    values: tuple[float, ...] = ()
    mean: float = np.nan
    lower: float = np.nan
    upper: float = np.nan
    over: str = ""
    models: Mapping[str, float] | None = None
    families: Mapping[str, float] | None = None
    coverage: float = np.nan
    remarks: tuple[str, ...] = ()
    p_value: float = np.nan
    p_of_chance: float = np.nan
    counts_certain: bool = False

    def without_interval(self, why: str) -> Estimate:
        """The same values without an interval; the first remark says why."""
        return self._replace(lower=np.nan, upper=np.nan, remarks=(why, *self.remarks))


def over_seeds(
    values: pd.Series | pd.DataFrame,
    *,
    units: str = "values",
    remarks: Iterable[str] = (),
    decimals: int | None = None,
) -> Estimate:
    """The mean over the seeds, with Student's interval.

    Where a statistic is undefined, its value often decides so, and the defined values are no fair
    sample. So a single undefined value takes away the interval. A remark counts them.

    Parameters
    ----------
    values : float[seeds], float[seeds, models], or float[units]
        The index of units has a level `seed`, and may have levels `model` and `family`. The value
        of a seed is the mean over its models or units.
    units : what the values are of, in the remark that counts undefined ones
    remarks : further remarks
    decimals : see `statistics.student`
    """
    values = values.astype(float)
    n_undefined, n_values = int(np.isnan(values.to_numpy()).sum()), values.size
    if isinstance(values, pd.DataFrame):
        values = values.stack(future_stack=True).rename_axis(index=["seed", "model"])
    by_seed = values.dropna() if values.index.nlevels == 1 else mean_by("seed", values)
    levels = {"models": "model", "families": "family"}
    groups = {
        field: mean_by(level, values).to_dict()
        for field, level in levels.items()
        if level in values.index.names
    }
    mean, lower, upper = student(by_seed, decimals)
    if n_undefined:
        lower = upper = np.nan
    if 0 < n_undefined < n_values:
        remarks = (f"undefined in {n_undefined} of {n_values} {units}", *remarks)
    return Estimate(tuple(by_seed), mean, lower, upper, SEEDS, remarks=tuple(remarks), **groups)


def mean_by(level: str, values: pd.Series) -> pd.Series:
    return values.dropna().groupby(level=level).mean()


def intervals_over_seeds(rows: pd.DataFrame, by: list[str], column: str) -> pd.DataFrame:
    """Mean over the seeds and Student's interval of a column, for every value of some columns.

    The value of a seed is the mean of its rows. Rows without a value are left out. Returns `mean`,
    `lower`, `upper` and `n_seeds`, indexed by `by`, in the order of the rows.
    """
    by_seed = rows.dropna(subset=[column]).groupby([*by, "seed"], sort=False)[column].mean()
    groups = by_seed.groupby(level=by, sort=False)
    return pd.DataFrame(
        [(*student(values), len(values)) for _, values in groups],
        index=groups.size().index,
        columns=["mean", "lower", "upper", "n_seeds"],
    )


def lowest(
    parts: Iterable[pd.Series],
    over: str,
    *,
    bound: float = np.nan,
    needs_spread: bool = False,
    decimals: int | None = None,
) -> Estimate:
    """The lowest of several means over the seeds, with one interval for all of them.

    The lower end is the lowest of their own lower ends; this needs no correction, because only the
    lowest mean can be below it. The upper end is the lowest of their upper ends, each corrected for
    the number of means (Bonferroni), because the lowest of several is low by chance. There is no
    interval if one mean has none, and no estimate if one mean has no values.

    Parameters
    ----------
    parts : values float[seeds], one series for each mean
        A single undefined value takes away the interval, see `over_seeds`.
    over : what the interval is over
    bound : the p-value is that of this number as the lowest mean, by both rules; NaN for no p-value
    needs_spread : whether a mean of values that are all alike takes away the interval
    decimals : see `statistics.student`

    Source: the intersection-union test; Berger, Multiparameter hypothesis testing and acceptance
    sampling, Technometrics 24 (1982).
    """
    parts = list(parts)
    known = [own.dropna() for own in parts]
    if not known or any(own.empty for own in known):
        return Estimate()
    intervals = [student(own, decimals) for own in known]
    corrected = 1 - (1 - CONFIDENCE) / len(known)
    lower = np.min([of.lower for of in intervals])  # NaN if any is NaN
    upper = np.min([student(own, decimals, corrected).upper for own in known])
    has_undefined = any(own.isna().any() for own in parts)
    if has_undefined or (needs_spread and not all(of.lower < of.upper for of in intervals)):
        lower = upper = np.nan
    values = known[np.argmin([of.mean for of in intervals])]
    p_value = np.nan if np.isnan(lower) else _p_of_lowest(known, bound)
    return Estimate(tuple(values), values.mean(), lower, upper, over, p_value=p_value)


def _p_of_lowest(parts: list[pd.Series], bound: float) -> float:
    """The two-sided p-value of `bound` as the lowest of several means, float[seeds] each."""
    p_values = [student_p_value(own, bound) for own in parts]
    below = [p for own, p in zip(parts, p_values, strict=True) if own.mean() < bound]
    return float(min(1.0, len(parts) * np.min(below)) if below else np.max(p_values))


def largest_size(
    parts: Iterable[pd.Series], over: str, *, bound: float | None = None, **settings
) -> Estimate:
    """The largest absolute value of several means, with one interval for all of them.

    All are within some distance of 0 only if the largest is. The p-value is of `bound`, if there is
    one. For `parts` and the other parameters see `lowest`.
    """
    origin, of_origin = (0.0, np.nan) if bound is None else (bound, 0.0)
    below = [origin - (-1 if own.mean() < 0 else 1) * own for own in parts]
    found = lowest(below, over, bound=of_origin, **settings)
    return found._replace(
        values=tuple(origin - np.array(found.values)),
        mean=origin - found.mean,
        lower=np.maximum(0.0, origin - found.upper),
        upper=origin - found.lower,
    )


def clipped(found: Interval, limits: tuple[float, float]) -> Interval:
    return Interval(found.mean, *np.clip([found.lower, found.upper], *limits))


def with_interval(
    found: Interval, form: Callable[[float], str] = number, separator: str = " "
) -> str:
    """A mean and its interval, if there is one: 0.48 [0.13, 0.83]; a dash if there is no mean.

    A percentage has its sign once: 48 % [13, 83].
    """
    if pd.isna(found.mean):
        return "–"
    if pd.isna(found.lower):
        return form(found.mean)
    values = found.mean, found.lower, found.upper
    mean, *ends = alike(*values) if form is number else map(form, values)
    lower, upper = (end.removesuffix("\u00a0%") for end in ends)
    return f"{mean}{separator}[{lower}, {upper}]"


def interval_note(name: str, found: Interval) -> str:
    if pd.isna(found.lower):
        return ""
    if not np.isfinite(found.upper - found.lower):
        return f"{name}: {number(found.mean)}, without an interval"
    mean, lower, upper = alike(found.mean, found.lower, found.upper)
    return f"{name}: {mean} ({lower} to {upper})"


def mean_remarks(statistics: Mapping[str, pd.Series]) -> tuple[str, ...]:
    """The mean over models, then over seeds, of some statistics, each with its name."""
    means = {name: mean_by("seed", values).mean() for name, values in statistics.items()}
    # Rounded, because a sum that should be 0 can be -1e-17.
    return tuple(f"{name}: {np.round(mean, DECIMALS) + 0.0:.2g}" for name, mean in means.items())
