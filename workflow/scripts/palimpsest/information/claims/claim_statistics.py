"""The statistics of the claims on information measures of neurons.

Measures are those of the neurons of feed-forward layers at the symbol before the answer, mean over
neurons or pairs, then over layers. A statistic compares the runs of one seed. So it has one value
per seed, and its interval is over the seeds; every seed has strings and models of its own.

What a statistic has to be compared with stands in the remarks of its estimate: placebos, norms, and
the share itself. Some placebos are a change of the training strings that induces no memorisation:
random markers against none (`trends.with_random_markers`). Some are the mutual information of pairs
whose strings are permuted, which is the estimator alone, or strings never trained on in place of
trained ones. A measure that follows the share goes with everything else that follows the share; so
correlations are compared with those of the share itself.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np
import pandas as pd

from palimpsest import claims
from palimpsest.claims import (
    ANY_NUMBER,
    DIFFERENCE,
    LANGUAGE,
    NO_THRESHOLD,
    STAND_INS,
)
from palimpsest.claims import SHARE as SHARES
from palimpsest.estimates import (
    Estimate,
    clipped,
    interval_note,
    largest_size,
    lowest,
    over_seeds,
)
from palimpsest.information.epochs import (
    BEYOND,
    NEIGHBOURS,
    apart_at_the_end,
    changes,
    starts,
)
from palimpsest.information.interventions import FRESH, REPEATED
from palimpsest.information.kinds import EPOCHS, MARKERS, SHUFFLES
from palimpsest.information.kinds import INFORMATION as TABLE
from palimpsest.information.trends import (
    ACCURACY,
    CONTEXTUAL,
    ENTROPY,
    GREEK,
    INFORMATION,
    LEVELS,
    MEASURES,
    MEMORISED,
    NORMS,
    PLACEBOS,
    RANDOM_MARKERS,
    RUN,
    SHARE,
    UNIT,
    associated,
    at_site,
    by_model,
    degenerate,
    fisher,
    kendall,
    of_intervention,
    runs_of,
    trend,
    trend_of_ends,
    with_levels,
    with_random_markers,
)
from palimpsest.number_format import percent
from palimpsest.statistics import (
    CONFIDENCE,
    Interval,
    student,
    student_p_value,
)

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
CAREFUL = 1 - (1 - CONFIDENCE) / 2  # of an interval that is one of two
# Pearson: below it, less than a quarter of the variance of one is in the other
STRONG = 0.5
COVERED = 0.95  # share of training strings with stand-ins
TAU_DIFFERENCE = (-2.0, 2.0)
WEAKEST = "seeds, at the weakest depth"
WEAKER = "seeds, the weaker of both"
STRONGEST = "seeds, at the strongest correlation"
OF_SIZES = "seeds, of two sizes"
OF_FISHER = "seeds, by Fisher's transformation"
SHARE_ITSELF = "share in place of the measure"
AGAINST_NONE = "random markers against none"


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
    of_mean: Callable[[Interval], Iterable[float]] = tuple,
) -> tuple[str, ...]:
    """A remark for each name: the mean over models and its interval over the seeds.

    There is none without interval. `of_mean` is applied to the mean and to both ends, and limits to
    the ends.
    """
    found = {
        name: Interval(*of_mean(student(values.mean(axis=1).dropna())))
        for name, values in compared.items()
    }
    return tuple(interval_note(name, clipped(own, limits)) for name, own in found.items())


def placebos(
    information: pd.DataFrame, intervention: str, column: str, statistic: Callable
) -> dict[str, pd.DataFrame]:
    """A statistic of random markers and of a column's placebo, if it has one; by name."""
    found = {AGAINST_NONE: statistic(with_random_markers(information), RANDOM_MARKERS, column)}
    for placebo, name in of_placebo(column):
        found[name] = statistic(information, intervention, placebo)
    return found


def of_placebo(column: str) -> list[tuple[str, str]]:
    return [PLACEBOS[column]] if column in PLACEBOS else []


# Several means in one claim


