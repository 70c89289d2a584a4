"""The claims on memorisation profiles, each with the statistic that tests the claim.

The first five are findings of *Causal Estimation of Memorisation Profiles*, section 7. That the
estimators are unbiased, and that difference-in-differences has the lower variance, is proved in its
section 4 and appendix A under assumptions; here both are measured against training again. The
assumptions leave out that training on some strings changes the predictions of others, so two kinds
of truth are compared (`palimpsest.profiles.truth`). The claims on placebos and on the specific
effect are Palimpsest's own. Those on dilution and order are findings of *Hubble: a Model Suite to
Advance the Study of LLM Memorization* (ICLR 2026), tested by training again without the strings.

All claims are on the log-likelihood, by difference-in-differences where nothing else is said. A
statistic has one value per seed, and its interval is over the seeds. Every seed has strings and
models of its own.
"""

from collections.abc import Callable
from functools import partial

import pandas as pd

from palimpsest.claims import (
    NO_THRESHOLD,
    NOT_NEGATIVE,
    RETRAINING,
    SEEDS,
    Claim,
    Estimate,
    above,
    below,
    between,
)
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
from palimpsest.report.number_format import number
from palimpsest.statistics import student

QUESTIONS = {
    "profile_size": "Do larger models memorise more of what they see once?",
    "profile_order": "What does memorisation of a string depend on?",
    "profile_estimators": "Does one run tell what retraining would?",
    "profile_notions": "Do other definitions of memorisation agree with training again?",
    "profile_dilution": "Does more data dilute memorisation, and do early strings fade?",
    "profile_placebos": "Do the estimators find anything where there is nothing?",
}
ESTIMATORS = (DIFFERENCE_IN_DIFFERENCES, DIFFERENCE)
NAMES = {
    DIFFERENCE_IN_DIFFERENCES: "Difference-in-differences",
    DIFFERENCE: "The difference of means",
}
NOTIONS = {
    kinds.ARCHITECTURAL: "Architectural memorisation",
    kinds.INFLUENCE: "An influence function",
}
CORRELATION = (-1.0, 1.0)
# The largest bias that counts as none, as a share of the mean true effect
TOLERATED = 0.25
# Pearson: below it, less than a quarter of the variance of one profile is in the other
PREDICTS = 0.5


def over_seeds(values: pd.Series | pd.DataFrame) -> Estimate:
    """An estimate from one value per seed, or from values by seed (rows) and model (columns)."""
    models = None
    if isinstance(values, pd.DataFrame):
        models = values.mean().to_dict()
        values = values.mean(axis=1)
    values = values.dropna()
    return Estimate(tuple(values), *student(values), over=SEEDS, models=models)


def stronger(profile: pd.DataFrame) -> Estimate:
    """Instantaneous memorisation of the largest model minus that of the smallest, in nats."""
    cells = summaries.instantaneous(summaries.estimates(profile))
    return beside_placebo(profile, cells, summaries.instantaneous)


def more_persistent(profile: pd.DataFrame) -> Estimate:
    """Persistent memorisation of the largest model minus that of the smallest, in nats."""
    cells = summaries.persistent(summaries.estimates(profile))
    return beside_placebo(profile, cells, summaries.persistent)


def beside_placebo(profile: pd.DataFrame, cells: pd.DataFrame, part: Callable) -> Estimate:
    """The largest minus the smallest model; the same of placebos is in the marks."""
    found = over_seeds(summaries.largest_minus_smallest(cells))
    placebos = part(summaries.estimates(profile, kinds.PLACEBO))
    _, lower, upper = student(summaries.largest_minus_smallest(placebos))
    mark = f"placebos: {number(lower)} to {number(upper)} nats"
    return found._replace(marks=() if pd.isna(lower) else (mark,))


def follows_rate(profile: pd.DataFrame) -> Estimate:
    """Rank association of learning rate and instantaneous memorisation over cohorts."""
    cells = summaries.instantaneous(summaries.estimates(profile))
    return over_seeds(summaries.rate_association(cells))


def recency(profile: pd.DataFrame) -> Estimate:
    """Residual memorisation of the later half of the cohorts minus that of the earlier half."""
    cells = summaries.residual(summaries.estimates(profile))
    return over_seeds(summaries.late_minus_early(cells))


def of_ends(correlations: pd.DataFrame, cells: str) -> pd.Series:
    """By seed: the correlation of the profiles of the smallest and the largest model."""
    rows = correlations[
        (correlations["outcome"] == LOG_LIKELIHOOD)
        & (correlations["cells"] == cells)
        & (correlations["model"] != correlations["other"])
    ]
    # Pairs are in order of size, from the smallest with the next one to the two largest.
    smallest, largest = rows["model"].iloc[0], rows["other"].iloc[-1]
    chosen = rows[(rows["model"] == smallest) & (rows["other"] == largest)]
    return chosen.set_index("seed")["correlation"]


