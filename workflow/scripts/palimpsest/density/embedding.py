"""Embeddings of the strings of datasets, by the models that are trained on them.

An embedding is the mean of a string's last hidden states over its symbols, divided by its length.

Source: LMD3: Language Model Data Density Dependence, sections 4.1 and appendices A.1.2 and A.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import torch

from palimpsest.density.kinds import EMBEDDINGS
from palimpsest.density.vectors import of_length_one
from palimpsest.jobs.bench import Bench, TrainedWeights
from palimpsest.jobs.query import query
from palimpsest.models.trained import Models
from palimpsest.training.batches import TokenisedStrings, by_length
from palimpsest.training.evaluation import strings_at_once


@query("density", "embeddings", EMBEDDINGS)
def embeddings(bench: Bench, weights: TrainedWeights, numbers: np.ndarray) -> list[pd.DataFrame]:
    models = bench.holder.open([weights.of_run(0)])
    vectors = bench.holder.agree(mean_hidden(bench, models))
    table = {
        **bench.keys,
        "variant": bench.material.keys["variant"],
        "string_id": bench.material.string_ids,
        "vector": list(vectors.astype(np.float32)),
    }
    return [pd.DataFrame(table)[EMBEDDINGS.names]]


def mean_hidden(bench: Bench, models: Models) -> np.ndarray:
    """Embeddings float64[strings, D] of all strings of the dataset, of the first model."""
    encoded = bench.material.encoded
    together = strings_at_once(bench.passes.evaluation_batch_size, models.device, models.count)
    batches = by_length(encoded.lengths, np.arange(len(encoded.lengths)), together, 1)
    return of_length_one(mean_states(models, encoded, batches))


def mean_states(
    models: Models, encoded: TokenisedStrings, batches: Iterable[np.ndarray], dtype=np.float64
) -> np.ndarray:
    """Means [strings, D] of the first model's last hidden states over the tokens of each string.

    `batches` hold all rows of `encoded`. Sums are in float64, whatever the `dtype` of the result.
    """
    last, means = len(models.layers()) - 2, None
    for rows in batches:
        lengths = encoded.lengths[rows]
        ids_BT = torch.from_numpy(encoded.ids[rows, : lengths.max()]).to(models.device)
        ids_MBT = ids_BT.expand(models.count, *ids_BT.shape)
        with torch.no_grad():
            states_BTD = models.hidden(ids_MBT, last)[0].double().cpu().numpy()
        if means is None:
            means = np.empty((len(encoded.lengths), states_BTD.shape[-1]), dtype=dtype)
        means[rows] = mean_of_symbols(states_BTD, lengths)
    return means


def mean_of_symbols(states_BTD: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Means float[B, D] over the tokens of every string, without the start token and padding.

    `lengths` int[B] counts the tokens of each string with the start token.
    """
    place = np.arange(states_BTD.shape[1])
    real_BT = (place >= 1) & (place < lengths[:, None])
    return np.einsum("btd,bt->bd", states_BTD, real_BT) / real_BT.sum(axis=1)[:, None]
