"""The statistics that test the claims on memorisation profiles.

All are on the log-likelihood, by difference-in-differences where nothing else is said. A statistic
has one value per seed, and its interval is over the seeds. Every seed has strings and models of its
own.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from palimpsest.claims import NO_THRESHOLD, NOT_NEGATIVE, RETRAINING, Case, statistic
from palimpsest.estimates import Estimate, clipped, interval_note, lowest, over_seeds
from palimpsest.number_format import number
from palimpsest.profiles import kinds, summaries
from palimpsest.profiles.dilution_effects import MEAN, at_the_end, contrasts
from palimpsest.profiles.kinds import (
    AFTER,
    BEFORE,
    DIFFERENCE,
    DIFFERENCE_IN_DIFFERENCES,
    LOG_LIKELIHOOD,
    SPECIFIC,
    TOTAL,
)
from palimpsest.profiles.schedules import association
from palimpsest.statistics import student, student_p_value

ESTIMATORS = (DIFFERENCE_IN_DIFFERENCES, DIFFERENCE)
CORRELATION = (-1.0, 1.0)
SMALLER = "seeds, of the smaller of two"


@statistic(
    kinds.PROFILE.name,
    "mean effect just after the treatment, largest minus smallest model (nats)",
    evidence=NO_THRESHOLD,
)
def stronger(profile: pd.DataFrame) -> Estimate:
    """Instantaneous memorisation of the largest model minus that of the smallest, in nats."""
    cells = summaries.instantaneous(summaries.estimates(profile))
    return beside_placebo(profile, cells, summaries.instantaneous)


@statistic(
    kinds.PROFILE.name,
    "mean effect at later times, largest minus smallest model (nats)",
    evidence=NO_THRESHOLD,
)
def more_persistent(profile: pd.DataFrame) -> Estimate:
    """Persistent memorisation of the largest model minus that of the smallest, in nats."""
    cells = summaries.persistent(summaries.estimates(profile))
    return beside_placebo(profile, cells, summaries.persistent)


def beside_placebo(profile: pd.DataFrame, cells: pd.DataFrame, part: Callable) -> Estimate:
    """The largest minus the smallest model. The remarks hold the same contrast of placebos."""
    placebos = part(summaries.estimates(profile, kinds.PLACEBO))
    _, lower, upper = student(summaries.largest_minus_smallest(placebos))
    remark = "" if pd.isna(lower) else f"placebos: {number(lower)} to {number(upper)} nats"
    return over_seeds(summaries.largest_minus_smallest(cells), remarks=[remark])


@statistic(
    kinds.PROFILE_SCHEDULES.name,
    "rank association over cohorts, between two recipes at equal position: difference of the "
    "learning rate, and of the effect just after the treatment",
    limits=CORRELATION,
    evidence=NO_THRESHOLD,
)
def follows_rate(table: pd.DataFrame) -> Estimate:
    """Whether memorisation follows the learning rate where the position is the same.

    In one recipe the two change together. The remark holds the same before the treatment.
    """
    before = association(table, "before").stack().groupby("seed").mean()
    remarks = [interval_note("before the treatment", student(before))]
    return over_seeds(association(table, "estimate"), remarks=remarks)


@statistic(
    kinds.PROFILE.name,
    "effect at the end of training, later minus earlier half of the cohorts (nats)",
    evidence=NO_THRESHOLD,
)
def recency(profile: pd.DataFrame) -> Estimate:
    """Residual memorisation of the later half of the cohorts minus that of the earlier half."""
    cells = summaries.residual(summaries.estimates(profile))
    return over_seeds(summaries.late_minus_early(cells))


@statistic(
    kinds.PROFILE.name,
    "effect just after the treatment, later minus earlier half of the cohorts (nats)",
    evidence=NO_THRESHOLD,
)
def early_effects(profile: pd.DataFrame) -> Estimate:
    """Instantaneous memorisation of the later half of the cohorts minus that of the earlier half.

    The remark holds the same two times before the treatment, where nothing is memorised yet.
    """
    cells = summaries.estimates(profile)
    before = summaries.late_minus_early(cells[cells["time"] == cells["cohort"] - 2])
    remarks = [interval_note("before the treatment", student(before.mean(axis=1)))]
    return over_seeds(summaries.late_minus_early(summaries.instantaneous(cells)), remarks=remarks)


@statistic(
    kinds.PROFILE.name,
    "share of cells after the treatment with a significant effect: on the log-likelihood minus on "
    "the token accuracy",
    limits=CORRELATION,
    evidence=NO_THRESHOLD,
)
def finer_outcome(profile: pd.DataFrame) -> Estimate:
    """How much more often the finer outcome shows an effect. The remark holds it before."""

    def shares(part: Callable) -> pd.DataFrame:
        fine, coarse = (
            part(summaries.estimates(profile, outcome=outcome))
            .groupby(["seed", "model"])["significant"]
            .mean()
            .unstack()
            for outcome in (LOG_LIKELIHOOD, kinds.TOKEN_ACCURACY)
        )
        return fine - coarse

    before = student(shares(summaries.before).mean(axis=1))
    remarks = [interval_note("before the treatment", before)]
    return over_seeds(shares(summaries.after), remarks=remarks)


def of_pairs(correlations: pd.DataFrame) -> list[Case]:
    """Every pair of two models is a case of its own, on each language."""
    rows = correlations[
        (correlations["outcome"] == LOG_LIKELIHOOD)
        & (correlations["model"] != correlations["other"])
    ]
    groups = rows.groupby(["language", "model", "other"], sort=False)
    return [
        Case(f"{language}: {one} and {other}", 2, (own,)) for (language, one, other), own in groups
    ]


def on_side(correlations: pd.DataFrame, cells: str, column: str = "correlation") -> pd.Series:
    """By seed: the correlation of the profiles of one pair of models."""
    return correlations[correlations["cells"] == cells].set_index("seed")[column]


@statistic(
    kinds.PROFILE_CORRELATION.name,
    "correlation of the profiles of two models after the treatment: how far it is above {least}, "
    "or above that before the treatment, whichever is less",
    limits=(-2, 2),
    evidence=NO_THRESHOLD,
    cases=of_pairs,
)
def predicts(correlations: pd.DataFrame, least: float) -> Estimate:
    """The correlation over the cells after the treatment, beyond `least` and that before.

    Models that are measured on the same strings have common errors, so that the correlation may be
    high where nothing is memorised. The claim holds if it is above both numbers. It is contradicted
    only if it is below `least`: a high correlation before the treatment is no sign that profiles
    differ. As in the paper, it is of the estimates, so that errors of one model alone lower it.

    Source: for two conditions in one verdict, see `estimates.lowest`.
    """
    after, before = (on_side(correlations, side) for side in (AFTER, BEFORE))
    beyond = [after - least, after - before]
    found = lowest(beyond, SMALLER)
    if np.isnan(found.lower):
        return found
    above, p_values = beyond[0].mean() > 0, [student_p_value(part, 0) for part in beyond]
    nothing = 1.0 if found.mean < 0 else max(p_values)
    notes = {
        "after": after,
        "before": before,
        "after, without what all cohorts have in common at a time since their treatment": on_side(
            correlations, AFTER, "within_lags"
        ),
    }
    return found._replace(
        upper=student(beyond[0]).upper,
        p_value=nothing if above else p_values[0],
        remarks=tuple(
            interval_note(name, clipped(student(own.dropna()), CORRELATION))
            for name, own in notes.items()
        ),
    )


@statistic(
    kinds.PROFILE_CORRELATION.name,
    "correlation of the two models' effects over cells after the treatment, minus that over cells "
    "before it",
    limits=(-2, 2),
    evidence=NO_THRESHOLD,
    cases=of_pairs,
)
def predicts_more_than_nothing(correlations: pd.DataFrame) -> Estimate:
    """The correlation over cells after the treatment minus that over cells before."""
    return over_seeds(on_side(correlations, AFTER) - on_side(correlations, BEFORE))


def measured(errors: pd.DataFrame, estimator: str, truth: str) -> pd.DataFrame:
    """The errors of an estimator after the treatment, indexed by seed and model."""
    rows = errors[
        (errors["outcome"] == LOG_LIKELIHOOD)
        & (errors["cells"] == AFTER)
        & (errors["estimator"] == estimator)
        & (errors["truth"] == truth)
    ]
    return rows.set_index(["seed", "model"])


@statistic(
    kinds.ESTIMATOR_ERRORS.name,
    "root mean square of its errors against retraining, divided by the difference's",
    limits=NOT_NEGATIVE,
    evidence=RETRAINING,
)
def error_ratio(errors: pd.DataFrame, truth: str) -> Estimate:
    """The root mean square error of difference-in-differences over that of the difference.

    Not the standard deviation of the errors of a run: all macro-batches of a run are compared with
    the same unseen strings, and that deviation leaves out the error which they share.
    """
    both, one = (measured(errors, name, truth)["rmse"] for name in ESTIMATORS)
    return over_seeds((both / one).unstack())


@statistic(
    kinds.ESTIMATOR_ERRORS.name,
    "root mean square of the errors of difference-in-differences against the total effect, divided "
    "by that against the specific effect",
    limits=NOT_NEGATIVE,
    evidence=RETRAINING,
)
def spread_of_general_effect(errors: pd.DataFrame) -> Estimate:
    """The error against the total effect divided by that against the specific effect."""
    total, specific = (
        measured(errors, DIFFERENCE_IN_DIFFERENCES, truth)["rmse"] for truth in (TOTAL, SPECIFIC)
    )
    return over_seeds((total / specific).unstack())


@statistic(
    kinds.NOTIONS.name,
    "{tolerated} times the specific effect by retraining, minus the size of the bias, which is "
    "beyond that on unseen strings, at the end (nats)",
    evidence=RETRAINING,
)
def bias_of_influence(notions: pd.DataFrame, tolerated: float) -> Estimate:
    """How far the bias of the influence function is below a share of the specific effect."""
    rows = summaries.minus_placebo(notions, kinds.INFLUENCE)
    estimate, specific = _by_seed(rows, "minus_placebo", "specific")
    return _within_a_share(estimate - specific, specific, tolerated)


@statistic(
    kinds.NOTIONS.name,
    "{tolerated} times the total effect by retraining, minus the size of the bias, at the end "
    "(nats)",
    evidence=RETRAINING,
)
def bias_of_removal(notions: pd.DataFrame, tolerated: float) -> Estimate:
    """The same of the paper's influence function (eq. 14), which removes strings and adds none.

    The remarks also hold its estimate on unseen strings: what it takes from all strings alike.
    """
    rows = notions[notions["notion"] == kinds.REMOVAL]
    estimate, total, unseen = _by_seed(rows, "estimate", "total", "placebo")
    found = _within_a_share(estimate - total, total, tolerated)
    note = interval_note("its estimate on unseen strings", student(unseen))
    return found._replace(remarks=(*found.remarks, note))


def _by_seed(rows: pd.DataFrame, *columns: str) -> list[pd.Series]:
    """Means over the macro-batches of a run, then over the models of a seed."""
    means = rows.groupby(["seed", "model"])[list(columns)].mean().groupby("seed").mean()
    return [means[column] for column in columns]


def _within_a_share(
    error: pd.Series, effect: pd.Series, share: float, name: str = "bias"
) -> Estimate:
    """By how much an error is smaller than a share of the effect, over the seeds.

    The error counts on both sides. An error of 0.1 nats is nothing where the effect is 5, and half
    of it where the effect is 0.2; so what is tolerated is a share. The remarks call the error
    `name`.

    Source: two one-sided tests; Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15
    (1987).
    """
    found = lowest([share * effect - error, share * effect + error], SMALLER, bound=0)
    notes = {name: error, "effect": effect}
    remarks = tuple(interval_note(name, student(own)) for name, own in notes.items())
    return found._replace(remarks=remarks)


@statistic(
    kinds.NOTIONS.name,
    "correlation with the specific effect over the macro-batches of a run, at the end",
    limits=CORRELATION,
    evidence=RETRAINING,
)
def follows_truth(notions: pd.DataFrame, notion: str) -> Estimate:
    """The correlation of a notion and the specific effect over the macro-batches of a run."""
    rows = summaries.minus_placebo(notions, notion)
    return over_seeds(summaries.correlation_with_truth(rows).unstack())


@statistic(
    kinds.NOTIONS.name,
    "share of extractable strings, minus that among strings never trained on",
    limits=CORRELATION,
    evidence=NO_THRESHOLD,
)
def extracted_beyond(notions: pd.DataFrame) -> Estimate:
    """The share of extractable strings among trained ones, minus that among unseen ones."""
    rows = summaries.minus_placebo(notions, kinds.EXTRACTABLE)
    by_seed = rows.groupby(["seed", "model"])
    unseen = student(by_seed["placebo"].mean().groupby("seed").mean())
    remarks = [f"unseen strings: {number(unseen.mean)}"]
    return over_seeds(by_seed["minus_placebo"].mean().unstack(), remarks=remarks)


@statistic(
    kinds.PROFILE.name,
    "{tolerated} times the mean effect on trained strings after the treatment, minus the size of "
    "that on placebos after their random times (nats)",
    evidence=NO_THRESHOLD,
)
def placebo(profile: pd.DataFrame, tolerated: float) -> Estimate:
    """How far the effect on placebos is below a share of that on trained strings, on both sides."""
    placebos, effects = (
        summaries.mean_after(profile, strings).mean(axis=1)
        for strings in (kinds.PLACEBO, kinds.TRAINED)
    )
    return _within_a_share(placebos, effects, tolerated, "on placebos")


CONTRAST = {"size": "largest minus smallest stream", "position": "last minus first quarter"}
# What changes together with a factor
CAUTION = {
    "size": "a larger stream takes more steps, so its model also knows the language better",
    "position": "the learning rate changes with the position, so this is the effect of both",
}


@statistic(
    kinds.DILUTION.name,
    lambda factor: f"specific effect of training on strings at the end, {CONTRAST[factor]} (nats)",
    evidence=RETRAINING,
)
def of_factor(dilution: pd.DataFrame, factor: str) -> Estimate:
    """The contrast of a factor in the specific effect by retraining.

    The remarks hold the same contrast of one run and of placebos, the positive control (more copies
    are memorised more), and what changes together with the factor.
    """
    cells = at_the_end(dilution)
    cells = cells[cells["outcome"] == LOG_LIKELIHOOD]
    by_strings = dict(list(cells.groupby("string_role")))
    retrained = contrasts(by_strings[kinds.TRAINED], SPECIFIC)
    others = {
        "one run alone": contrasts(by_strings[kinds.TRAINED], DIFFERENCE)[factor],
        "placebos": contrasts(by_strings[kinds.PLACEBO], SPECIFIC)[factor],
        "more minus fewer copies": retrained["copies"],
        "mean of all arms": retrained[MEAN],
    }
    remarks = [interval_note(name, student(values)) for name, values in others.items()]
    return over_seeds(retrained[factor], remarks=[*remarks, CAUTION[factor]])
