"""Entropy and mutual information of a model's neurons, after every epoch of its fine-tuning.

Source: the paper on information measures of neurons, appendix A.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from palimpsest.information.activations import Where, activations_of
from palimpsest.information.kinds import LAYERS
from palimpsest.information.measured import How, means, of_site
from palimpsest.jobs.bench import Bench, TrainedWeights
from palimpsest.jobs.query import query


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
    unseen = np.flatnonzero(bench.material.test_counts > 0)
    keys = {**bench.keys, "variant": bench.material.keys["variant"]}
    found = []
    for number in numbers:
        models = bench.holder.open([weights.of_run(number)])
        for (site, position), values in activations_of(bench, models, unseen, where).items():
            about = {**site._asdict(), "position": position}
            rows = means(*of_site(values, about, how, torch.get_num_threads()))
            found.append(rows.assign(**keys, epoch=epochs[number]))
    return [pd.concat(found, ignore_index=True)[LAYERS.names]]
