"""The table `epochs`: what changes inside of models while they are fine-tuned."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from palimpsest import traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.information.interventions import FRESH, REPEATED
from palimpsest.information.kinds import EPOCHS, LAYERS
from palimpsest.making import makes, reads
from palimpsest.memorisation.all_measures import Thresholds
from palimpsest.memorisation.measures import Memorisation, Start
from palimpsest.memorisation.runs import (
    measured_strings,
    measured_unseen,
    per_token,
    restrict,
    run_name,
    stand_in_losses,
)
from palimpsest.traces import Trace

BY_STAND_INS = ("contextual", "same-frequency")
UNUSED = 0.2, 0.95  # thresholds of recollection, which the contextual measure does not need
CLEARLY = 0.25
NEIGHBOURS, BEYOND = "the epochs before and after", "beyond"


@reads(datasets=[STRINGS], traces=[traces.read], layers=[LAYERS])
@makes(EPOCHS)
def epochs_table(
    datasets: Sequence[pd.DataFrame],
    traces: Sequence[Trace],
    layers: Sequence[pd.DataFrame],
    start: Start,
    stand_in_gap: float,
) -> pd.DataFrame:
    """The table `epochs` of all runs of a model on a language.

    Parameters
    ----------
    datasets, traces, layers : of every run, in the same order
    start : "after_last_miss" or "first_crossing"
    stand_in_gap : nats; a string without a stand-in this near is not measured

    Raises `UserError` if a run is not measured after an epoch of its trace.
    """
    parts = []
    for strings, trace, measured in zip(datasets, traces, layers, strict=True):
        if missing := sorted(set(trace.epochs) - set(measured["epoch"])):
            raise UserError(
                f"{run_name(trace.run)}: its neurons are not measured after epoch {missing[0]}; "
                "delete its folders `checkpoints` and `layers.parquet`, and run again"
            )
        by_epoch = pd.DataFrame(of_epochs(strings, trace, start, stand_in_gap))
        parts.append(measured.merge(by_epoch, on="epoch"))
    return pd.concat(parts, ignore_index=True)[EPOCHS.names]


def of_epochs(strings: pd.DataFrame, trace: Trace, start: Start, stand_in_gap: float) -> dict:
    """Losses and shares of memorised strings, float[epochs] each, by the column's name."""
    never = strings[strings["test_count"] > 0]
    unseen = restrict(trace, never)
    found = {
        "epoch": trace.epochs,
        "test_loss": per_token(unseen.nll, unseen, np.ones(len(never), dtype=int)),
        "train_loss": np.nan,
        "memorised": np.nan,
        "memorised_unseen": np.nan,
        "coverage": np.nan,
    }
    if trace.run["variant"] == FRESH:
        return found
    train = strings[strings["count"] > 0]
    trained, counts = restrict(trace, train), train["count"].to_numpy()
    memorised, unseen = contextual(strings, trace, start, stand_in_gap)
    return found | {
        "train_loss": per_token(trained.nll, trained, counts),
        "memorised": started(memorised),
        "memorised_unseen": started(unseen),
        "coverage": memorised.is_known.mean(),
    }


def contextual(
    strings: pd.DataFrame, trace: Trace, start: Start, stand_in_gap: float
) -> tuple[Memorisation, Memorisation]:
    """Contextual memorisation of the training strings, and of strings never trained on.

    Parameters are those of `epochs_table`.
    """
    train = strings[strings["count"] > 0]
    losses = {"same-frequency": stand_in_losses(trace, strings, train, stand_in_gap)[1]}
    thresholds = Thresholds(start, *UNUSED, stand_in_gap)
    trained = measured_strings(restrict(trace, train), train, losses, thresholds)
    unseen = measured_unseen(trace, strings, thresholds)
    return trained[BY_STAND_INS], unseen[BY_STAND_INS]


def started(result: Memorisation) -> list[float]:
    """The share of strings whose memorisation has started, by epoch; NaN if none is measured."""
    start = result.start[result.is_known]
    n_epochs = len(result.score)
    return [np.mean(start <= place) if len(start) else np.nan for place in range(n_epochs)]


def starts(epochs: pd.DataFrame) -> pd.Series:
    """The first epoch after which strings are clearly memorised, by seed and model.

    Then the share of memorised training strings is above that of strings never trained on by 0.25
    or more. At most about half of the latter are below their thresholds, so at most about 0.5 is
    possible. NaN if this never comes.
    """
    repeated = epochs[epochs["variant"] == REPEATED]
    beyond = repeated.assign(beyond=repeated["memorised"] - repeated["memorised_unseen"])
    shares = beyond.groupby(["seed", "model", "epoch"])["beyond"].first().unstack("epoch")
    reached = shares >= CLEARLY
    return reached.idxmax(axis=1).astype(float).where(reached.any(axis=1))


def changes(epochs: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """Changes of a column from epoch to epoch, of the mean over all sites.

    Repeated and fresh strings grow apart quickly at first, then slowly. So the epoch of the start
    is compared with those before and after it, and not with all: on a straight line, it is their
    mean.

    Frames by name, each with values by seed (rows) and model (columns): the change in the epoch of
    the start, of repeated and of fresh strings; that of repeated minus fresh strings in the epochs
    before and after, mean of both; and the change of repeated strings beyond that of fresh ones and
    of these epochs. Only epochs after which both are measured count, and none before the end of the
    first epoch: until then, both are equal. NaN without a start, and if there is no epoch before or
    after it.
    """
    start = starts(epochs)
    found = pd.DataFrame(index=start.index, columns=[REPEATED, FRESH, NEIGHBOURS], dtype=float)
    means = by_variant(epochs, column)
    for unit in start.index:
        both = means.xs(unit, level=("seed", "model")).dropna().sort_index()
        steps = both.diff().loc[lambda table: table.index > 1].dropna()
        apart = steps[REPEATED] - steps[FRESH]
        around = (apart.shift(1) + apart.shift(-1)) / 2
        if np.isfinite(around.get(start[unit], np.nan)):
            found.loc[unit] = [*steps.loc[start[unit]], around[start[unit]]]
    found[BEYOND] = found[REPEATED] - found[FRESH] - found[NEIGHBOURS]
    return {name: values.unstack("model") for name, values in found.items()}


def by_variant(epochs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Means of a column over all sites, by epoch, seed and model (rows) and by variant (columns).

    Both variants have a column, which is NaN where the run is missing.
    """
    means = epochs.groupby(["epoch", "seed", "model", "variant"])[column].mean()
    return means.unstack("variant").reindex(columns=[REPEATED, FRESH])
