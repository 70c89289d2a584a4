"""All measures: the paper's, and those of the folder `more_measures`."""

from typing import NamedTuple

import numpy as np

from palimpsest.memorisation.approximation import GAP
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


class Thresholds(NamedTuple):
    """What decides that a string is memorised: keys of the block `memorisation`.

    Parameters
    ----------
    start : "after_last_miss" or "first_crossing"
    loss_threshold : nats per token; recollection means a loss below this
    accuracy_threshold : share of right tokens; recollection by accuracy means above this
    stand_in_gap : nats; see `palimpsest.memorisation.stand_ins`
    """

    start: Start
    loss_threshold: float
    accuracy_threshold: float
    stand_in_gap: float = GAP


def every_measure(
    loss: np.ndarray,
    wrong: np.ndarray,
    optimal_loss: np.ndarray,
    loss_without: dict[str, np.ndarray],
    thresholds: Thresholds,
) -> dict[tuple[str, str], Memorisation]:
    """Every measure of the same strings, by (measure, evidence), the names in the tables.

    Parameters
    ----------
    loss : float[epochs, strings], nats per token
    wrong : float[epochs, strings], share of wrong tokens
    optimal_loss : float[strings], nats per token
    loss_without : dict of evidence -> float[epochs, strings], nats per token
        The evidence is the source of the loss without a string: same-frequency or retraining.
    """
    start, below, above, _ = thresholds
    return {
        ("recollection", "constant"): recollection(loss, below, start),
        ("recollection_accuracy", "constant"): recollection(wrong, 1 - above, start),
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
