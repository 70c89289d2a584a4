"""Attribution scores of a run by several methods, from its weights after every measured epoch.

A query of all epochs together: TracIn sums over them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import torch

from palimpsest.atlas import curvature, ekfac, gradients, kinds, trak, unrolled
from palimpsest.atlas.influence import Weighing
from palimpsest.atlas.kinds import CURVATURE, EKFAC, MAGIC, METHODS, TRACIN, TRAK
from palimpsest.atlas.string_gradients import StringGradients
from palimpsest.errors import UserError
from palimpsest.jobs.bench import Bench, TrainedWeights
from palimpsest.jobs.query import Query, Question
from palimpsest.models.build import build

NORM = "gradient norm"
SELF, CROSS, COSTS = "self_influence", "influence", "costs"


@dataclass(frozen=True)
class Scores:
    """Scores by the name of the measure.

    `of_self` has the epochs of each measure, int[epochs], and its values float64[epochs, measured].
    `of_pairs` has values float64[train, measured] after the last epoch. `passes` counts the passes
    forward and back of single strings.
    """

    of_self: dict[str, tuple[Sequence[int], np.ndarray]]
    of_pairs: dict[str, np.ndarray]
    passes: int


class Trained:
    """A run's strings and its weights by epoch.

    `measured` are the rows of the training strings, and after them those of at most `unseen` test
    strings that are not trained on: their scores are the placebo.

    Raises `UserError` for a run that has no such scores.
    """

    def __init__(self, bench: Bench, weights: TrainedWeights, epochs: Sequence[int], unseen: int):
        run, material = bench.run, bench.material
        _check(bench)
        self.recipe, self.epochs, self._weights = run.recipe, list(epochs), weights
        self.encoded, self.device = material.encoded, bench.holder.device
        self._build = partial(build, run.row, run.scale, material.vocabulary, 0, torch.float32)
        steps = run.recipe.steps_per_epoch(material.epoch_size)
        self.weighing = Weighing(
            material.counts, material.encoded.n_tokens, steps, run.recipe.gradient_clipping
        )
        never = np.flatnonzero((material.counts == 0) & (material.test_counts > 0))
        self.measured = np.concatenate([self.weighing.train, never[:unseen]])
        self._order = material.order

    def gradients(self) -> StringGradients:
        return StringGradients(self._build().eval(), self.encoded, self.device)

    def checkpoints(self) -> Iterator[dict[str, torch.Tensor]]:
        """The weights after each epoch."""
        return (self._weights.of_run(place) for place in range(len(self.epochs)))

    def final(self) -> dict[str, torch.Tensor]:
        return self._weights.of_run(len(self.epochs) - 1)

    def orders(self) -> list[np.ndarray]:
        """Rows of the strings of each epoch, in the order of the training."""
        return [self._order(epoch + 1) for epoch in range(self.recipe.epochs)]

    def training(self) -> unrolled.Training:
        steps = self.recipe.epochs * self.weighing.steps
        return unrolled.Training(self._build().to(self.device), self.encoded, self.recipe, steps)

    def final_model(self):
        """The model with its weights after the last epoch."""
        return next(self._with([self.final()]))

    def models(self) -> Iterator:
        """The model with its weights after each epoch, always the same object."""
        return self._with(self.checkpoints())

    def _with(self, checkpoints: Iterable[Mapping[str, torch.Tensor]]) -> Iterator:
        model = self._build().to(self.device)
        named = dict(model.named_parameters())
        for weights in checkpoints:
            with torch.no_grad():
                for name, values in weights.items():
                    named[name].copy_(values)
            yield model


def _check(bench: Bench) -> None:
    """Raise `UserError` for a run that has no scores by gradients."""
    run = bench.run
    if run.scale != "twin" or run.recipe.lora:
        raise UserError(
            f"{run.model}: the gradients of single strings are only computed for twins that are "
            "trained without an adapter; name a twin, or leave these measures out"
        )
    if bench.material.cohorts is not None:
        raise UserError(
            f"{run.dataset}: is a stream, which is trained on once; scores by gradients are for "
            "strings that are trained on in every epoch"
        )


def by_tracin(trained: Trained, **values) -> Scores:
    weighing, epochs = trained.weighing, trained.epochs
    rates = gradients.rates_between(trained.recipe, weighing.steps, epochs)
    found = gradients.tracin(
        trained.gradients(), trained.checkpoints(), epochs, rates, weighing, trained.measured
    )
    of_self = {NORM: found.gradient_norm, **found.self_influence}
    return Scores(
        {name: (epochs, values) for name, values in of_self.items()},
        found.influence,
        len(epochs) * len(trained.measured),
    )


def by_ekfac(trained: Trained, *, damping: float, draws: int, seed: int, **values) -> Scores:
    found = ekfac.ekfac_influence(
        trained.final_model(),
        trained.encoded,
        trained.weighing,
        trained.measured,
        damping,
        draws,
        seed,
    )
    passes = 2 * draws * len(trained.weighing.train) + len(trained.measured)
    return _at_the_end(EKFAC, trained, found, passes)


def by_trak(trained: Trained, *, damping: float, directions: int, seed: int, **values) -> Scores:
    found = trak.trak(
        trained.gradients(),
        [trained.final()],
        trained.weighing,
        trained.measured,
        directions,
        damping,
        seed,
    )
    return _at_the_end(TRAK, trained, found, len(trained.measured))


def by_magic(trained: Trained, **values) -> Scores:
    training, train, orders = trained.training(), trained.weighing.train, trained.orders()
    kept = dict(zip(trained.epochs, map(training.flat, trained.checkpoints()), strict=True))
    found = unrolled.unrolled(
        training,
        orders,
        trained.recipe.batch_size,
        kept,
        train,
        trained.measured,
        len(trained.weighing.copies),
    )
    passes = sum(map(len, orders)) * (1 + len(train))
    of_self = {MAGIC: (trained.epochs, found.self_influence)}
    return Scores(of_self, {MAGIC: found.influence}, passes)


def by_curvature(trained: Trained, *, seed: int, **values) -> Scores:
    models = (model.eval() for model in trained.models())
    found = curvature.mean_curvature(models, trained.encoded, trained.measured, seed)
    passes = 2 * len(trained.epochs) * len(trained.measured)
    return Scores({CURVATURE: (trained.epochs, found)}, {}, passes)


def _at_the_end(name: str, trained: Trained, found, passes: int) -> Scores:
    of_self = {name: (trained.epochs[-1:], found.self_influence[None])}
    return Scores(of_self, {name: found.influence}, passes)


BY_METHOD: dict[str, Callable[..., Scores]] = {
    TRACIN: by_tracin,
    EKFAC: by_ekfac,
    TRAK: by_trak,
    MAGIC: by_magic,
    CURVATURE: by_curvature,
}


def attribution(
    bench: Bench,
    weights: TrainedWeights,
    *,
    epochs: Sequence[int],
    methods: Sequence[str] = METHODS,
    unseen: int = 64,
    damping: float = ekfac.DAMPING,
    draws: int = ekfac.DRAWS,
    directions: int = trak.SIZE,
) -> dict[str, pd.DataFrame]:
    """Tables of one run: `self_influence`, `influence` and `costs`.

    Columns of `self_influence` are model, language, size, seed, string_id, epoch, measure, value;
    of `influence` model, language, size, seed, removed, string_id, measure, value; of `costs`
    model, language, size, seed, method, seconds (of the processor), passes (forward and back, of
    single strings). Random draws have the run's seed.

    Parameters
    ----------
    epochs : of the files of weights, ascending
    methods : names of METHODS
    unseen : the most test strings that are measured as well
    damping, draws : of EK-FAC; TRAK has the same damping
    directions : of TRAK

    Raises `UserError` if the run is not of a twin, has an adapter, or is of a stream.
    """
    trained = Trained(bench, weights, epochs, unseen)
    values = {"damping": damping, "draws": draws, "directions": directions}
    parts: dict[str, list] = {SELF: [], CROSS: [], COSTS: []}
    names = bench.material.string_ids
    for method in methods:
        begin = time.process_time()
        found = BY_METHOD[method](trained, **values, seed=bench.material.seed)
        seconds = time.process_time() - begin
        parts[COSTS].append(
            pd.DataFrame([{"method": method, "seconds": seconds, "passes": found.passes}])
        )
        measured, removed = names[trained.measured], names[trained.weighing.train]
        parts[SELF] += [_self_rows(name, measured, *of) for name, of in found.of_self.items()]
        parts[CROSS] += [
            _cross_rows(name, removed, measured, of) for name, of in found.of_pairs.items()
        ]
    return {name: _with_keys(bench.keys, tables) for name, tables in parts.items()}


def _self_rows(measure, names, epochs, values) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "string_id": np.tile(names, len(epochs)),
            "epoch": np.repeat(epochs, len(names)),
            "measure": measure,
            "value": values.ravel(),
        }
    )


def _cross_rows(measure, removed, names, values) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "removed": np.repeat(removed, len(names)),
            "string_id": np.tile(names, len(removed)),
            "measure": measure,
            "value": values.ravel(),
        }
    )


_NONE = pd.DataFrame(columns=["removed", "string_id", "measure", "value"])  # no method has pairs


def _with_keys(keys: Mapping, tables: list[pd.DataFrame]) -> pd.DataFrame:
    whole = pd.concat(tables or [_NONE], ignore_index=True)
    return whole.assign(**keys)[[*keys, *whole.columns]]


def questions(n_files: int, values: Mapping) -> list[Question]:
    """The question of a `Query` `by_epoch`: one about all weights of a run together.

    The query's kinds are those of the tables of `attribution`, in this order.
    """

    def make_tables(bench: Bench, weights: TrainedWeights, numbers: np.ndarray) -> list:
        return list(attribution(bench, weights, **values).values())

    return [Question("attribution", dict(values), 1, make_tables)]


attribution.query = Query("atlas", kinds.OF_GRADIENTS, questions, by_epoch=True)
