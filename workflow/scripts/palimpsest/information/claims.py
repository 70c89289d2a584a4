"""The claims on information measures of neurons, each with the statistic that tests the claim.

The paper's claim: heuristic memorisation makes activations less diverse (lower entropy, higher
mutual information), and example-level memorisation makes them more diverse. Its appendices C.1,
C.2, C.4 and D.2 say where in a model this shows, whether it depends on the model's depth, and how
the measures go with norms and with accuracy. The claims on random markers and on memorised strings
are Palimpsest's own. A string is memorised if its loss is below the Bayes-optimal loss, that of the
language of the training strings.

Measures are those of the neurons of feed-forward layers at the symbol before the answer, mean over
neurons or pairs, then over layers. A statistic compares the runs of one seed. So it has one value
per seed, and its interval is over the seeds; every seed has strings and models of its own.

The claims on the epoch at which contextual memorisation starts are on models that are fine-tuned on
strings without markers. They are about all layers, and their placebo are fresh strings.

Placebos are in the notes. Some are an innocent change of the training strings: random markers
against none (`trends.with_innocent`). Some are the mutual information of pairs whose strings are in
a random order, which is the estimator alone, or strings never trained on in place of trained ones.
A measure that follows the share goes with everything else that follows the share; so beside
correlations stands that of the share itself.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.claims import (
    DIFFERENCE,
    LANGUAGE,
    NO_THRESHOLD,
    STAND_INS,
    Claim,
    Estimate,
    Region,
    above,
    at_least,
    at_most,
    below,
    between,
    over_seeds,
)
from palimpsest.information.epochs import NEIGHBOURS, changes, starts
from palimpsest.information.kinds import EPOCHS, MARKERS, SHUFFLES
from palimpsest.information.kinds import INFORMATION as TABLE
from palimpsest.information.trends import (
    ACCURACY,
    ENTROPY,
    GREEK,
    INFORMATION,
    INNOCENT,
    MEASURES,
    MEMORISED,
    NORMS,
    PLACEBOS,
    SHARE,
    UNIT,
    associated,
    at_site,
    by_model,
    degenerate,
    fisher,
    kendall,
    late_trend,
    of_intervention,
    runs_of,
    trend,
    with_innocent,
)
from palimpsest.report.number_format import interval_note, mean_note, percent
from palimpsest.statistics import CONFIDENCE, chance_of_equal_orders, student
from palimpsest.variants import FRESH, REPEATED

QUESTIONS = {
    "information_induced": "Was memorisation induced as intended?",
    "information_heuristic": "Are activations less diverse where a shortcut is memorised?",
    "information_example": "Are activations more diverse where strings are learned by heart?",
    "information_innocent": "Does memorisation change the measures more than an innocent change?",
    "information_depth": "Do the trends hold for models of every depth?",
    "information_norms": "Do the measures say more than norms of weights?",
    "information_accuracy": "Do the measures tell which model is accurate?",
    "information_memorised": "Do the measures know how many strings are memorised?",
    "information_epochs": "Does anything inside change when contextual memorisation starts?",
}
NAMES = {ENTROPY: "Entropy", INFORMATION: "Mutual information"}
NORM_NAMES = {"two_norm": "2-norm", "frobenius": "Frobenius norm"}
HEURISTIC, EXAMPLE = "heuristic memorisation", "example-level memorisation"
MEMORISATION = {MARKERS: HEURISTIC, SHUFFLES: EXAMPLE}
# The signs that the paper expects of a measure's change with the share that is memorised
EXPECTED = {
    (MARKERS, ENTROPY): -1,
    (MARKERS, INFORMATION): 1,
    (SHUFFLES, ENTROPY): 1,
    (SHUFFLES, INFORMATION): -1,
}
BOTH = tuple(EXPECTED)
QUESTION_OF = {MARKERS: "information_heuristic", SHUFFLES: "information_example"}
VERBS = {-1: "falls", 1: "rises"}
CAREFUL = 1 - (1 - CONFIDENCE) / 2  # of an interval that is one of two
# Pearson: below it, less than a quarter of the variance of one is in the other
STRONG = 0.5
TAU_DIFFERENCE = (-2.0, 2.0)
WEAKEST = "seeds, at the weakest depth"
OF_SIZES = "seeds, of two sizes"
OF_FISHER = "seeds, by Fisher's transformation"
SHARE_ITSELF = "share in place of the measure"
BOTH_NORMS = "the 2-norm and with the Frobenius norm, mean of both"


def signed(sign: int) -> Region:
    """Above 0 or below 0."""
    return above(0) if sign > 0 else below(0)


def strongly(sign: int) -> Region:
    """A strong correlation with this sign."""
    return at_least(STRONG) if sign > 0 else at_most(-STRONG)


def estimated(values: pd.DataFrame, beside: Mapping[str, pd.DataFrame]) -> Estimate:
    """An estimate over the seeds, with what stands beside it, by name, in the marks.

    All frames hold values by seed (rows) and model (columns).
    """
    marks = [note(name, other) for name, other in beside.items()]
    return over_seeds(values)._replace(marks=tuple(filter(None, marks)))


def note(name: str, values: pd.DataFrame) -> str:
    """The mean over models and its interval over the seeds; empty without interval."""
    return mean_note(name, values.mean(axis=1).dropna())


def placebos(
    information: pd.DataFrame, intervention: str, column: str, statistic: Callable
) -> dict[str, pd.DataFrame]:
    """A statistic of the innocent change and of a column's placebo, if it has one; by name."""
    found = {"random markers against none": statistic(with_innocent(information), INNOCENT, column)}
    for placebo, name in of_placebo(column):
        found[name] = statistic(information, intervention, placebo)
    return found