def predicts(correlations: pd.DataFrame) -> Estimate:
    """The correlation over the cells after the treatment."""
    return over_seeds(of_ends(correlations, AFTER))


def predicts_more_than_nothing(correlations: pd.DataFrame) -> Estimate:
    """The same minus the correlation over cells before the treatment."""
    return over_seeds(of_ends(correlations, AFTER) - of_ends(correlations, BEFORE))


def measured(errors: pd.DataFrame, estimator: str, truth: str) -> pd.DataFrame:
    """The errors of an estimator after the treatment, indexed by seed and model."""
    rows = errors[
        (errors["outcome"] == LOG_LIKELIHOOD)
        & (errors["cells"] == AFTER)
        & (errors["estimator"] == estimator)
        & (errors["truth"] == truth)
    ]
    return rows.set_index(["seed", "model"])


def relative_bias(errors: pd.DataFrame, estimator: str, truth: str) -> Estimate:
    """The bias in shares of the specific effect.

    The effect is the mean over the seeds, because that of a single seed can be near 0.
    """
    rows = measured(errors, estimator, truth)
    effect = measured(errors, estimator, SPECIFIC)["effect"].groupby("model").mean()
    return over_seeds((rows["bias"] / effect).unstack())


def spread_ratio(errors: pd.DataFrame, truth: str) -> Estimate:
    """The standard deviation of the errors of difference-in-differences, over the other's."""
    both, one = (measured(errors, name, truth)["std"] for name in ESTIMATORS)
    return over_seeds((both / one).unstack())


def lost_signal(errors: pd.DataFrame) -> Estimate:
    """The spread of errors against the total effect, over that against the specific effect."""
    total, specific = (
        measured(errors, DIFFERENCE_IN_DIFFERENCES, truth)["std"] for truth in (TOTAL, SPECIFIC)
    )
    return over_seeds((total / specific).unstack())


def bias_of_notion(notions: pd.DataFrame, notion: str) -> Estimate:
    """The bias of a notion beyond its placebo, in shares of the specific effect.

    The effect is the mean over the seeds, because that of a single seed can be near 0.
    """
    rows = summaries.beyond_placebo(notions, notion)
    effect = rows.groupby("model")["specific"].mean()
    bias = (rows["beyond"] - rows["specific"]).groupby([rows["seed"], rows["model"]]).mean()
    return over_seeds(bias.unstack() / effect)


def extracted_unseen(notions: pd.DataFrame) -> Estimate:
    """The share of extractable strings among those never trained on."""
    rows = summaries.beyond_placebo(notions, kinds.EXTRACTABLE)
    found = over_seeds(rows.groupby(["seed", "model"])["placebo"].mean().unstack())
    trained = student(rows.groupby("seed")["estimate"].mean())
    mark = f"strings that were trained on: {number(trained.mean)}"
    return found._replace(marks=(mark,))


def extracted_beyond(notions: pd.DataFrame) -> Estimate:
    """The share of extractable strings among trained ones, minus that among unseen ones."""
    rows = summaries.beyond_placebo(notions, kinds.EXTRACTABLE)
    return over_seeds(rows.groupby(["seed", "model"])["beyond"].mean().unstack())


def placebo(profile: pd.DataFrame) -> Estimate:
    """The effect on placebos, in shares of the effect on trained strings (mean over the seeds)."""
    trained = summaries.after(summaries.estimates(profile))
    effect = trained.groupby("model")["estimate"].mean()
    return over_seeds(summaries.placebo_effect(profile) / effect)


def of_factor(dilution: pd.DataFrame, factor: str, caution: str) -> Estimate:
    """The contrast of a factor in the specific effect by retraining.

    In the marks are the same contrast of one run and of placebos, the positive control (more copies
    are memorised more), and what changes together with the factor.
    """
    cells = at_the_end(dilution)
    cells = cells[cells["outcome"] == LOG_LIKELIHOOD]
    by_strings = dict(list(cells.groupby("strings")))
    retrained = contrasts(by_strings[kinds.TRAINED], SPECIFIC)
    others = {
        "one run alone": contrasts(by_strings[kinds.TRAINED], DIFFERENCE)[factor],
        "placebos": contrasts(by_strings[kinds.PLACEBO], SPECIFIC)[factor],
        "more minus fewer copies": retrained["copies"],
        "mean of all arms": retrained[MEAN],
    }
    marks = [in_words(name, values) for name, values in others.items()]
    found = over_seeds(retrained[factor])
    return found._replace(marks=(*filter(None, marks), caution))


def in_words(name: str, values: pd.Series) -> str:
    """A mean and its interval over the seeds, for a note; empty if there is no interval."""
    mean, lower, upper = student(values)
    return "" if pd.isna(lower) else f"{name}: {number(mean)} ({number(lower)} to {number(upper)})"