def size_difference(one: pd.DataFrame, other: pd.DataFrame) -> Estimate:
    """The size (absolute value) of a mean minus that of another mean.

    The mean over seeds of absolute values would be larger for what has more noise. So the interval
    is made of those of s one + t other, for all signs s and t: the size of `one` is larger by d if,
    for one of the two s, both are at least d. There are two s and two t, so each end is corrected
    for two (Bonferroni). The p-value of 0 follows the same rule.

    Parameters
    ----------
    one, other : values by seed (rows) and model (columns)
    """
    one, other = (each.mean(axis=1) for each in (one, other))
    known = pd.concat([one, other], axis=1, keys=["one", "other"]).dropna()
    if known.empty:
        return Estimate()
    signs = np.where(known.mean() < 0, -1, 1)
    values = signs[0] * known["one"] - signs[1] * known["other"]
    sums = [[s * known["one"] + t * known["other"] for t in (-1, 1)] for s in (-1, 1)]
    ends = [[student(own, confidence=CAREFUL)[1:] for own in of_sign] for of_sign in sums]
    lower, upper = np.max(np.min(ends, axis=1), axis=0)
    p_values = np.array([[2 * student_p_value(own, 0) for own in of_sign] for of_sign in sums])
    above = np.array([[own.mean() > 0 for own in of_sign] for of_sign in sums])
    larger = np.where(above, p_values, 1).max(axis=1).min()
    smaller = np.where(above, 1, p_values).min(axis=1).max()
    p_value = float(np.minimum(1, np.minimum(larger, smaller)))
    return Estimate(tuple(values), values.mean(), lower, upper, OF_SIZES, p_value=p_value)


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
            "change of the share of training strings whose loss is below the Bayes-optimal loss, "
            f"{to_one} (least squares)"
        )
    return f"change of the mean {to_one} (nats, least squares)"


