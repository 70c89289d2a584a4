"""The statistics that test the claims on memorisation.

A statistic takes a study's table for one language and returns a Series with one value per unit; a
unit is usually a model, a training size and a seed. `over_units` makes an estimate of these values,
with an interval over the seeds (`palimpsest.estimates`).
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd

from palimpsest import claims
from palimpsest.claims import CONSTANT, STAND_INS, Case, Statistic, those_of
from palimpsest.estimates import (
    Estimate,
    lowest,
    mean_by,
    mean_remarks,
    over_seeds,
)
from palimpsest.memorisation.joins import RUN
from palimpsest.statistics import DECIMALS

UNIT = ["model", "size", "seed"]
SEEDS_OF_MODELS = "seeds, in every model"

Values = Callable[..., pd.Series]  # takes a table; the index of the result has a level "seed"


def evidence_of(measure: str) -> str:
    """What a measure rests on in studies that retrain nothing."""
    return CONSTANT if measure.startswith("recollection") else STAND_INS


# From values to an estimate.


def over_units(
    of_units: Values,
    arguments: Mapping,
    table: pd.DataFrame,
    *,
    ends: tuple[Values, ...] = (),
    variants: tuple[str, ...] = (),
    context: Mapping[str, Values] | None = None,
    remark: Callable[[pd.DataFrame], str] | None = None,
    at_least: Values | None = None,
    p_of_chance: Callable[..., float] | None = None,
) -> Estimate:
    """An estimate of the values of some units, with an interval over the seeds.

    Parameters
    ----------
    of_units : the statistic; this and all other functions get the arguments that they name
    ends : two statistics, the ends of an interval over the training strings of a seed
        They are used if there is only one seed; such an interval does not cover other seeds.
    variants : the variants of the data that the statistic uses; by default, all rows are used
    context : statistics that help to read the estimate, by the names that a reader sees
        Their means are remarks of the estimate. They affect no verdict.
    remark : function from the rows that are used to one more remark
    at_least : a lower bound of the statistic, where the end of training makes it undefined
        If the bound is used in any case, the interval has no upper end, so the claim can only lie
        above a bound.
    p_of_chance : function from the rows that are used to the p-value that orders are random
    """
    rows = used(table, variants)
    if rows.empty:
        return Estimate()

    def of_rows(function: Values) -> pd.Series:
        return function(rows, **those_of(function, arguments))

    known = of_rows(of_units)
    bounded = known if at_least is None else known.fillna(of_rows(at_least))
    n_bounds = int((known.isna() & bounded.notna()).sum())
    values = finite(bounded)
    found = over_seeds(values, units="cases", decimals=DECIMALS)
    remarks = [*found.remarks]
    if n_bounds:
        cut = f"{n_bounds} of {len(values)} values are lower bounds"
        remarks.append(f"{cut}: the end of training cuts a band")
        if not np.isnan(found.upper):
            found = found._replace(upper=np.inf)
    if len(found.values) == 1 and ends:
        lower, upper = (mean_by("seed", finite(of_rows(end))).mean() for end in ends)
        found = found._replace(lower=lower, upper=upper, over="training strings")
    if p_of_chance is not None:
        given = those_of(p_of_chance, arguments)
        found = found._replace(p_of_chance=p_of_chance(rows, **given))
    if remark is not None:
        remarks.append(remark(rows))
    remarks += mean_remarks({name: finite(of_rows(of)) for name, of in (context or {}).items()})
    return about_rows(found._replace(remarks=tuple(remarks)), rows, arguments.get("measure"))


def in_lowest_model(of_units: Values, arguments: Mapping, table: pd.DataFrame) -> Estimate:
    """`estimates.lowest` of the models' means over the seeds.

    If a model has one seed, or all its seeds give the same value, there is no interval.
    """
    rows = used(table)
    values = finite(of_units(rows, **arguments))
    parts = [own.groupby(level="seed").mean() for _, own in values.groupby("model")]
    found = lowest(parts, SEEDS_OF_MODELS, needs_spread=True, decimals=DECIMALS)
    if not found.values:
        return found
    found = found._replace(models=mean_by("model", values).to_dict())
    return about_rows(found, rows, arguments.get("measure"))


def statistic(
    reads: str, words: str | Callable[..., str], *, estimator: Callable = over_units, **declared
) -> Callable[[Values], Statistic]:
    """`claims.statistic` of values by unit; further settings are those of `over_units`."""
    names = ("ends", "variants", "context", "remark", "at_least", "p_of_chance")
    settings = {name: declared.pop(name) for name in names if name in declared}
    return claims.statistic(reads, words, estimator=partial(estimator, **settings), **declared)


def finite(values: pd.Series) -> pd.Series:
    """The values as floats; infinite ones are undefined."""
    values = values.astype(float)
    return values.where(np.isfinite(values))


def used(table: pd.DataFrame, variants: tuple[str, ...] = ()) -> pd.DataFrame:
    rows = table[table["seed"].notna()]  # a null seed is a mean over the seeds
    return rows[rows["variant"].isin(variants)] if variants else rows


def about_rows(found: Estimate, rows: pd.DataFrame, measure: str | None) -> Estimate:
    """The estimate with its coverage and a remark, from rows of `measure` (None: of all)."""
    if measure is not None and "measure" in rows:
        rows = rows[rows["measure"] == measure]
    coverage = rows["coverage"].min() if "coverage" in rows else np.nan
    return found._replace(coverage=coverage, remarks=(*still_learning(rows), *found.remarks))


def still_learning(rows: pd.DataFrame) -> tuple[str, ...]:
    """A remark that some runs may still be learning; none if the table does not say so.

    It names the models all of whose runs may be.
    """
    if "still_learning" not in rows:
        return ()
    runs = rows.drop_duplicates([key for key in RUN if key in rows])
    late = runs["still_learning"]
    if not late.any():
        return ()
    by_model = late.groupby(runs["model"]).all() if "model" in runs else pd.Series(dtype=bool)
    names = ", ".join(by_model.index[by_model])
    which = f", all of {names}" if names and not by_model.all() else ""
    return (f"{late.sum()} of {len(runs)} runs may still learn{which}",)


# The languages on which a claim is tested.


def pairs_of_entropy(study: pd.DataFrame) -> list[tuple[str, str]]:
    """The pairs of languages in a table: a language, and its counterpart of higher entropy.

    A pair has the same rules with other probabilities, so the languages differ in nothing else.
    """
    named = study.dropna(subset="counterpart").drop_duplicates("language")
    there = set(study["language"])
    pairs = zip(named["language"], named["counterpart"], strict=True)
    return [(low, high) for low, high in pairs if high in there]


def low_and_high_entropy(study: pd.DataFrame) -> list[Case]:
    """One case for each pair of languages, with both languages; [] if there is no pair."""
    cases = []
    for low, high in pairs_of_entropy(study):
        both = study[study["language"].isin([low, high])]
        n_models = both.groupby("model")["language"].nunique().eq(2).sum()
        cases.append(Case(f"{low} - {high}", int(n_models), (both,)))
    return cases


def of_entropy(study: pd.DataFrame, entropy: str) -> list[Case]:
    """One case for each language of low or of high entropy that is in a pair."""
    languages = [{"low": low, "high": high}[entropy] for low, high in pairs_of_entropy(study)]
    chosen = [study[study["language"] == name] for name in dict.fromkeys(languages)]
    return [Case(rows["language"].iloc[0], rows["model"].nunique(), (rows,)) for rows in chosen]


# Rows and units.


def per_unit(
    frame: pd.DataFrame, statistic: Callable[[pd.DataFrame], float], unit: list[str] = UNIT
) -> pd.Series:
    """One number per unit, from the unit's rows; by default, a unit is a model, size and seed."""
    groups = list(frame.groupby(unit))
    index = pd.MultiIndex.from_frame(pd.DataFrame([key for key, _ in groups], columns=unit))
    return pd.Series([statistic(group) for _, group in groups], index=index, dtype=float)


