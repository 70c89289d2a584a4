"""The table `epochs`: what changes inside of models while they are fine-tuned."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from palimpsest.information.kinds import EPOCHS
from palimpsest.memorisation.runs import (
    measured_strings,
    per_token,
    restrict,
    stand_in_losses,
)
from palimpsest.traces import Trace
from palimpsest.variants import FRESH

CONTEXTUAL = ("contextual", "same-frequency")


def epochs_table(
    runs: Iterable[tuple[pd.DataFrame, Trace, pd.DataFrame]], rule: tuple, largest_gap: float
) -> pd.DataFrame:
    """The table `epochs` of all runs of a model on a language.

    Parameters
    ----------
    runs : dataset, trace and table of kind `layers` of every run
    rule : rule for the start of memorisation, and both thresholds of recollection
    largest_gap : nats; a string without a stand-in this near is not measured
    """
    parts = []
    for strings, trace, layers in runs:
        by_epoch = pd.DataFrame(of_epochs(strings, trace, rule, largest_gap))
        parts.append(layers.merge(by_epoch, on="epoch"))
    return pd.concat(parts, ignore_index=True)[EPOCHS.names]


def of_epochs(strings: pd.DataFrame, trace: Trace, rule: tuple, largest_gap: float) -> dict:
    """Losses and the share of memorised strings, float[epochs] each, by the column's name."""
    never = strings[strings["test_count"] > 0]
    unseen = restrict(trace, never)
    found = {
        "epoch": trace.epochs,
        "test_loss": per_token(unseen.nll, unseen, np.ones(len(never), dtype=int)),
        "train_loss": np.nan,
        "memorised": np.nan,
    }
    if trace.run["variant"] == FRESH:
        return found
    train = strings[strings["count"] > 0]
    trained, counts = restrict(trace, train), train["count"].to_numpy()
    losses = {"same-frequency": stand_in_losses(trace, strings, train, largest_gap)[1]}
    result = measured_strings(trained, train, losses, *rule)[CONTEXTUAL]
    start = result.start[result.is_known]
    return found | {
        "train_loss": per_token(trained.nll, trained, counts),
        "memorised": [np.mean(start <= place) for place in range(len(trace.epochs))],
    }


def start_of(memorised: pd.Series) -> float:
    """The epoch at which half of the training strings are memorised; NaN if it never comes.

    `memorised` is the share of memorised strings, indexed by epoch.
    """
    reached = memorised.index[memorised >= 0.5]
    return float(reached[0]) if len(reached) else np.nan