@statistic(
    TABLE.name,
    words_of_change,
    evidence=lambda column: LANGUAGE if column == MEMORISED else NO_THRESHOLD,
)
def changed(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The slope of a column on the share: the change from share 0 to 1."""
    values = trend(information, intervention, column)
    found = estimated(values, placebos(information, intervention, column, trend))
    if column not in MEASURES:
        return found
    return found._replace(remarks=(*found.remarks, *left_out(information, intervention)))


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


@statistic(
    TABLE.name,
    "the smaller of two changes in the expected direction from alpha 0 to 1 (nats, least squares): "
    "in the last layer, and in the last minus the first layer",
)
def changed_late(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The smaller of two slopes: in the last layer, and in the last minus in the first layer.

    Both slopes count in the expected direction. So a measure that changes in the other direction,
    and changes less in the last layer, does not count.
    """
    sign = EXPECTED[intervention, column]
    first, last = trend_of_ends(information, intervention, column)
    both = [sign * last, sign * (last - first)]
    found = lowest([values.mean(axis=1) for values in both], WEAKER, bound=0)
    compared = {"last layer": last, "first layer": first}
    compared |= placebos(information, intervention, column, later)
    models = np.minimum(*(values.mean() for values in both)).to_dict()
    return found._replace(models=models, remarks=notes(compared))


def later(information: pd.DataFrame, intervention: str, column: str) -> pd.DataFrame:
    first, last = trend_of_ends(information, intervention, column)
    return last - first


@statistic(
    TABLE.name,
    lambda intervention: (
        f"size of the change from {GREEK[intervention]} 0 to 1 minus size of the "
        "change from no markers to random ones (nats)"
    ),
)
def beyond_random_markers(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The absolute mean slope minus the absolute mean change by random markers."""
    change = trend(with_random_markers(information), RANDOM_MARKERS, column)
    return size_difference(trend(information, intervention, column), change)


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
    TABLE.name,
    lambda intervention: (
        "size of the difference of deepest and shallowest models minus size of the "
        f"change from {GREEK[intervention]} 0 to 1 (nats)"
    ),
)
def apart(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The absolute difference of the deepest and the shallowest models, minus that of the slope.

    Both are means over the seeds.
    """
    runs = runs_of(of_intervention(information, intervention), (column,))
    levels = by_depth(by_model(runs.set_index(UNIT)[column]), information)
    if len(levels.columns) < 2:
        return Estimate()
    ends = levels[[levels.columns.max()]] - levels[[levels.columns.min()]].to_numpy()
    return size_difference(ends, trend(information, intervention, column))


# Norms, accuracy and memorised strings


@statistic(
    TABLE.name,
    "Pearson correlation of the mean with the share of right answers",
    limits=DIFFERENCE,
)
def correlated_with_accuracy(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The correlation of a measure with accuracy. The p-value is of `STRONG`, in the expected sign.

    A measure that rises with the share falls with accuracy, which the share lowers.
    """
    bound = -EXPECTED[intervention, column] * STRONG
    return correlated(information, intervention, column, (ACCURACY,), bound)


def correlated(
    information: pd.DataFrame,
    intervention: str,
    column: str,
    others: tuple[str, ...],
    bound: float,
    towards: int = 1,
) -> Estimate:
    """Pearson's correlation of a measure with other columns over the runs of a seed.

    Mean over these columns and over the seeds, by Fisher's transformation. The p-value is of
    `bound`. With `towards` of -1, the measure counts negatively.
    """

    def mean(one: str) -> pd.DataFrame:
        return towards * sum(of(one, other) for other in others) / len(others)

    of = partial(associated, information, intervention, fisher)
    compared = {}
    if len(others) > 1:
        compared = {NORM_NAMES[name]: towards * of(column, name) for name in others}
    compared |= {name: mean(placebo) for placebo, name in of_placebo(column)}
    compared[SHARE_ITSELF] = towards * mean(SHARE)
    found = over_seeds(mean(column))
    return of_transformed(found, OF_FISHER)._replace(
        p_value=student_p_value(found.values, np.arctanh(bound)),
        models={name: np.tanh(value) for name, value in found.models.items()},
        remarks=(*few_levels(information, intervention, others), *notes(compared, of_mean=np.tanh)),
    )


def of_transformed(found: Estimate, over: str) -> Estimate:
    mean, lower, upper = np.tanh([found.mean, found.lower, found.upper])
    return found._replace(
        values=tuple(np.tanh(found.values)), mean=mean, lower=lower, upper=upper, over=over
    )


@statistic(
    TABLE.name,
    lambda intervention, column: (
        "Pearson correlation of the mean with the 2-norm and with the "
        "Frobenius norm, mean of both; above 0 if the measure "
        f"{VERBS[EXPECTED[intervention, column]]} where norms change as they do with beta"
    ),
    limits=DIFFERENCE,
)
def correlated_as_norms_change(
    information: pd.DataFrame, intervention: str, column: str
) -> Estimate:
    """The correlation of a measure with norms; above 0 if both change as expected with the share.

    The paper's correlations are absolute values. Ours have signs: the sign that is expected of the
    measure, times that of the change of norms, which may rise or fall.
    """
    norms = [associated(information, intervention, fisher, SHARE, name) for name in NORMS]
    fall = pd.concat(norms, axis=1).mean(axis=1).mean() < 0
    towards = EXPECTED[intervention, column] * (-1 if fall else 1)
    return correlated(information, intervention, column, NORMS, STRONG, towards)


@statistic(
    TABLE.name,
    "size of the strongest Pearson correlation of the mean with a norm (2-norm or Frobenius norm), "
    "of all models",
    limits=SHARES,
)
def strongest_with_norms(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The size of the strongest correlation of a measure with a norm, of all norms and models.

    Correlations of different signs must not cancel out, so there is no mean over norms or models.
    The p-value is of `STRONG`. The remarks hold the same statistic of each norm alone, of the
    placebo and of the share.
    """

    def of(one: str, *norms: str) -> pd.DataFrame:
        transformed = partial(associated, information, intervention, fisher, one)
        return pd.concat([transformed(name) for name in norms], axis=1, keys=norms)

    every = of(column, *NORMS)
    if every.empty:
        return Estimate()
    compared = {NORM_NAMES[name]: of(column, name) for name in NORMS}
    compared |= {words: of(placebo, *NORMS) for placebo, words in of_placebo(column)}
    compared[SHARE_ITSELF] = of(SHARE, *NORMS)
    remarks = [interval_note(name, strongest(values)) for name, values in compared.items()]
    models = np.tanh(every.mean().abs()).groupby(level="model").max()
    return strongest(every)._replace(models=models.to_dict(), remarks=tuple(remarks))


def strongest(transformed: pd.DataFrame) -> Estimate:
    """The size of the strongest of several correlations; the p-value is of `STRONG`.

    `transformed` are correlations by Fisher's transformation, by seed (rows), one column for each.
    """
    columns = [own for _, own in transformed.items()]
    found = largest_size(columns, STRONGEST, bound=np.arctanh(STRONG))
    return of_transformed(found, STRONGEST)


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


# Of a column with a share of memorised strings: which strings these are, and what that rests on
MEMORISED_AS = {
    MEMORISED: ("whose loss is below the Bayes-optimal loss", LANGUAGE),
    CONTEXTUAL: (
        "with stand-ins whose loss at the end is below their contextual threshold",
        STAND_INS,
    ),
}


@statistic(
    TABLE.name,
    lambda memorised: (
        "Kendall's tau of the mean and the share of training strings " + MEMORISED_AS[memorised][0]
    ),
    limits=DIFFERENCE,
    evidence=lambda memorised: MEMORISED_AS[memorised][1],
)
def knows(information: pd.DataFrame, intervention: str, column: str, memorised: str) -> Estimate:
    """Kendall's tau of a measure and the share of training strings that are memorised.

    `memorised` is the column with this share. The remarks hold the tau with strings that were never
    trained on. The contextual share counts only where nearly all training strings have stand-ins:
    otherwise, the shares of different runs are about different strings.
    """
    counted, remarks = information, ()
    if memorised == CONTEXTUAL:
        rows = of_intervention(information, intervention)
        n_runs = len(rows.groupby(RUN))
        counted = information[information["coverage"] >= COVERED]
        n_counted = len(of_intervention(counted, intervention).groupby(RUN))
        if n_counted < n_runs:
            remarks = (
                f"{n_runs - n_counted} of {n_runs} runs do not count: fewer than "
                f"{percent(COVERED)} of their training strings have stand-ins",
            )
    tau = partial(associated, counted, intervention, kendall)
    compared = {name: tau(column, placebo) for placebo, name in of_placebo(memorised)}
    compared |= {name: tau(placebo, memorised) for placebo, name in of_placebo(column)}
    compared[SHARE_ITSELF] = tau(SHARE, memorised)
    found = estimated(tau(column, memorised), compared, DIFFERENCE)
    coverage = float(of_intervention(counted, intervention)["coverage"].min())
    found = found._replace(coverage=coverage, remarks=(*remarks, *found.remarks))
    return if_tied(found, counted, intervention)


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


# Epoch by epoch


@statistic(
    EPOCHS.name,
    "change of the mean over all layers in the first epoch after which clearly more training "
    "strings than others are memorised, minus the same on fresh strings, minus this difference in "
    "the epochs before and after (nats)",
    evidence=STAND_INS,
)
def at_start(epochs: pd.DataFrame, column: str) -> Estimate:
    """The change in the epoch at which memorisation starts, beyond fresh strings and other epochs.

    The site is that of all claims.
    """
    rows = at_site(epochs)
    if rows.empty:
        return Estimate()
    found = changes(rows, column)
    compared = {
        "repeated strings": found[REPEATED],
        "fresh strings": found[FRESH],
        f"repeated minus fresh, {NEIGHBOURS}": found[NEIGHBOURS],
    }
    compared |= {name: changes(rows, placebo)[BEYOND] for placebo, name in of_placebo(column)}
    start = starts(rows)
    known = start.dropna()
    remarks = [f"{len(known)} of {len(start)} runs have a start"]
    if len(known):
        remarks.append(f"epoch {known.median():g} (median)")
    constant = (rows["n_degenerate"] / rows["n_neurons"]).groupby(rows["epoch"]).mean()
    remarks.append(
        f"constant neurons, which are left out: {percent(constant.iloc[0])} before, "
        f"{percent(constant.iloc[-1])} at the end"
    )
    estimate = estimated(found[BEYOND], compared)
    return estimate._replace(
        remarks=(*estimate.remarks, *remarks), coverage=float(rows["coverage"].min())
    )


@statistic(
    EPOCHS.name,
    "mean over all layers after the last epoch, repeated minus fresh strings (nats)",
)
def at_the_end(epochs: pd.DataFrame, column: str) -> Estimate:
    """A measure after the last epoch: repeated minus fresh strings. The site is that of all claims.

    Until the end of the first epoch, both are equal.
    """
    rows = at_site(epochs)
    if rows.empty:
        return Estimate()
    compared = {name: apart_at_the_end(rows, placebo) for placebo, name in of_placebo(column)}
    found = estimated(apart_at_the_end(rows, column), compared)
    return found._replace(remarks=(f"after epoch {rows['epoch'].max()}", *found.remarks))