def of_placebo(column: str) -> list[tuple[str, str]]:
    """The column of a column's placebo and its name in words; empty if it has none."""
    return [PLACEBOS[column]] if column in PLACEBOS else []


# Was memorisation induced?


def led_astray(information: pd.DataFrame) -> Estimate:
    """Accuracy where the marker agrees minus where it disagrees, at the highest alpha.

    The same at alpha 0, where markers are random, is in the marks.
    """
    rows = of_intervention(information, MARKERS)
    gap = rows["accuracy_agrees"] - rows["accuracy_disagrees"]
    by_share = gap.groupby([rows[key] for key in (*UNIT, SHARE)]).mean()
    at = {share: by_model(own) for share, own in by_share.groupby(level=SHARE)}
    highest = at[max(at)] if at else pd.DataFrame()
    return estimated(highest, {"alpha 0": at[0.0]} if 0.0 in at else {})


def changed(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The slope of a column on the share, from share 0 to 1."""
    values = trend(information, intervention, column)
    found = estimated(values, placebos(information, intervention, column, trend))
    if column not in MEASURES:
        return found
    return found._replace(marks=(*found.marks, *left_out(information, intervention)))


def left_out(information: pd.DataFrame, intervention: str) -> list[str]:
    """A mark on neurons that are in no mean, if there are any."""
    shares = degenerate(information, intervention)
    if not shares.sum():
        return []
    return [
        f"constant neurons, which are left out: {percent(shares.iloc[0])} at "
        f"{GREEK[intervention]} {shares.index[0]:g}, {percent(shares.iloc[-1])} at "
        f"{shares.index[-1]:g}"
    ]


def changed_late(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The slope in the last layer minus that in the first."""
    values = late_trend(information, intervention, column)
    return estimated(values, placebos(information, intervention, column, late_trend))


def beyond_innocent(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The size of the mean slope minus the size of what random markers change on average."""
    innocent = trend(with_innocent(information), INNOCENT, column)
    return size_difference(trend(information, intervention, column), innocent)


def size_difference(one: pd.DataFrame, other: pd.DataFrame) -> Estimate:
    """The size (absolute value) of a mean minus that of another mean.

    The mean over seeds of absolute values would be larger for what has more noise. So the interval
    is made of those of s one + t other, for all signs s and t: the size of `one` is larger by d if,
    for one of the two s, both are at least d. There are two s and two t, so each end is corrected
    for two (Bonferroni).

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
    ends = [
        [student(s * known["one"] + t * known["other"], confidence=CAREFUL)[1:] for t in (-1, 1)]
        for s in (-1, 1)
    ]
    lower, upper = np.max(np.min(ends, axis=1), axis=0)
    return Estimate(tuple(values), values.mean(), lower, upper, OF_SIZES)


# Depth


def by_depth(values: pd.DataFrame, information: pd.DataFrame) -> pd.DataFrame:
    """Values by seed and depth, means over models, from values by seed and model.

    Depths without any value are left out.
    """
    depths = information.groupby("model")["n_layers"].first()
    found = values.T.groupby(depths.reindex(values.columns)).mean().T
    return found.dropna(axis=1, how="all")


def at_every_depth(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The slope of the depth where it is the weakest, in the direction that is expected.

    The interval is one for the smallest mean of all depths. Its lower end is the lowest of the
    depths' own. The upper end is corrected for the number of depths (Bonferroni), because the
    smallest of several is low by chance.
    """
    values = EXPECTED[intervention, column] * trend(information, intervention, column)
    depths = by_depth(values, information)
    if len(depths.columns) < 2:
        return Estimate()
    known = [own.dropna() for _, own in depths.items()]
    plain = pd.DataFrame([student(own) for own in known])
    careful = [student(own, confidence=1 - (1 - CONFIDENCE) / len(known)).upper for own in known]
    ends = [plain["lower"].min(skipna=False), np.min(careful)]
    weakest = known[plain["mean"].argmin()]
    models = values.mean().to_dict()
    return Estimate(tuple(weakest), weakest.mean(), *ends, over=WEAKEST, models=models)


def apart(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The size of the difference of the deepest and the shallowest models, minus that of the slope.

    Both are means over the seeds.
    """
    runs = runs_of(of_intervention(information, intervention), (column,))
    levels = by_depth(by_model(runs.set_index(UNIT)[column]), information)
    if len(levels.columns) < 2:
        return Estimate()
    ends = levels[[levels.columns.max()]] - levels[[levels.columns.min()]].to_numpy()
    return size_difference(ends, trend(information, intervention, column))


# Norms, accuracy and memorised strings


def correlated(
    information: pd.DataFrame,
    intervention: str,
    column: str,
    others: tuple[str, ...],
    towards: int = 1,
) -> Estimate:
    """Pearson's correlation of a measure with other columns over the runs of a seed.

    Mean over these columns and over the seeds, by Fisher's transformation. With `towards` of -1,
    the measure counts negatively.
    """

    def mean(one: str) -> pd.DataFrame:
        return sum(of(one, other) for other in others) / len(others)

    of = partial(associated, information, intervention, fisher)
    beside = {} if len(others) == 1 else {NORM_NAMES[name]: of(column, name) for name in others}
    beside |= {name: mean(placebo) for placebo, name in of_placebo(column)}
    beside = {name: towards * values for name, values in beside.items()}
    beside[SHARE_ITSELF] = mean(SHARE)
    found = over_seeds(towards * mean(column))
    marks = [
        interval_note(name, *np.tanh(student(values.mean(axis=1).dropna())))
        for name, values in beside.items()
    ]
    return Estimate(
        tuple(np.tanh(found.values)),
        *np.tanh([found.mean, found.lower, found.upper]),
        over=OF_FISHER,
        models={name: np.tanh(value) for name, value in found.models.items()},
        marks=tuple(filter(None, marks)),
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
    return correlated(information, intervention, column, NORMS, towards)


def ordered(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """Kendall's tau of the accuracy and of the order by a measure; the same of norms in the marks.

    A measure puts those models first that have memorised less according to the paper. A norm puts
    the models with small norms first.
    """
    tau = partial(associated, information, intervention, kendall)
    towards = -EXPECTED[intervention, column]
    beside = {NORM_NAMES[name]: -tau(name, ACCURACY) for name in NORMS}
    beside |= {name: towards * tau(placebo, ACCURACY) for placebo, name in of_placebo(column)}
    return if_tied(estimated(towards * tau(column, ACCURACY), beside), information, intervention)


def ordered_better(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """The same tau of a measure minus the mean of those of the norms."""
    tau = partial(associated, information, intervention, kendall)
    norms = sum(-tau(name, ACCURACY) for name in NORMS) / len(NORMS)
    return over_seeds(-EXPECTED[intervention, column] * tau(column, ACCURACY) - norms)


def knows(information: pd.DataFrame, intervention: str, column: str) -> Estimate:
    """Kendall's tau of a measure and the share of memorised training strings.

    The same with strings that were never trained on is in the marks.
    """
    tau = partial(associated, information, intervention, kendall)
    beside = {name: tau(column, placebo) for placebo, name in of_placebo(MEMORISED)}
    beside |= {name: tau(placebo, MEMORISED) for placebo, name in of_placebo(column)}
    beside[SHARE_ITSELF] = tau(SHARE, MEMORISED)
    return if_tied(estimated(tau(column, MEMORISED), beside), information, intervention)


def if_tied(found: Estimate, information: pd.DataFrame, intervention: str) -> Estimate:
    """With a mark on how often chance alone would tie the seeds, if all have the same value.

    Few runs have few orders. More values of the share would break a tie.
    """
    if len(found.values) < 2 or found.lower < found.upper:
        return found
    n_runs = of_intervention(information, intervention)[SHARE].nunique()
    n_seeds, n_models = len(found.values), max(1, len(found.models or ()))
    chance = 100 * chance_of_equal_orders(n_runs, n_seeds, n_models)
    mark = (
        f"random orders of {n_runs} runs would tie {n_seeds} seeds in {chance:.2g} % of cases; "
        f"more values of {GREEK[intervention]} would break the tie"
    )
    return found._replace(marks=(mark, *found.marks))


def at_start(epochs: pd.DataFrame, column: str) -> Estimate:
    """The change in the epoch at which memorisation starts, beyond fresh strings and other epochs.

    At the same site as all claims.
    """
    rows = at_site(epochs)
    found = changes(rows, column)
    values = found[REPEATED] - found[FRESH] - found[NEIGHBOURS]
    beside = {
        "repeated strings": found[REPEATED],
        "fresh strings": found[FRESH],
        f"repeated minus fresh, {NEIGHBOURS}": found[NEIGHBOURS],
    }
    start = starts(rows)
    known = start.dropna()
    marks = [f"{len(known)} of {len(start)} models have a start"]
    if len(known):
        marks.append(f"epoch {known.median():g} (median)")
    constant = (rows["n_degenerate"] / rows["n_neurons"]).groupby(rows["epoch"]).mean()
    marks.append(
        f"constant neurons, which are left out: {percent(constant.iloc[0])} before, "
        f"{percent(constant.iloc[-1])} at the end"
    )
    estimate = estimated(values, beside)
    return estimate._replace(
        marks=(*estimate.marks, *marks), coverage=float(rows["coverage"].min())
    )


CLAIMS = [
    Claim(
        "information_induced",
        "A model that is trained with markers that are the answer goes by the marker.",
        TABLE.name,
        "share of right answers where the marker agrees minus where it disagrees, at the highest "
        "alpha",
        above(0),
        led_astray,
        limits=DIFFERENCE,
        evidence=(NO_THRESHOLD,),
    ),
    *(
        Claim(
            "information_induced",
            f"More {memorisation} makes models less accurate on clean strings.",
            TABLE.name,
            f"change of the share of right answers from {GREEK[intervention]} 0 to 1 (least "
            "squares)",
            below(0),
            partial(changed, intervention=intervention, column=ACCURACY),
            evidence=(NO_THRESHOLD,),
        )
        for intervention, memorisation in MEMORISATION.items()
    ),
    Claim(
        "information_induced",
        "Where more answers are permuted, more training strings are memorised.",
        TABLE.name,
        "change of the share of training strings whose loss is below the Bayes-optimal loss, from "
        "beta 0 to 1 (least squares)",
        above(0),
        partial(changed, intervention=SHUFFLES, column=MEMORISED),
        evidence=(LANGUAGE,),
    ),
    *(
        Claim(
            QUESTION_OF[intervention],
            f"{NAMES[measure]} {VERBS[sign]} with {MEMORISATION[intervention]}.",
            TABLE.name,
            f"change of the mean from {GREEK[intervention]} 0 to 1 (nats, least squares)",
            signed(sign),
            partial(changed, intervention=intervention, column=measure),
            evidence=(NO_THRESHOLD,),
        )
        for (intervention, measure), sign in EXPECTED.items()
    ),
    *(
        Claim(
            QUESTION_OF[MARKERS],
            f"{NAMES[measure]} {VERBS[sign]} with {HEURISTIC} more in the last layer than in the "
            "first.",
            TABLE.name,
            "change of the mean from alpha 0 to 1 (nats, least squares), last minus first layer",
            signed(sign),
            partial(changed_late, intervention=MARKERS, column=measure),
            evidence=(NO_THRESHOLD,),
        )
        for (intervention, measure), sign in EXPECTED.items()
        if intervention == MARKERS
    ),
    *(
        Claim(
            "information_innocent",
            f"{NAMES[measure]} changes more with {MEMORISATION[intervention]} than with random "
            "markers.",
            TABLE.name,
            f"size of the change from {GREEK[intervention]} 0 to 1 minus size of the change from "
            "no markers to random ones (nats)",
            above(0),
            partial(beyond_innocent, intervention=intervention, column=measure),
            evidence=(NO_THRESHOLD,),
        )
        for intervention, measure in BOTH
    ),
    *(
        Claim(
            "information_depth",
            f"{NAMES[measure]} {VERBS[sign]} with {MEMORISATION[intervention]} in models of every "
            "depth.",
            TABLE.name,
            f"change of the mean from {GREEK[intervention]} 0 to 1 in the expected direction, at "
            "the depth with the weakest change (nats)",
            above(0),
            partial(at_every_depth, intervention=intervention, column=measure),
            evidence=(NO_THRESHOLD,),
        )
        for (intervention, measure), sign in EXPECTED.items()
    ),
    *(
        Claim(
            "information_depth",
            f"{NAMES[measure]} depends on a model's depth more than on "
            f"{MEMORISATION[intervention]}.",
            TABLE.name,
            "size of the difference of deepest and shallowest models minus size of the change from "
            f"{GREEK[intervention]} 0 to 1 (nats)",
            above(0),
            partial(apart, intervention=intervention, column=measure),
            evidence=(NO_THRESHOLD,),
        )
        for intervention, measure in BOTH
    ),
    *(
        Claim(
            "information_norms",
            f"{NAMES[measure]} hardly goes with norms of weights over models with more or less "
            f"{HEURISTIC}.",
            TABLE.name,
            f"Pearson correlation of the mean with {BOTH_NORMS}",
            between(-STRONG, STRONG),
            partial(correlated, intervention=MARKERS, column=measure, others=NORMS),
            limits=DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for measure in MEASURES
    ),
    *(
        Claim(
            "information_norms",
            f"{NAMES[measure]} goes with norms of weights over models with more or less {EXAMPLE}.",
            TABLE.name,
            f"Pearson correlation of the mean with {BOTH_NORMS}; above 0 if the measure "
            f"{VERBS[EXPECTED[SHUFFLES, measure]]} where norms change as they do with beta",
            at_least(STRONG),
            partial(correlated_as_norms_change, intervention=SHUFFLES, column=measure),
            limits=DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for measure in MEASURES
    ),
    *(
        Claim(
            "information_norms",
            f"{NAMES[measure]} orders models with more or less {HEURISTIC} better than norms do.",
            TABLE.name,
            "Kendall's tau with accuracy, of the order by the measure minus the mean of the orders "
            "by both norms",
            above(0),
            partial(ordered_better, intervention=MARKERS, column=measure),
            limits=TAU_DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for measure in MEASURES
    ),
    *(
        Claim(
            "information_accuracy",
            f"{NAMES[measure]} goes with accuracy over models with more or less "
            f"{MEMORISATION[intervention]}.",
            TABLE.name,
            "Pearson correlation of the mean with the share of right answers",
            strongly(-sign),
            partial(correlated, intervention=intervention, column=measure, others=(ACCURACY,)),
            limits=DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for (intervention, measure), sign in EXPECTED.items()
    ),
    *(
        Claim(
            "information_accuracy",
            f"{NAMES[measure]} orders models with more or less {MEMORISATION[intervention]} as "
            "their accuracy does.",
            TABLE.name,
            "Kendall's tau with the share of right answers, "
            f"{'high' if sign < 0 else 'low'} values first",
            above(0),
            partial(ordered, intervention=intervention, column=measure),
            limits=DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for (intervention, measure), sign in EXPECTED.items()
    ),
    *(
        Claim(
            "information_memorised",
            f"{NAMES[measure]} is {'higher' if measure == ENTROPY else 'lower'} where more strings "
            f"are memorised, over models with more or less {MEMORISATION[intervention]}.",
            TABLE.name,
            "Kendall's tau of the mean and the share of training strings whose loss is below the "
            "Bayes-optimal loss",
            signed(EXPECTED[SHUFFLES, measure]),
            partial(knows, intervention=intervention, column=measure),
            limits=DIFFERENCE,
            evidence=(LANGUAGE,),
        )
        for intervention, measure in BOTH
    ),
    *(
        Claim(
            "information_epochs",
            f"{NAMES[measure]} {VERBS[EXPECTED[SHUFFLES, measure]]} in the epoch at which "
            "contextual memorisation starts, more than on fresh strings and in the epochs around.",
            EPOCHS.name,
            "change of the mean over all layers in the first epoch after which clearly more "
            "training strings than others are memorised, minus the same on fresh strings, minus "
            "this difference in the epochs before and after (nats)",
            signed(EXPECTED[SHUFFLES, measure]),
            partial(at_start, column=measure),
            evidence=(STAND_INS,),
        )
        for measure in MEASURES
    ),
]
