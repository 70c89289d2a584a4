"""One more pass of models over the strings of a run, with their weights after the last epoch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import torch

from palimpsest.atlas import kinds
from palimpsest.atlas.changed_strings import ChangedStrings
from palimpsest.audit.measuring import of_batch
from palimpsest.density.embedding import mean_hidden
from palimpsest.jobs.bench import Bench, TrainedWeights
from palimpsest.jobs.query import query
from palimpsest.models.trained import Models
from palimpsest.training.batches import IGNORED

OF_TOKENS = ("log_probs", "means", "deviations", "ranks")


@query("atlas", "last pass", kinds.LAST_PASS)
def last_pass(
    bench: Bench,
    weights: TrainedWeights,
    numbers: np.ndarray,
    *,
    model_seeds: Sequence[int],
    neighbours: int,
    prefixes: int,
) -> list[pd.DataFrame]:
    """The table `last_pass` of one run, for some of the models.

    `model_seeds` are those of the runs that trained the models, in the order of the weights. Only
    the model of the run itself passes over changed strings, see `ChangedStrings`.
    """
    changed = ChangedStrings(bench, neighbours, prefixes)
    rows = []
    for number in numbers:
        models, seed = bench.holder.open([weights.of_run(number)]), model_seeds[number]
        of_changed = changed.columns(models if seed == bench.keys["seed"] else None)
        columns = {**_columns(bench, models), **of_changed}
        rows.append(pd.DataFrame(columns).assign(**bench.keys, model_seed=seed))
    return [pd.concat(rows)[kinds.LAST_PASS.names]]


def _columns(bench: Bench, models: Models) -> dict[str, Sequence]:
    """Columns of all strings, under the first of some models."""
    begin, strings = time.process_time(), bench.material.string_ids
    found: dict[int, np.ndarray] = {}

    def note(rows: np.ndarray, logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> None:
        found.update(zip(rows.tolist(), _of_strings(logits_MBTV[0], targets_MBT[0]), strict=True))

    bench.measure(models, also=note)
    of_tokens = zip(*(found[row] for row in range(len(strings))), strict=True)
    vectors = mean_hidden(bench, models)
    return {
        "string_id": strings,
        **dict(zip(OF_TOKENS, map(list, of_tokens), strict=True)),
        "vector": list(vectors.astype(np.float32)),
        "seconds": time.process_time() - begin,
    }


def _of_strings(logits_BTV: torch.Tensor, targets_BT: torch.Tensor) -> Iterator[np.ndarray]:
    """float64[4, tokens] of each string of a batch: its log probabilities, means and so on."""
    real_BT = targets_BT != IGNORED
    of_tokens = of_batch(logits_BTV, targets_BT, real_BT)
    yield from np.split(of_tokens, np.cumsum(real_BT.sum(-1).cpu().numpy())[:-1], axis=1)
