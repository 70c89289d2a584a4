"""Activations of trained models on strings that they were not trained on, and their answers.

Source: the paper on information measures of neurons, appendix A and sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from palimpsest import tables
from palimpsest.datasets.kinds import STRINGS
from palimpsest.density.embedding import mean_of_symbols
from palimpsest.information.answers import answers
from palimpsest.information.kinds import ACTIVATIONS, ANSWERS, LAST, MEAN, NORMS
from palimpsest.information.norms import norms
from palimpsest.jobs.bench import Bench, TrainedWeights
from palimpsest.jobs.query import query
from palimpsest.models.sites import Site
from palimpsest.models.trained import Models
from palimpsest.training.batches import by_length
from palimpsest.training.evaluation import strings_at_once

ALL = "all"


@dataclass(frozen=True)
class Where:
    """Which activations are read. `layers` are the numbers of blocks; None means all."""

    layers: tuple[int, ...] | None
    places: tuple[str, ...]
    positions: tuple[str, ...]

    @classmethod
    def of(
        cls, layers: str | Sequence[str | int], places: Sequence[str], positions: Sequence[str]
    ) -> Where:
        """From the values of the configuration or of a command; `layers` may be "all"."""
        every = layers in (ALL, [ALL])
        numbers = None if every else tuple(map(int, layers))
        return cls(numbers, tuple(places), tuple(positions))

    def sites(self, models: Models) -> list[Site]:
        """The sites of some models, layer after layer; a model may lack a site."""
        known = dict.fromkeys(site.layer for site in models.sites())
        layers = known if self.layers is None else self.layers
        return [Site(layer, place) for layer in layers for place in self.places]


@query("information", "activations", ACTIVATIONS, ANSWERS, NORMS)
def activations(
    bench: Bench,
    weights: TrainedWeights,
    numbers: np.ndarray,
    *,
    layers: str | Sequence[int],
    places: Sequence[str],
    positions: Sequence[str],
) -> list[pd.DataFrame]:
    """The tables `activations`, `answers` and `norms` of a run's model.

    Raises `UserError` if the model lacks a site.
    """
    where = Where.of(layers, places, positions)
    models = bench.holder.open([weights.of_run(0)])
    strings = tables.read(bench.run.dataset, STRINGS)
    rows = np.flatnonzero(strings["test_count"] > 0)
    vectors = activations_of(bench, models, rows, where)
    keys = {**bench.keys, "variant": bench.material.keys["variant"]}
    return [
        activations_table(keys, bench.material.string_ids[rows], vectors),
        answers_table(bench, keys, strings.iloc[rows], predictions_of(bench, models, rows)),
        pd.DataFrame([{**keys, **norms(matrices(models))._asdict()}])[NORMS.names],
    ]


def activations_of(
    bench: Bench, models: Models, rows: np.ndarray, where: Where
) -> dict[tuple[Site, str], np.ndarray]:
    """The first model's activations float32[strings, neurons], by site and position.

    Strings are in the order of `rows`. Raises `UserError` if the model lacks a site.
    """
    sites = where.sites(models)

    def of_batch(ids_MBT, lengths, before):
        found = {}
        for site, states_MBTN in zip(sites, models.activations(ids_MBT, sites), strict=True):
            states_BTN = states_MBTN[0].cpu().numpy()
            if LAST in where.positions:
                found[site, LAST] = states_BTN[np.arange(len(before)), before]
            if MEAN in where.positions:
                mean = mean_of_symbols(states_BTN.astype(float), lengths)
                found[site, MEAN] = mean.astype(np.float32)
        return found

    return passes(bench, models, rows, of_batch)


def predictions_of(bench: Bench, models: Models, rows: np.ndarray) -> np.ndarray:
    """Log probabilities float64[strings, V] of every token in the place of the last symbol, nats.

    They are those of the first model, in the order of `rows`.
    """

    def of_batch(ids_MBT, lengths, before):
        with torch.no_grad():
            logits_BV = models.logits(ids_MBT)[0, np.arange(len(before)), before]
        return {"log_prob": logits_BV.double().log_softmax(-1).cpu().numpy()}

    return passes(bench, models, rows, of_batch)["log_prob"]


def passes(bench: Bench, models: Models, rows: np.ndarray, of_batch: Callable) -> dict:
    """What forward passes over some strings find: arrays [strings, ...] in the order of `rows`.

    `of_batch` makes the arrays of a batch by name, from its tokens int[M, B, T], the lengths of its
    strings, and the places of the tokens that predict the last symbols.
    """
    encoded, ends = bench.material.encoded, bench.run.recipe.predict_end
    together = strings_at_once(bench.passes.evaluation_batch_size, models.device, models.count)
    batches, parts = by_length(encoded.lengths, rows, together, 1), []
    for batch in batches:
        lengths = encoded.lengths[batch]
        ids_BT = torch.from_numpy(encoded.ids[batch, : lengths.max()]).to(models.device)
        ids_MBT = ids_BT.expand(models.count, *ids_BT.shape)
        # An end token may follow the last symbol.
        parts.append(of_batch(ids_MBT, lengths, lengths - 2 - ends))
    order = pd.Index(np.concatenate(batches)).get_indexer(rows)
    return {
        name: bench.holder.agree(np.concatenate([part[name] for part in parts])[order])
        for name in parts[0]
    }


def activations_table(
    keys: dict, string_ids: np.ndarray, vectors: dict[tuple[Site, str], np.ndarray]
) -> pd.DataFrame:
    """The table `activations`, site after site."""
    parts = [
        pd.DataFrame(
            {
                **keys,
                "string_id": string_ids,
                **site._asdict(),
                "position": position,
                "vector": list(own),
            }
        )
        for (site, position), own in vectors.items()
    ]
    return pd.concat(parts, ignore_index=True)[ACTIVATIONS.names]


def answers_table(
    bench: Bench, keys: dict, strings: pd.DataFrame, log_prob: np.ndarray
) -> pd.DataFrame:
    """The table `answers` of some rows of the table `strings`.

    `log_prob` float64[strings, V] are log probabilities of all tokens in the place of the answer.
    """
    token_of = bench.material.token_ids.id_of
    names = np.array(answers(bench.run.corpus.grammar), dtype=object)
    log_prob = log_prob[:, [token_of[name] for name in names]]
    own = strings["group"].to_numpy(dtype=object)
    nll = -log_prob[np.arange(len(strings)), pd.Index(names).get_indexer(own)]
    given = names[log_prob.argmax(axis=1)]
    return pd.DataFrame(
        {
            **keys,
            "string_id": strings["string_id"].array,
            "answer": own,
            "given": given,
            "is_right": given == own,
            "role": strings["role"].array,
            "nll": nll,
        }
    )[ANSWERS.names]


def matrices(models: Models) -> Iterator[np.ndarray]:
    """The weight matrices of the first model, without embeddings, each float32[outputs, inputs]."""
    with models.weights() as weights:
        for name, values in weights.items():
            if values[0].ndim == 2 and name not in models.embeddings:
                yield values[0].float().cpu().numpy()
