"""All measures: the paper's, and those of the folder `more_measures`."""

import numpy as np

from palimpsest.memorisation.measures import (
    DESCRIPTIONS,
    Memorisation,
    Start,
    bayes,
    contextual,
    counterfactual,
    recollection,
)
from palimpsest.memorisation.more_measures import MORE

COMPARED = {
    "counterfactual": counterfactual,
    "contextual": contextual,
    **{measure.name: measure.function for measure in MORE},
}
ALL_DESCRIPTIONS = (*DESCRIPTIONS, *(measure.description for measure in MORE))


def every_measure(
    loss: np.ndarray,
    wrong: np.ndarray,
    optimal_loss: np.ndarray,
    loss_without: dict[str, np.ndarray],
    start: Start,
    loss_threshold: float,
    accuracy_threshold: float,
) -> dict[tuple[str, str], Memorisation]:
    """Every measure of the same strings, by (measure, evidence), the names in the tables.

    Parameters
    ----------
    loss : float[epochs, strings], nats per token
    wrong : float[epochs, strings], share of wrong tokens
    optimal_loss : float[strings], nats per token
    loss_without : dict of evidence -> float[epochs, strings], nats per token
        The evidence is the source of the loss without a string: same-frequency or retraining.
    start : "after_last_miss" or "first_crossing"
    loss_threshold : float, nats per token
    accuracy_threshold : float, share of right tokens above which a string is recollected
    """
    return {
        ("recollection", "constant"): recollection(loss, loss_threshold, start),
        ("recollection_accuracy", "constant"): recollection(wrong, 1 - accuracy_threshold, start),
        **measures_by_string(loss, optimal_loss, loss_without, start),
    }


def measures_by_string(
    loss: np.ndarray, optimal_loss: np.ndarray, loss_without: dict[str, np.ndarray], start: Start
) -> dict[tuple[str, str], Memorisation]:
    """The measures that have a threshold for every string, in the format of `every_measure`.

    A string with NaN in `loss_without` has no stand-in, and so no threshold.
    """
    measured = {}
    for evidence, without in loss_without.items():
        known = np.isfinite(without).all(axis=0)
        for name, measure in COMPARED.items():
            result = measure(loss[:, known], without[:, known], start)
            measured[name, evidence] = result.among(known)
    measured["bayes", "language"] = bayes(loss, optimal_loss, start)
    return measured
