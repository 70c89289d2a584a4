"""Entropy and mutual information of a model's neurons, after every epoch of its fine-tuning.

Source: the paper on information measures of neurons, appendix A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from palimpsest.information.activations import Where, activations_of
from palimpsest.information.kinds import LAYERS
from palimpsest.information.measured import means, neurons_of, pairs_of
from palimpsest.jobs.bench import Bench, TrainedWeights
from palimpsest.jobs.query import query


@dataclass(frozen=True)
class How:
    """How neurons are measured: bins of the entropy, nearest neighbour, and pairs of a site."""

    bins: int
    neighbours: int
    pairs: int | str


@query("information", "layers", LAYERS, by_epoch=True)
def layers(
    bench: Bench,
    weights: TrainedWeights,
    numbers: np.ndarray,
    *,
    epochs: Sequence[int],
    layers: str | Sequence[int],
    places: Sequence[str],
    positions: Sequence[str],
    bins: int,
    neighbours: int,
    pairs: int | str,
) -> list[pd.DataFrame]:
    """The table `layers` of a run's models after some epochs; `numbers` are places in `epochs`."""
    where, how = Where.of(layers, places, positions), How(bins, neighbours, pairs)
    rows = np.flatnonzero(bench.material.test_counts > 0)
    keys = {**bench.keys, "variant": bench.material.keys["variant"]}
    found = []
    for number in numbers:
        models = bench.holder.open([weights.of_run(number)])
        for (site, position), values in activations_of(bench, models, rows, where).items():
            about = {**site._asdict(), "position": position}
            of_site = means_of(values, about, how, torch.get_num_threads())
            found.append(of_site.assign(**keys, epoch=epochs[number]))
    return [pd.concat(found, ignore_index=True)[LAYERS.names]]


def means_of(
    values: np.ndarray, about: dict[str, int | str], how: How, threads: int | None = None
) -> pd.DataFrame:
    """One row: the means of both measures over the float[strings, neurons] of a site.

    `about` names the site: its layer, place and position.
    """
    neurons = neurons_of(values, how.bins).assign(**about)
    pairs = pairs_of(values, how.neighbours, how.pairs, threads).assign(**about)
    return means(neurons, pairs)
