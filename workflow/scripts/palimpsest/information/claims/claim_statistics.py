"""The statistics of the claims on information measures of neurons.

Measures are those of the neurons of feed-forward layers at the symbol before the answer, mean over
neurons or pairs, then over layers. A statistic compares the runs of one seed. So it has one value
per seed, and its interval is over the seeds; every seed has strings and models of its own.

What a statistic has to be compared with stands in the remarks of its estimate: placebos, norms, and
the share itself. Placebos are the mutual information of pairs whose strings are permuted, which is
the estimator alone, and held-out strings in place of trained ones. Random markers and wrong answers
against neither (`trends.with_random_markers`) change the training strings without any shortcut.
Beside a change with alpha stands how the strings that are learned by heart change. A measure that
follows the share orders models as everything else that follows the share; so orders are compared
with that of the share itself.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pandas as pd

from palimpsest import claims
from palimpsest.claims import (
    ANY_NUMBER,
    DIFFERENCE,
    LANGUAGE,
    NO_THRESHOLD,
)
from palimpsest.estimates import (
    Estimate,
    clipped,
    interval_note,
    lowest,
    over_seeds,
)
from palimpsest.information.kinds import ENCODERS, MARKERS, RANDOM_MARKERS, SHUFFLES
from palimpsest.information.kinds import INFORMATION as TABLE
from palimpsest.information.trends import (
    ACCURACY,
    ENTROPY,
    GREEK,
    INFORMATION,
    LEVELS,
    MEASURES,
    MEMORISED,
    NORMS,
    PLACEBOS,
    SHARE,
    UNIT,
    associated,
    by_model,
    degenerate,
    has_random_markers,
    kendall,
    of_intervention,
    runs_of,
    slopes,
    trend,
    with_levels,
    with_random_markers,
)
from palimpsest.number_format import percent
from palimpsest.statistics import student

# Most statistics are about values of neurons alone
statistic = partial(claims.statistic, evidence=NO_THRESHOLD)
# The signs that the paper expects of a measure's change with the share that is memorised
EXPECTED = {
    (MARKERS, ENTROPY): -1,
    (MARKERS, INFORMATION): 1,
    (SHUFFLES, ENTROPY): 1,
    (SHUFFLES, INFORMATION): -1,
}
VERBS = {-1: "falls", 1: "rises"}
NORM_NAMES = {"two_norm": "2-norm", "frobenius": "Frobenius norm"}
TAU_DIFFERENCE = (-2.0, 2.0)
WEAKEST = "seeds, at the weakest depth"
UNSEEN = PLACEBOS[MEMORISED][0]
SHARE_ITSELF = "share in place of the measure"
AGAINST_NEITHER = "random markers and wrong answers against neither"
AGAINST_NONE = "random markers against none"
BY_HEART = "strings learned by heart, beyond held-out ones"
COMPRESSED = "compression_word"


def of_network(statistic: claims.Statistic, table: str) -> claims.Statistic:
    """The statistic of another kind of network: of the table that holds its runs.

    Encoders are not in the table of models, so no families of them are counted.
    """

    def without_models(function: Callable, arguments: Mapping, *tables: pd.DataFrame) -> Estimate:
        return statistic.estimator(function, arguments, *tables)._replace(models=None)

    return replace(statistic, reads=table, estimator=without_models)


def estimated(
    values: pd.DataFrame,
    compared: Mapping[str, pd.DataFrame],
    limits: tuple[float, float] = ANY_NUMBER,
) -> Estimate:
    """An estimate over the seeds. The remarks hold what the estimate is compared with, by name.

    All frames hold values by seed (rows) and model (columns). `limits` are those of the statistic.
    """
    return over_seeds(values, remarks=notes(compared, limits))


def notes(
    compared: Mapping[str, pd.DataFrame],
    limits: tuple[float, float] = ANY_NUMBER,
) -> tuple[str, ...]:
    """A remark for each name: the mean over models and its interval over the seeds, within limits.

    There is none without interval.
    """
    found = {name: student(values.mean(axis=1).dropna()) for name, values in compared.items()}
    return tuple(interval_note(name, clipped(own, limits)) for name, own in found.items())


def placebos(
    information: pd.DataFrame, intervention: str, column: str, statistic: Callable
) -> dict[str, pd.DataFrame]:
    """A statistic of a change without shortcut, and of a column's placebo, by name."""
    name = AGAINST_NONE if has_random_markers(information) else AGAINST_NEITHER
    found = {name: statistic(with_random_markers(information), RANDOM_MARKERS, column)}
    for placebo, name in of_placebo(column):
        found[name] = statistic(information, intervention, placebo)
    return found


