"""The statistics of frequency, deduplication, training size and model size (RQ4, RQ5, RQ8, RQ9).

A difference between training sets has one value per model and seed.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.claims import (
    CONSTANT,
    DIFFERENCE,
    NO_THRESHOLD,
    NOT_NEGATIVE,
    STAND_INS,
)
from palimpsest.estimates import Estimate
from palimpsest.memorisation.claims.claim_statistics import (
    SAME_OF_UNSEEN,
    UNIT,
    Values,
    at_optimum,
    evidence_of,
    inner_band,
    least_inner_band,
    over_units,
    per_unit,
    runs_of,
    statistic,
    variant,
)
from palimpsest.memorisation.claims.learning_statistics import EXCESS, excess_at_optimum
from palimpsest.statistics import is_constant, rank_association

AS_PAPER = "as the paper's code counts, with false alarms"

# Statistics of frequent and infrequent strings.


def top_minus_bottom(study: pd.DataFrame, column: str, measure: str) -> pd.Series:
    """A column of the most frequent strings minus the least frequent, at optimal learning."""
    group = study["group"]
    top = at_optimum(study[group == "top"], column, measure)
    return top - at_optimum(study[group == "bottom"], column, measure)


def unseen_of_frequent(study: pd.DataFrame, measure: str) -> pd.Series:
    return top_minus_bottom(study, "below_unseen_matched", measure)


@statistic(
    "frequency",
    "fraction memorised at optimal learning, most frequent minus least frequent strings, {measure}",
    limits=DIFFERENCE,
    evidence=evidence_of,
    context={"the same of unseen strings as probable": unseen_of_frequent},
)
def fraction_of_frequent(study: pd.DataFrame, measure: str) -> pd.Series:
    return top_minus_bottom(study, "share_memorised_distinct", measure)


BEYOND_UNSEEN = {
    "below": "share of strings below the threshold at optimal learning, beyond "
    "strings never trained on that are as probable; most frequent "
    "minus least frequent strings, ",
    "margin": "mean score at optimal learning without the rule for the start, beyond "
    "strings never trained on that are as probable; most frequent minus least frequent strings, ",
}
BY = {"recollection": "by recollection"}


def beside_paper(of_units: Values, arguments: Mapping, study: pd.DataFrame) -> Estimate:
    """`over_units`; a remark has the paper's difference, except by recollection."""
    column = {"below": "share_memorised_distinct", "margin": "mean_score_distinct"}[
        arguments["quantity"]
    ]
    context = {AS_PAPER: partial(top_minus_bottom, column=column)}
    is_recollection = arguments["measure"] == "recollection"
    return over_units(of_units, arguments, study, context={} if is_recollection else context)


def evidence_beyond_unseen(measure: str) -> tuple[str, ...]:
    return (CONSTANT, STAND_INS) if measure == "recollection" else (STAND_INS,)