def at_optimum(study: pd.DataFrame, column: str, measure: str) -> pd.Series:
    rows = study[(study["measure"] == measure) & (study["epoch"] == study["optimal_epoch"])]
    return rows.set_index(UNIT)[column]


def curves(exact: pd.DataFrame, measure: str, evidence: str = "retraining") -> pd.DataFrame:
    """Rows of one measure; the evidence of recollection is always `constant`."""
    if measure.startswith("recollection"):
        evidence = "constant"
    return exact[(exact["measure"] == measure) & (exact["evidence"] == evidence)]


# Rows of whole training sets.

SAME_OF_UNSEEN = "of strings never trained on"


def variant(study: pd.DataFrame, name: str) -> pd.DataFrame:
    return study[study["variant"] == name]


def runs_of(study: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One row per run with its `last_epoch`, for columns that are the same at every epoch."""
    rows = study[study["measure"] == measure]
    last = rows.groupby(UNIT)["epoch"].max().rename("last_epoch")
    return rows.drop_duplicates(UNIT).set_index(UNIT).join(last)


def inner_band(study: pd.DataFrame, measure: str) -> pd.Series:
    """Epochs from the 10 % to the 90 % quantile of the starts of memorisation.

    NaN if more than 10 % of the strings never start: the end of training cuts the band.
    """
    run = runs_of(study, measure)
    return (run["start_p90"] - run["start_p10"]).where(run["start_p90"] <= run["last_epoch"])


def least_inner_band(study: pd.DataFrame, measure: str) -> pd.Series:
    """`inner_band` or, if the end of training cuts the band, its part before the end.

    NaN if the band begins after the end.
    """
    run = runs_of(study, measure)
    until = run["start_p90"].clip(upper=run["last_epoch"])
    return (until - run["start_p10"]).where(run["start_p10"] <= run["last_epoch"])