def of_placebo(column: str) -> list[tuple[str, str]]:
    return [PLACEBOS[column]] if column in PLACEBOS else []


# Was memorisation induced?


@statistic(
    TABLE.name,
    "share of right answers where the marker agrees minus where it disagrees, at the highest alpha",
    limits=DIFFERENCE,
)
def shortcut_reliance(information: pd.DataFrame) -> Estimate:
    """Accuracy where the marker agrees minus where it disagrees, at the highest alpha.

    The remarks hold the same difference at alpha 0, where markers are random.
    """
    rows = of_intervention(information, MARKERS)
    gap = rows["accuracy_agrees"] - rows["accuracy_disagrees"]
    by_share = gap.groupby([rows[key] for key in (*UNIT, SHARE)]).mean()
    at = {share: by_model(own) for share, own in by_share.groupby(level=SHARE)}
    highest = at[max(at)] if at else pd.DataFrame()
    return estimated(highest, {"alpha 0": at[0.0]} if 0.0 in at else {}, DIFFERENCE)


def words_of_change(intervention: str, column: str) -> str:
    to_one = f"from {GREEK[intervention]} 0 to 1"
    if column == ACCURACY:
        return f"change of the share of right answers {to_one} (least squares)"
    if column == MEMORISED:
        return (
            "change of the share of training strings below the Bayes-optimal loss, "
            f"beyond held-out strings of the same kind, {to_one} (least squares)"
        )
    return f"change of the mean {to_one} (nats, least squares)"