@statistic(
    "frequency",
    lambda quantity, measure: BEYOND_UNSEEN[quantity] + BY.get(measure, measure),
    limits=(-2, 2),
    evidence=evidence_beyond_unseen,
    estimator=beside_paper,
)
def excess_top_minus_bottom(study: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    """The excess over unseen strings of the frequent strings minus that of the infrequent ones.

    The excess of a group is its `below` or `margin` at optimal learning, minus that of its strings'
    stand-ins. The stand-ins are as probable as the strings of the group, so what the language alone
    makes easy is taken out.
    """
    trained = top_minus_bottom(study, f"{quantity}_matched", measure)
    return trained - top_minus_bottom(study, f"{quantity}_unseen_matched", measure)


@statistic(
    "frequency",
    "most frequent minus least frequent strings at optimal learning: this difference of the shares "
    "below the threshold by recollection, minus this difference of the contextual excess over "
    "strings never trained on; on the same strings",
    limits=(-3, 3),
    evidence=(CONSTANT, STAND_INS),
)
def contradiction(study: pd.DataFrame) -> pd.Series:
    """How much more the frequent strings stand out by recollection than contextually.

    Contextually, the excess over unseen strings counts. By recollection, unseen strings count as
    well: that a string is recollected because it is probable is the paper's point. Both are
    measured on the same strings.
    """
    by_recollection = top_minus_bottom(study, "below_matched", "recollection")
    return by_recollection - excess_top_minus_bottom(study, "below", "contextual")


# Statistics of variants of the training data.

BASE_AND_DEDUP = ("base", "dedup")
UNIT_OF_DELAY = {False: "epochs", True: "trained strings"}
NO_START = {
    False: "no start counts as one epoch after the last",
    True: "no verdict if the end of training cuts a band",
}


@statistic(
    "deduplication",
    lambda quantity: f"{EXCESS[quantity]}, deduplicated",
    limits=DIFFERENCE,
    evidence=evidence_of,
    variants=("dedup",),
)
def excess_deduplicated(study: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    return excess_at_optimum(variant(study, "dedup"), quantity, measure)


@statistic(
    "deduplication",
    lambda measure, in_strings: (
        f"{UNIT_OF_DELAY[in_strings]} by which the middle of the 10 % to "
        f"90 % band of starts is later than the base's, {measure}; {NO_START[in_strings]}"
    ),
    evidence=evidence_of,
    variants=BASE_AND_DEDUP,
)
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


def least_band(study: pd.DataFrame, name: str, measure: str) -> pd.Series:
    return least_inner_band(variant(study, name), measure)


@statistic(
    "deduplication",
    "epochs in the 10 % to 90 % band of starts, deduplicated, {measure}",
    limits=NOT_NEGATIVE,
    evidence=evidence_of,
    at_least=least_band,
    variants=("dedup",),
)
def band(study: pd.DataFrame, name: str, measure: str) -> pd.Series:
    return inner_band(variant(study, name), measure)


def least_band_widening(study: pd.DataFrame, other: str, measure: str) -> pd.Series:
    """A lower bound of `band_widening`: only the part of the band before the end counts."""
    epochs = runs_of(variant(study, "dedup"), measure)["last_epoch"]
    return (least_band(study, "dedup", measure) - band(study, other, measure)) / epochs


def over_widenings(of_units: Values, arguments: Mapping, study: pd.DataFrame) -> Estimate:
    """`over_units` of deduplication and another variant; a bound where the end cuts a band."""
    variants = ("dedup", arguments["other"])
    settings = {"at_least": least_band_widening, "variants": variants}
    return over_units(of_units, arguments, study, **settings)


OF_OTHER = {"base": "the base's", "dedup-matched": "that of dedup-matched"}


@statistic(
    "deduplication",
    lambda other: (
        f"width of the 10 % to 90 % band of starts minus {OF_OTHER[other]} (share of the "
        "training), {measure}"
    ),
    limits=DIFFERENCE,
    evidence=evidence_of,
    estimator=over_widenings,
)
def band_widening(study: pd.DataFrame, other: str, measure: str) -> pd.Series:
    """Width of the band under deduplication minus under another variant, as share of training."""
    epochs = runs_of(variant(study, "dedup"), measure)["last_epoch"]
    return (band(study, "dedup", measure) - band(study, other, measure)) / epochs


@statistic(
    "deduplication",
    lambda in_strings: (
        f"{UNIT_OF_DELAY[in_strings]} by which optimal learning is later than the base's"
    ),
    evidence=NO_THRESHOLD,
    variants=BASE_AND_DEDUP,
)
def optimum_delay(study: pd.DataFrame, in_strings: bool = False) -> pd.Series:
    """How much later optimal learning is under deduplication, in epochs or trained strings."""
    dedup, base = (runs_of(variant(study, name), "contextual") for name in ("dedup", "base"))
    if in_strings:
        return dedup["optimal_epoch"] * dedup["n_train"] - base["optimal_epoch"] * base["n_train"]
    return dedup["optimal_epoch"] - base["optimal_epoch"]


@statistic(
    "deduplication",
    "share of distinct training strings below the {measure} threshold at the "
    "last measurement before optimal learning, beyond strings never trained on,"
    " deduplicated",
    limits=DIFFERENCE,
    evidence=evidence_of,
    variants=("dedup",),
)
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


@statistic(
    "deduplication",
    "standard deviation of the loss over test strings at optimal learning, deduplicated relative "
    "to base",
    limits=NOT_NEGATIVE,
    evidence=NO_THRESHOLD,
    variants=BASE_AND_DEDUP,
)
def spread_ratio(study: pd.DataFrame) -> pd.Series:
    return spread(study, "dedup") / spread(study, "base")


@statistic(
    "deduplication",
    "standard deviation of the loss over test strings at optimal learning, deduplicated minus "
    "dedup-matched, nats per token",
    evidence=NO_THRESHOLD,
    variants=("dedup", "dedup-matched"),
)
def spread_above_matched(study: pd.DataFrame) -> pd.Series:
    return spread(study, "dedup") - spread(study, "dedup-matched")


@statistic(
    "deduplication",
    "training loss minus the base's, each distinct string once, after equally many trained "
    "strings, nats per token",
    evidence=NO_THRESHOLD,
    variants=BASE_AND_DEDUP,
)
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
    or four sizes, it is 1 or -1 in most runs, and saturated values are no verdict. A size without a
    value in some seed (such as a set without repeated strings) is left out of all seeds: their
    slopes are over the same sizes.
    """
    rows = _with_value(study, column, measure, minus)
    is_known = rows["value"].notna().groupby([rows["model"], rows["size"]]).transform("all")
    rows = rows[is_known]
    return per_unit(rows, lambda unit: _slope(np.log2(unit["size"]), unit["value"]), BY_SIZE)


# Of a column: words, and what the claims on it rest on
DOUBLED = {
    "test_loss": (
        "change of the lowest test loss for each doubling of the training size, nats per token",
        NO_THRESHOLD,
    ),
    "n_repeated": (
        "change of the number of repeated strings for each doubling of the training size; never "
        "below 0 by construction, because a seed's smaller training sets are parts of its larger "
        "ones",
        NO_THRESHOLD,
    ),
    "threshold_shared": (
        "change of the mean optimal contextual loss for each doubling of the "
        "training size, of strings in all sets of a seed, nats per token",
        STAND_INS,
    ),
}


@statistic(
    "training_size", lambda column: DOUBLED[column][0], evidence=lambda column: DOUBLED[column][1]
)
def column_per_doubling(study: pd.DataFrame, column: str, measure: str = "contextual") -> pd.Series:
    return per_doubling(study, column, measure)


# Columns of the scores: of training strings as in the paper, of unseen strings, and both without
# the rule for the start. For repeated strings, the unseen strings are equally probable.
SCORES = {
    "the training strings": ("mean_score", "mean_score_unseen", "margin_distinct", "margin_unseen"),
    "repeated strings": (
        "mean_score_repeated",
        "margin_repeated_unseen",
        "margin_repeated",
        "margin_repeated_unseen",
    ),
}


def over_scores(of_units: Values, arguments: Mapping, study: pd.DataFrame) -> Estimate:
    """`over_units` of a score's columns, and a remark with a number for comparison.

    By recollection the paper's score is tested, and the score of unseen strings is shown. By other
    measures the excess over unseen strings is tested, and the paper's score is shown.
    """
    measure = arguments["measure"]
    paper, of_unseen, trained, unseen = SCORES[arguments.get("strings", "the training strings")]
    tested, name, shown = {"column": trained, "minus": unseen}, AS_PAPER, paper
    if measure == "recollection":
        tested, name, shown = {"column": paper}, SAME_OF_UNSEEN, of_unseen
    context = {name: lambda rows: of_units(rows, column=shown, measure=measure)}
    return over_units(of_units, {**tested, "measure": measure}, study, context=context)


def words_of_score(measure: str) -> str:
    if measure == "recollection":
        return "the mean score"
    return "the mean score (beyond strings never trained on, without the rule for the start)"


@statistic(
    "training_size",
    lambda measure, strings: (
        f"change of {words_of_score(measure)} of {strings} at optimal learning "
        f"for each doubling of the training size, {measure}"
    ),
    evidence=evidence_of,
    estimator=over_scores,
)
def score_per_doubling(
    study: pd.DataFrame, column: str, measure: str, minus: str | None = None
) -> pd.Series:
    """The slope of a score. It is undefined if all sizes have the smallest or the largest score.

    A score that cannot rise does not show that it would not.
    """
    slopes = per_doubling(study, column, measure, minus)
    if minus is not None:
        return slopes
    scores = study[study["measure"] == measure].groupby(BY_SIZE)[column]
    is_free = (scores.min() < 1) & (scores.max() > 0)
    return slopes.where(is_free.reindex(slopes.index))


def mean_of(study: pd.DataFrame, column: str) -> pd.Series:
    return study.set_index(UNIT)[column]


@statistic(
    "adapters",
    "loss on the distinct training strings, adapters minus all weights, both at the lowest test "
    "loss that both reached, nats per token",
    evidence=NO_THRESHOLD,
    context={
        "all weights": partial(mean_of, column="reference_train_loss_distinct"),
        "adapters": partial(mean_of, column="train_loss_distinct"),
        "test loss of both": partial(mean_of, column="equal_test_loss"),
    },
)
def less_with_adapters(study: pd.DataFrame) -> pd.Series:
    """Loss on the training strings at equal test loss: adapters minus all weights."""
    rows = study.set_index(UNIT)
    return rows["train_loss_distinct"] - rows["reference_train_loss_distinct"]


def _with_value(study: pd.DataFrame, column: str, measure: str, minus: str | None) -> pd.DataFrame:
    rows = study[study["measure"] == measure]
    value = rows[column] if minus is None else rows[column] - rows[minus]
    return rows.assign(value=value)


def _slope(x: pd.Series, y: pd.Series) -> float:
    """Least-squares slope of y over x; NaN if all x are equal."""
    if is_constant(x):
        return np.nan
    centred = x - x.mean()
    return (centred * y).sum() / (centred**2).sum()


@statistic(
    "training_size",
    lambda measure: (
        f"rank association (Somers' D) of lowest test loss with {words_of_score(measure)} "
        f"at optimal learning, all models and training sizes of a seed together, {measure}"
    ),
    limits=DIFFERENCE,
    evidence=evidence_of,
    estimator=over_scores,
)
def pooled_with_test_loss(
    study: pd.DataFrame, measure: str, column: str, minus: str | None = None
) -> pd.Series:
    """Rank association of the lowest test loss with a column, over all runs of a seed.

    The runs of all models of all families and of all training sizes are ranked together, as in
    figure 6. If another column is named, it is subtracted first.
    """
    return _with_test_loss(study, measure, column, minus, ["seed"])


@statistic(
    "model_size",
    lambda measure: (
        f"rank association (Somers' D) of lowest test loss with {words_of_score(measure)} "
        f"at optimal learning, within families, {measure}"
    ),
    limits=DIFFERENCE,
    evidence=evidence_of,
    estimator=over_scores,
)
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
    return per_unit(rows, _association, unit)


def _association(runs: pd.DataFrame) -> float:
    """Rank association of the test loss with the value; NaN if a value is undefined."""
    if runs["value"].isna().any():
        return np.nan
    return rank_association(runs["test_loss"], runs["value"])
