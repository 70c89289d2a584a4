"""The statistics that test the claims on whole training sets (RQ3, RQ4, RQ5, RQ8, RQ9).

As in `claim_statistics`, a statistic takes a study's table for one language and returns a Series
with one value per unit.
"""

import numpy as np
import pandas as pd

from palimpsest.memorisation.claim_statistics import UNIT, at_optimum, per_unit
from palimpsest.statistics import FEWEST_TERMS, is_constant, rank_association, rounding_error

# Statistics of memorisation against learning.


def excess_at_optimum(study: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    """Memorisation of the distinct training strings minus that of strings never trained on.

    The quantity is `below` (the share of strings whose loss is below the threshold) or `depth` (the
    mean of the score). Both sides are measured at the epoch of optimal learning. Memorisation from
    the start on would not do: the start is after the last miss, so later misses of an unseen string
    would count as evidence at this epoch.
    """
    trained = at_optimum(study, f"{quantity}_distinct", measure)
    return trained - at_optimum(study, f"{quantity}_unseen", measure)


def share_made_to_fall(study: pd.DataFrame, measure: str) -> pd.Series:
    """Share of strings below the threshold at optimal learning, corrected for false alarms.

    A share u of the strings that were never trained on is below the threshold, too. If a share m of
    the strings is below because of the training, and u of the others are below anyway, then
    m + (1 - m) u of all are below. This is solved for m. It is NaN if all unseen strings are below.

    Source: Abbott's formula, A method of computing the effectiveness of an insecticide, Journal of
    Economic Entomology 18 (1925).
    """
    trained = at_optimum(study, "below_distinct", measure)
    unseen = at_optimum(study, "below_unseen", measure)
    above = 1 - unseen
    return ((trained - unseen) / above).where(above > rounding_error(1.0, FEWEST_TERMS))


def excess_deduplicated(study: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    return excess_at_optimum(variant(study, "dedup"), quantity, measure)


def least_excess_at_optimum(study: pd.DataFrame) -> pd.Series:
    """The lowest excess share below the threshold that any of the paper's three measures gives.

    All measures are applied to the same strings, those that have stand-ins.
    """
    excess = [
        at_optimum(study, "below_covered", measure)
        - at_optimum(study, "below_unseen_covered", measure)
        for measure in ("recollection", "counterfactual", "contextual")
    ]
    # If one measure is undefined, the lowest is unknown.
    return pd.concat(excess, axis=1).min(axis=1, skipna=False)


def largest_fall(study: pd.DataFrame, column: str, measure: str) -> pd.Series:
    """Largest fall of a column from one epoch to the next; 0 if it never falls."""
    curve = study[study["measure"] == measure].sort_values("epoch")
    fall = -curve.groupby(UNIT)[column].diff()
    return curve.assign(fall=fall.clip(lower=0).round(12)).groupby(UNIT)["fall"].max()


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


def band_width(study: pd.DataFrame, measure: str) -> pd.Series:
    return inner_band(study, measure) / runs_of(study, measure)["last_epoch"]


def least_band_width(study: pd.DataFrame, measure: str) -> pd.Series:
    return least_inner_band(study, measure) / runs_of(study, measure)["last_epoch"]


def optimum_in_band(study: pd.DataFrame, measure: str) -> pd.Series:
    """1 if the epoch of optimal learning lies from the first to the last start, otherwise 0.

    Strings that do not start by the end of training may start later, so the band then reaches
    beyond the end. If no string starts, optimal learning is before the band. NaN if no
    string has a threshold.
    """
    run = runs_of(study, measure)
    optimum = run["optimal_epoch"]
    inside = (run["band_first"] <= optimum) & (
        (optimum <= run["band_last"]) | (run["never_starts"] > 0)
    )
    return inside.astype(float).where(run["never_starts"].notna())


def cost_of_stopping_early(study: pd.DataFrame, measure: str) -> pd.Series:
    """Relative excess of the test loss over its minimum, just before any string is memorised."""
    rows = study[study["measure"] == measure]
    return per_unit(rows, lambda unit: _cost_of_stopping_before(unit, unit["band_first"].iloc[0]))


def cost_of_stopping_before_unseen(study: pd.DataFrame, measure: str) -> pd.Series:
    """`cost_of_stopping_early`, just before any unseen string is called memorised."""
    rows = study[study["measure"] == measure]
    return per_unit(
        rows,
        lambda unit: _cost_of_stopping_before(
            unit, unit.loc[unit["fraction_unseen"] > 0, "epoch"].min()
        ),
    )


def _cost_of_stopping_before(unit: pd.DataFrame, first: float) -> float:
    """Relative excess of the lowest test loss before the epoch `first`; NaN stands for no epoch."""
    unit = unit.sort_values("epoch")
    first = np.inf if np.isnan(first) else first
    # If a string is memorised from the first measurement on, only the untrained model comes before.
    before = unit[unit["epoch"] < first] if (unit["epoch"] < first).any() else unit[:1]
    return before["test_loss"].min() / unit["test_loss"].min() - 1


# Statistics of frequent and infrequent strings.


def top_minus_bottom(study: pd.DataFrame, column: str, measure: str) -> pd.Series:
    """A column of the most frequent strings minus the least frequent, at optimal learning."""
    group = study["group"]
    top = at_optimum(study[group == "top"], column, measure)
    return top - at_optimum(study[group == "bottom"], column, measure)


def excess_top_minus_bottom(study: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    """The excess over unseen strings of the frequent strings minus that of the infrequent ones.

    The excess of a group is its `below` or `depth` at optimal learning, minus that of its strings'
    stand-ins. The stand-ins are as probable as the strings of the group, so what the language alone
    makes easy is taken out.
    """
    trained = top_minus_bottom(study, f"{quantity}_matched", measure)
    return trained - top_minus_bottom(study, f"{quantity}_unseen_matched", measure)


def contradiction(study: pd.DataFrame) -> pd.Series:
    """How much more the frequent strings stand out by recollection than contextually.

    Contextually, the excess over unseen strings counts. By recollection, unseen strings count as
    well: that a string is recollected because it is probable is the paper's point. Both are
    measured on the same strings.
    """
    by_recollection = top_minus_bottom(study, "below_matched", "recollection")
    return by_recollection - excess_top_minus_bottom(study, "below", "contextual")


# Statistics of variants of the training data.


def variant(study: pd.DataFrame, name: str) -> pd.DataFrame:
    return study[study["variant"] == name]


def start_delay(study: pd.DataFrame, measure: str, in_strings: bool = False) -> pd.Series:
    """By how much the middle of the band of starts comes later under deduplication.

    In epochs, or in trained strings: an epoch of deduplicated data has fewer strings, so it has
    fewer steps. In trained strings, the two trainings have different lengths, and "one epoch after
    the last" is not the same for both. So it is NaN if the end of training cuts one of the bands.
    """
    return _middle_start(study, "dedup", measure, in_strings) - _middle_start(
        study, "base", measure, in_strings
    )


def _middle_start(study: pd.DataFrame, name: str, measure: str, in_strings: bool) -> pd.Series:
    run = runs_of(variant(study, name), measure)
    middle = (run["start_p10"] + run["start_p90"]) / 2
    if not in_strings:
        return middle
    return (middle * run["n_train"]).where(run["start_p90"] <= run["last_epoch"])


def band(study: pd.DataFrame, name: str, measure: str) -> pd.Series:
    return inner_band(variant(study, name), measure)


def least_band(study: pd.DataFrame, name: str, measure: str) -> pd.Series:
    return least_inner_band(variant(study, name), measure)


def band_widening(study: pd.DataFrame, other: str, measure: str) -> pd.Series:
    """Width of the band under deduplication minus under another variant, as share of training."""
    epochs = runs_of(variant(study, "dedup"), measure)["last_epoch"]
    return (band(study, "dedup", measure) - band(study, other, measure)) / epochs


def least_band_widening(study: pd.DataFrame, other: str, measure: str) -> pd.Series:
    """A lower bound of `band_widening`: only the part of the band before the end counts."""
    epochs = runs_of(variant(study, "dedup"), measure)["last_epoch"]
    return (least_band(study, "dedup", measure) - band(study, other, measure)) / epochs


def optimum_delay(study: pd.DataFrame, in_strings: bool = False) -> pd.Series:
    """How much later optimal learning is under deduplication, in epochs or trained strings."""
    dedup, base = (runs_of(variant(study, name), "contextual") for name in ("dedup", "base"))
    if in_strings:
        return dedup["optimal_epoch"] * dedup["n_train"] - base["optimal_epoch"] * base["n_train"]
    return dedup["optimal_epoch"] - base["optimal_epoch"]


def excess_before_optimum(study: pd.DataFrame, measure: str) -> pd.Series:
    """Share of strings below the threshold minus that of unseen strings, before optimal learning.

    One measurement before optimal learning, under deduplication. Units whose best model is
    the untrained model are left out.
    """
    rows = variant(study, "dedup")
    before = rows[(rows["measure"] == measure) & (rows["epoch"] < rows["optimal_epoch"])]
    last = before.sort_values("epoch").groupby(UNIT).tail(1).set_index(UNIT)
    return last["below_distinct"] - last["below_unseen"]


def spread(study: pd.DataFrame, name: str) -> pd.Series:
    """Standard deviation of the loss over the test strings of a variant at optimal learning."""
    return at_optimum(variant(study, name), "test_spread", "contextual")


def spread_ratio(study: pd.DataFrame) -> pd.Series:
    return spread(study, "dedup") / spread(study, "base")


def spread_above_matched(study: pd.DataFrame) -> pd.Series:
    return spread(study, "dedup") - spread(study, "dedup-matched")


def slower_training(study: pd.DataFrame) -> pd.Series:
    """Training loss under deduplication minus the base's, after equally many trained strings.

    Each distinct string counts once on both sides. An epoch of deduplicated data has fewer strings,
    so the losses are compared at each measurement of the base that the deduplicated training
    reaches, mean over these. The learning rate falls to 0 at the end of each training, so it is
    lower under deduplication after equally many strings.
    """
    return per_unit(study[study["measure"] == "contextual"], _slower_training)


def _slower_training(unit: pd.DataFrame) -> float:
    sides = []
    for name in ("base", "dedup"):
        rows = variant(unit, name).sort_values("epoch")
        sides.append((rows["epoch"] * rows["n_train"], rows["train_loss_distinct"]))
    (trained, base), (trained_dedup, dedup) = sides
    if base.empty or dedup.empty:
        return np.nan
    reached = (trained <= trained_dedup.max()).to_numpy()
    return (np.interp(trained[reached], trained_dedup, dedup) - base[reached]).mean()


# Statistics across training sets and models of several sizes.

BY_SIZE = ["model", "seed"]  # the unit of a statistic that compares the training sizes


def per_doubling(
    study: pd.DataFrame, column: str, measure: str = "contextual", minus: str | None = None
) -> pd.Series:
    """Change of a column for each doubling of the training size: the least-squares slope.

    If another column is named, it is subtracted first. A rank association would not do: with three
    or four sizes, it is 1 or -1 in most runs, and saturated values are no verdict.
    """
    rows = _with_value(study, column, measure, minus)
    return per_unit(rows, lambda unit: _slope(np.log2(unit["size"]), unit["value"]), BY_SIZE)


def less_with_adapters(study: pd.DataFrame) -> pd.Series:
    """Loss on the training strings at equal test loss: adapters minus all weights."""
    rows = study.set_index(UNIT)
    return rows["train_loss_distinct"] - rows["reference_train_loss_distinct"]


def mean_of(study: pd.DataFrame, column: str) -> pd.Series:
    return study.set_index(UNIT)[column]


def _with_value(study: pd.DataFrame, column: str, measure: str, minus: str | None) -> pd.DataFrame:
    rows = study[study["measure"] == measure]
    value = rows[column] if minus is None else rows[column] - rows[minus]
    return rows.assign(value=value).dropna(subset="value")


def _slope(x: pd.Series, y: pd.Series) -> float:
    """Least-squares slope of y over x; NaN if all x are equal."""
    if is_constant(x):
        return np.nan
    centred = x - x.mean()
    return (centred * y).sum() / (centred**2).sum()


def pooled_with_test_loss(
    study: pd.DataFrame, measure: str, column: str, minus: str | None = None
) -> pd.Series:
    """Rank association of the lowest test loss with a column, over all runs of a seed.

    The runs of all models of all families and of all training sizes are ranked together, as in
    figure 6. If another column is named, it is subtracted first.
    """
    return _with_test_loss(study, measure, column, minus, ["seed"])


def with_test_loss(
    study: pd.DataFrame, measure: str, column: str, minus: str | None = None
) -> pd.Series:
    """Rank association of the lowest test loss with a column, within families of models."""
    at_best = study[study["epoch"] == study["optimal_epoch"]]
    return _with_test_loss(at_best, measure, column, minus, ["family", "size", "seed"])


def _with_test_loss(
    study: pd.DataFrame, measure: str, column: str, minus: str | None, unit: list[str]
) -> pd.Series:
    rows = _with_value(study, column, measure, minus)
    return per_unit(rows, lambda runs: rank_association(runs["test_loss"], runs["value"]), unit)