@statistic(
    TABLE.name,
    words_of_change,
    evidence=lambda column: LANGUAGE if column == MEMORISED else NO_THRESHOLD,
)
def changed(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The slope of a column on the share: the change from share 0 to 1.

    That of the share of memorised strings is beyond the slope of the same share of held-out ones.
    """
    slope = learned_by_heart if column == MEMORISED else trend
    values = slope(information, intervention, column)
    compared = placebos(information, intervention, column, slope)
    if column in MEASURES and intervention == MARKERS and MEMORISED in information:
        compared[BY_HEART] = learned_by_heart(information, intervention, MEMORISED)
    found = estimated(values, compared)
    if column not in MEASURES:
        return found
    return found._replace(remarks=(*found.remarks, *left_out(information, intervention)))


def learned_by_heart(information: pd.DataFrame, intervention: str, column: str) -> pd.DataFrame:
    """The slope of `memorised` beyond that of held-out strings; of their own column, its slope."""
    own = trend(information, intervention, column)
    return own - trend(information, intervention, UNSEEN) if column == MEMORISED else own


def left_out(information: pd.DataFrame, intervention: str) -> list[str]:
    """A remark on neurons that no mean includes, if there are any."""
    shares = degenerate(information, intervention)
    if not shares.sum():
        return []
    return [
        f"constant neurons, which are left out: {percent(shares.iloc[0])} at "
        f"{GREEK[intervention]} {shares.index[0]:g}, {percent(shares.iloc[-1])} at "
        f"{shares.index[-1]:g}"
    ]


# Depth


def by_depth(values: pd.DataFrame, information: pd.DataFrame) -> pd.DataFrame:
    """Values by seed and depth, means over models, from values by seed and model.

    Depths without any value are left out.
    """
    depths = information.groupby("model")["n_layers"].first()
    found = values.T.groupby(depths.reindex(values.columns)).mean().T
    return found.dropna(axis=1, how="all")


@statistic(
    TABLE.name,
    lambda intervention: (
        f"change of the mean from {GREEK[intervention]} 0 to 1 in the expected "
        "direction, at the depth with the weakest change (nats)"
    ),
)
def at_every_depth(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The slope at the depth where it is weakest, in the expected direction."""
    values = EXPECTED[intervention, column] * trend(information, intervention, column)
    depths = by_depth(values, information)
    if len(depths.columns) < 2:
        return Estimate()
    found = lowest([own for _, own in depths.items()], WEAKEST, bound=0)
    return found._replace(models=values.mean().to_dict())


@statistic(
    ENCODERS.name,
    lambda intervention, column: (
        f"{words_of_change(intervention, column).removesuffix(', least squares)')}) in the last "
        "block, minus that in the first"
    ),
)
def changed_late(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The slope of a column in the last block, minus that in the first one."""

    def late(table: pd.DataFrame, what: str, name: str) -> pd.DataFrame:
        rows = of_intervention(table, what)
        first, last = (
            by_model(slopes(runs_of(rows[rows["layer"] == layer], (name,)), name))
            for layer in (rows["layer"].min(), rows["layer"].max())
        )
        return last - first

    values = late(information, intervention, column)
    return estimated(values, placebos(information, intervention, column, late))


# Orders of models


@statistic(
    ENCODERS.name,
    "Kendall's tau with how well a linear probe compresses the inserted words",
    limits=DIFFERENCE,
)
def ordered_by_compression(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """Kendall's tau of a measure and of the compression of the inserted words."""
    tau = partial(associated, information, intervention, kendall, COMPRESSED)
    compared = {name: tau(placebo) for placebo, name in of_placebo(column)}
    found = estimated(tau(column), {**compared, SHARE_ITSELF: tau(SHARE)}, DIFFERENCE)
    return if_tied(found, information, intervention)


def few_levels(
    information: pd.DataFrame, intervention: str, columns: tuple[str, ...]
) -> tuple[str, ...]:
    """A remark on seeds that do not count, because their accuracies have too few levels."""
    if ACCURACY not in columns:
        return ()
    runs = with_levels(of_intervention(information, intervention))
    known = runs.groupby(UNIT)[ACCURACY].count() > 0
    if known.all():
        return ()
    return (
        f"{(~known).sum()} of {len(known)} series of models (one for each seed and model) do not "
        f"count: their accuracies have fewer than {LEVELS} levels that chance does not explain",
    )


@statistic(
    TABLE.name,
    lambda intervention, column: (
        "Kendall's tau with the share of right answers, "
        f"{'high' if EXPECTED[intervention, column] < 0 else 'low'} values first"
    ),
    limits=DIFFERENCE,
)
def ordered(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """Kendall's tau of the accuracy and of the order by a measure. The remarks hold that of norms.

    A measure puts those models first that have memorised less according to the paper. A norm puts
    the models with small norms first.
    """
    tau = partial(associated, information, intervention, kendall)
    towards = -EXPECTED[intervention, column]
    compared = {NORM_NAMES[name]: -tau(name, ACCURACY) for name in NORMS}
    compared |= {name: towards * tau(placebo, ACCURACY) for placebo, name in of_placebo(column)}
    compared[SHARE_ITSELF] = -tau(SHARE, ACCURACY)
    found = estimated(towards * tau(column, ACCURACY), compared, DIFFERENCE)
    remarks = (*few_levels(information, intervention, (ACCURACY,)), *found.remarks)
    return if_tied(found._replace(remarks=remarks), information, intervention)


@statistic(
    TABLE.name,
    "Kendall's tau with the share of right answers, small norms first, mean of the 2-norm and the "
    "Frobenius norm",
    limits=DIFFERENCE,
)
def ordered_by_norms(information: pd.DataFrame, intervention: str) -> Estimate:
    """Kendall's tau of the accuracy and of the order by norms, small norms first."""
    tau = partial(associated, information, intervention, kendall)
    compared = {NORM_NAMES[name]: -tau(name, ACCURACY) for name in NORMS}
    share = {SHARE_ITSELF: -tau(SHARE, ACCURACY)}
    found = estimated(sum(compared.values()) / len(NORMS), {**compared, **share}, DIFFERENCE)
    remarks = (*few_levels(information, intervention, (ACCURACY,)), *found.remarks)
    return if_tied(found._replace(remarks=remarks), information, intervention)


@statistic(
    TABLE.name,
    "Kendall's tau with accuracy, of the order by the measure minus the mean of the orders by both "
    "norms",
    limits=TAU_DIFFERENCE,
)
def ordered_better(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """Kendall's tau of a measure (see `ordered`) minus the mean tau of the norms."""
    tau = partial(associated, information, intervention, kendall)
    norms = sum(-tau(name, ACCURACY) for name in NORMS) / len(NORMS)
    ahead = -EXPECTED[intervention, column] * tau(column, ACCURACY) - norms
    return over_seeds(ahead, remarks=few_levels(information, intervention, (ACCURACY,)))


def if_tied(found: Estimate, information: pd.DataFrame, intervention: str) -> Estimate:
    """The estimate, with the p-value of random orders if all seeds have one value.

    Runs have the full order in all models of all seeds, or its reverse, by chance only in 2 of
    (n!)^s cases, for n runs and s seeds; the models of a seed are not counted, because they share
    their strings. Few runs have few orders: more values of the share would break another tie.
    """
    if len(found.values) < 2 or found.lower < found.upper:
        return found
    n_runs = of_intervention(information, intervention)[SHARE].nunique()
    if abs(found.mean) == 1:
        return found._replace(p_of_chance=2 / math.factorial(n_runs) ** len(found.values))
    remark = f"more values of {GREEK[intervention]} would break the tie"
    return found._replace(remarks=(remark, *found.remarks))
