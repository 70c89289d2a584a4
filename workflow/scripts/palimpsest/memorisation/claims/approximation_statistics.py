"""The statistics of two replacements of a second training: equal frequency, and the language."""

from functools import partial

import numpy as np
import pandas as pd

from palimpsest.claims import (
    LANGUAGE,
    NOT_NEGATIVE,
    RETRAINING,
    SHARE,
    STAND_INS,
    Case,
    each_language,
)
from palimpsest.memorisation.claims.claim_statistics import UNIT, at_optimum, curves, statistic


def evidence_of(measure: str) -> tuple[str, str]:
    return (LANGUAGE if measure == "bayes" else STAND_INS), RETRAINING


@statistic(
    "disagreement",
    "mean relative distance between the stand-ins' loss and the loss without the target",
    limits=NOT_NEGATIVE,
    evidence=(STAND_INS, RETRAINING),
)
def stand_in_error(exact: pd.DataFrame) -> pd.Series:
    """Mean relative distance of the stand-ins' loss from the loss without the target."""
    keys = [*UNIT, "role", "epoch"]
    retrained = curves(exact, "contextual").set_index(keys)["loss_without"]
    stand_in = curves(exact, "contextual", "same-frequency").set_index(keys)["loss_without"]
    return ((stand_in - retrained).abs() / retrained).groupby(UNIT).mean()


@statistic(
    "disagreement",
    "mean relative distance of the threshold from the exact one, of the targets",
    limits=NOT_NEGATIVE,
    evidence=evidence_of,
)
def threshold_distance(exact: pd.DataFrame, measure: str) -> pd.Series:
    """Mean over the targets of |threshold - exact threshold| / exact threshold."""
    keys = [*UNIT, "role", "epoch"]
    retrained = curves(exact, "contextual").set_index(keys)["threshold"]
    cheap = curves(exact, measure, evidence_of(measure)[0]).set_index(keys)["threshold"]
    return ((cheap - retrained).abs() / retrained).groupby(UNIT).mean()


@statistic(
    "agreement",
    "share of epochs of the targets with the same verdict",
    limits=SHARE,
    evidence=evidence_of,
)
def same_verdict(agreement: pd.DataFrame, measure: str) -> pd.Series:
    rows = agreement[agreement["measure"] == measure].set_index(UNIT)["same_verdict"]
    return rows.astype(float).groupby(UNIT).mean()


def quality(
    approximation: pd.DataFrame,
    measure: str,
    quantity: str,
    statistic: str,
    column: str = "value",
    replicate: bool = False,
) -> pd.Series:
    """A statistic of a measure's approximation over all strings, or an end of its interval.

    With `replicate`, it is the statistic of retraining once more, in place of an approximation.
    """
    wanted = {"group": "all", "measure": measure, "quantity": quantity, "statistic": statistic}
    chosen = (approximation[list(wanted)] == pd.Series(wanted)).all(axis=1)
    chosen &= (approximation["evidence"] == "replicate") == replicate
    return approximation[chosen].set_index(UNIT)[column]


ERRORS = {
    "counterfactual": "mean relative distance between the stand-ins' loss and the loss "
    "without the string, all training strings and epochs",
    "contextual": "mean relative distance of the threshold from the exact one, the training "
    "strings left out",
}
ERRORS["bayes"] = ERRORS["contextual"]


relative_error = partial(quality, quantity="threshold", statistic="mean_relative_error")


@statistic(
    "approximation",
    lambda measure: ERRORS[measure],
    limits=NOT_NEGATIVE,
    evidence=evidence_of,
    ends=(partial(relative_error, column="lower"), partial(relative_error, column="upper")),
)
def error_of_every_string(approximation: pd.DataFrame, measure: str) -> pd.Series:
    """The mean relative error over all strings; of one seed, the interval is over the strings."""
    return relative_error(approximation, measure)


def ceiling(approximation: pd.DataFrame, measure: str, quantity: str, statistic: str) -> pd.Series:
    """A statistic of how well retraining once more agrees with retraining.

    The Bayes-optimal loss is compared with contextual memorisation, so it has the same ceiling.
    """
    exactly = "contextual" if measure == "bayes" else measure
    return quality(approximation, exactly, quantity, statistic, replicate=True)


def defined_languages(
    approximation: pd.DataFrame, measure: str, quantity: str, statistic: str
) -> list[Case]:
    """One case for each language on which a statistic of `quality` is defined in any run.

    If all strings of a language are equally probable, the approximation gives all of them the same
    value.
    """
    return [
        case
        for case in each_language(approximation)
        if np.isfinite(quality(*case.tables, measure, quantity, statistic).astype(float)).any()
    ]


def words_of_agreement(measure: str, quantity: str, statistic: str) -> str:
    if statistic == "same_verdict":
        words = "share of the training strings with the same verdict at optimal learning"
    else:
        ranked = {
            "threshold": "two losses" if measure == "bayes" else "optimal contextual loss",
            "start": f"start; strings that never start rank last, {measure}",
            "score_at_optimum": f"score at optimal learning, {measure}",
        }
        words = (
            f"rank correlation (Spearman) of the {ranked[quantity]}, the training strings left out"
        )
    return f"{words}, minus that of retraining once more (the ceiling)"


@statistic(
    "approximation",
    words_of_agreement,
    limits=(-2, 2),
    evidence=evidence_of,
    cases=defined_languages,
    context={"the approximation's": quality, "that of retraining once more": ceiling},
)
def minus_ceiling(
    approximation: pd.DataFrame, measure: str, quantity: str, statistic: str
) -> pd.Series:
    """A statistic of agreement with retraining, minus that of retraining once more.

    Two equal retrainings agree only as far as chance in training allows. This is a mild standard:
    an approximation without any noise agrees better with a retraining than another retraining does
    (the square root of a correlation of two replicates, for correlations).
    """
    found = quality(approximation, measure, quantity, statistic)
    return found - ceiling(approximation, measure, quantity, statistic)


FALSE_ALARMS = {
    (
        "contextual",
        "share_memorised_unseen",
    ): "share of the strings never trained on called memorised at optimal "
    "learning, contextual; the others stand in",
    (
        "bayes",
        "share_memorised_unseen",
    ): "share of the strings never trained on called memorised at optimal learning, bayes",
    ("bayes", "below_unseen"): "share of the strings never trained on whose loss "
    "is below the Bayes-optimal loss at optimal "
    "learning",
}


@statistic(
    "tradeoff",
    lambda measure, column: FALSE_ALARMS[measure, column],
    limits=SHARE,
    evidence=lambda measure: LANGUAGE if measure == "bayes" else STAND_INS,
)
def false_alarms(study: pd.DataFrame, measure: str, column: str) -> pd.Series:
    return at_optimum(study, column, measure)
