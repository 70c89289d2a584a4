"""Losses of single tokens under the models that were trained without a string."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch

from palimpsest import tables
from palimpsest.atlas import kinds
from palimpsest.datasets.choices import placebos_of
from palimpsest.datasets.kinds import STRINGS
from palimpsest.jobs.bench import Bench, TrainedWeights
from palimpsest.jobs.query import query
from palimpsest.regimes import WHOLE_AGAIN, half_of, string_left_out
from palimpsest.training.batches import IGNORED

Weights = dict[str, torch.Tensor]


@query("atlas", "removed tokens", kinds.REMOVED_TOKENS)
def removed_tokens(
    bench: Bench, weights: TrainedWeights, numbers: np.ndarray
) -> list[pd.DataFrame]:
    """The table `removed_tokens` of one run, for some of three files of weights.

    The files are those of the training on all strings, of `removals` and of `removals-again`.
    """
    strings = tables.read(bench.run.dataset, STRINGS)
    trained = strings.loc[strings["count"] > 0, "string_id"]
    placebos = dict(zip(trained, placebos_of(strings, trained), strict=True))
    rows = [
        {"again": number == 2, "removed": removed, "string_id": name, "log_probs": log_probs}
        for number in numbers
        for removed, of_model in _models_in(weights.of_run(number))
        for name, log_probs in _log_probs(bench, of_model, _measured(placebos, removed))
    ]
    return [pd.DataFrame(rows).assign(**bench.keys)[kinds.REMOVED_TOKENS.names]]


def _models_in(file: Weights) -> Iterator[tuple[str | None, Weights]]:
    """Yield the removed string of each training in a file, and its weights; halves are left out."""
    by_variant: dict[str, Weights] = {}
    for name, tensor in file.items():
        variant, _, parameter = name.rpartition("/")
        by_variant.setdefault(variant, {})[parameter] = tensor
    for variant, of_model in by_variant.items():
        if half_of(variant) is None:
            yield None if variant in ("", WHOLE_AGAIN) else string_left_out(variant), of_model


def _measured(placebos: dict[str, str | None], removed: str | None) -> list[str]:
    """The strings that are measured: the removed one and its placebo, or all such strings."""
    wanted = [*placebos, *placebos.values()] if removed is None else [removed, placebos[removed]]
    return [name for name in dict.fromkeys(wanted) if name is not None]


def _log_probs(
    bench: Bench, weights: Weights, names: list[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield some strings and the log probabilities of their tokens, float64[tokens], nats."""
    ids = bench.material.string_ids
    found: dict[str, np.ndarray] = {}

    def note(rows: np.ndarray, logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> None:
        log_BTV = logits_MBTV[0].double().log_softmax(-1)
        for row, log_TV, target_T in zip(rows, log_BTV, targets_MBT[0], strict=True):
            real_T = target_T != IGNORED
            log_T = log_TV[real_T].gather(-1, target_T[real_T, None])[:, 0]
            found[ids[row]] = log_T.cpu().numpy()

    models = bench.holder.open([weights])
    bench.measure(models, pd.Index(ids).get_indexer(names), also=note)
    yield from found.items()