CLAIMS = [
    Claim(
        "profile_size",
        "Larger models memorise strings more strongly just after training on them.",
        kinds.PROFILE.name,
        "mean effect just after the treatment, largest minus smallest model (nats)",
        above(0),
        stronger,
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "profile_size",
        "Memorisation persists more in larger models.",
        kinds.PROFILE.name,
        "mean effect at later times, largest minus smallest model (nats)",
        above(0),
        more_persistent,
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "profile_order",
        "Memorisation just after training follows the learning rate.",
        kinds.PROFILE.name,
        "rank association of a cohort's learning rate and effect just after the treatment",
        above(0),
        follows_rate,
        limits=CORRELATION,
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "profile_order",
        "At the end of training, strings that were seen late are memorised more.",
        kinds.PROFILE.name,
        "effect at the end of training, later minus earlier half of the cohorts (nats)",
        above(0),
        recency,
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "profile_size",
        "The profile of a small model predicts that of a large one.",
        kinds.PROFILE_CORRELATION.name,
        "correlation of the profiles of the smallest and the largest model after the treatment",
        above(PREDICTS),
        predicts,
        limits=CORRELATION,
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "profile_placebos",
        "The profile of a small model predicts that of a large one better than where nothing is "
        "memorised.",
        kinds.PROFILE_CORRELATION.name,
        "the same correlation, minus that over cells before the treatment",
        above(0),
        predicts_more_than_nothing,
        limits=(-2, 2),
        evidence=(NO_THRESHOLD,),
    ),
    *(
        Claim(
            "profile_estimators",
            f"{NAMES[estimator]} is unbiased for the {truth} effect.",
            kinds.ESTIMATOR_ERRORS.name,
            "bias against retraining, as a share of the mean specific effect",
            between(-TOLERATED, TOLERATED),
            partial(relative_bias, estimator=estimator, truth=truth),
            evidence=(RETRAINING,),
        )
        for estimator in ESTIMATORS
        for truth in (SPECIFIC, TOTAL)
    ),
    *(
        Claim(
            "profile_estimators",
            f"Difference-in-differences has a lower variance than the difference, for the {truth} "
            "effect.",
            kinds.ESTIMATOR_ERRORS.name,
            "standard deviation of its errors against retraining, divided by the difference's",
            below(1),
            partial(spread_ratio, truth=truth),
            limits=NOT_NEGATIVE,
            evidence=(RETRAINING,),
        )
        for truth in (SPECIFIC, TOTAL)
    ),
    Claim(
        "profile_estimators",
        "One run does not show how a macro-batch changes the model as a whole.",
        kinds.ESTIMATOR_ERRORS.name,
        "standard deviation of the errors of difference-in-differences against the total effect, "
        "divided by that against the specific effect",
        above(1),
        lost_signal,
        limits=NOT_NEGATIVE,
        evidence=(RETRAINING,),
    ),
    *(
        Claim(
            "profile_notions",
            f"{name} is unbiased for the specific effect.",
            kinds.NOTIONS.name,
            "bias against retraining, beyond unseen strings, as a share of the mean specific "
            "effect",
            between(-TOLERATED, TOLERATED),
            partial(bias_of_notion, notion=notion),
            evidence=(RETRAINING,),
        )
        for notion, name in NOTIONS.items()
    ),
    Claim(
        "profile_notions",
        "Strings can be extracted that were never trained on.",
        kinds.NOTIONS.name,
        "share of extractable strings among those never trained on",
        above(0),
        extracted_unseen,
        limits=NOT_NEGATIVE,
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "profile_notions",
        "More strings can be extracted if they were trained on.",
        kinds.NOTIONS.name,
        "share of extractable strings, minus that among strings never trained on",
        above(0),
        extracted_beyond,
        limits=CORRELATION,
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "profile_dilution",
        "Strings are memorised less when they are diluted in more data.",
        kinds.DILUTION.name,
        "specific effect of training on strings at the end, largest minus smallest stream (nats)",
        below(0),
        partial(
            of_factor,
            factor="size",
            caution="a larger stream takes more steps, so its model also knows the language better",
        ),
        evidence=(RETRAINING,),
    ),
    Claim(
        "profile_dilution",
        "Strings that are seen early are memorised less.",
        kinds.DILUTION.name,
        "specific effect of training on strings at the end, last minus first quarter (nats)",
        above(0),
        partial(
            of_factor,
            factor="position",
            caution="the learning rate changes with the position, so this is the effect of both",
        ),
        evidence=(RETRAINING,),
    ),
    Claim(
        "profile_placebos",
        "Strings that are never trained on show no effect.",
        kinds.PROFILE.name,
        "mean effect on placebos, as a share of the effect on trained strings",
        between(-TOLERATED, TOLERATED),
        placebo,
        evidence=(NO_THRESHOLD,),
    ),
]
