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
from palimpsest.variants import FRESH, REPEATED

CONTEXTUAL = ("contextual", "same-frequency")
HALF = 0.5


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


def starts(epochs: pd.DataFrame) -> pd.Series:
    """The epoch at which half of the training strings are memorised, by seed and model.

    NaN if it never comes.
    """
    repeated = epochs[epochs["variant"] == REPEATED]
    shares = repeated.groupby(["seed", "model", "epoch"])["memorised"].first().unstack("epoch")
    reached = shares >= HALF
    return reached.idxmax(axis=1).astype(float).where(reached.any(axis=1))


def changes_at_start(epochs: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """How much a column changes in the epoch at which half of the strings are memorised.

    By variant: values by seed (rows) and model (columns), of the mean over all sites. For fresh
    strings, nothing is memorised, and the epoch is that of the repeated ones of the same seed.
    """
    means = epochs.groupby(["variant", "seed", "model", "epoch"])[column].mean()
    found = {variant: {} for variant in (REPEATED, FRESH)}
    for (seed, model), start in starts(epochs).items():
        for variant, values in found.items():
            own = means.get((variant, seed, model), pd.Series(dtype=float))
            before = own.index[own.index < start]
            known = start in own.index and len(before)
            values[seed, model] = own[start] - own[before[-1]] if known else np.nan
    index = pd.MultiIndex.from_tuples(found[REPEATED], names=["seed", "model"])
    return {
        variant: pd.Series(list(values.values()), index, dtype=float).unstack("model")
        for variant, values in found.items()
    }
