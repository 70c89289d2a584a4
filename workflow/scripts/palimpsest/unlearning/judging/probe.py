"""What models predict as they are, and with weights of 4 bits, relearned or patched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest.errors import UserError
from palimpsest.jobs.bench import TrainedWeights
from palimpsest.jobs.query import Question, joint_query
from palimpsest.models import Models
from palimpsest.unlearning.interventions import ORIGINAL
from palimpsest.unlearning.judging.parts import SECOND, every
from palimpsest.unlearning.judging.patching import patched
from palimpsest.unlearning.kinds import PROBED
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.methods.sets import FORGET
from palimpsest.unlearning.run.wave import (
    AFTERWARDS,
    RELEARNING,
    ROUNDED,
    UNLEARNING,
    round_to_4_bits,
    seeds_of,
    steps_of_relearning,
    weights_of,
)
from palimpsest.unlearning.run.workbench import Workbench

PATCHED = "patching"  # a stage


@dataclass(frozen=True)
class Probe:
    """The work of a job with some models: a method, if it has phases, and what is measured then.

    The models start from the replicates 0 to n - 1 of a variant. `relearn` is the number of
    optimiser steps on every second forget string. There are `n_originals` original models, which
    take turns to patch the others.
    """

    method: Method
    variant: str
    n: int
    cutoff: float
    relearn: int
    n_originals: int

    @property
    def question(self) -> Question:
        about = {
            "method": self.method.name,
            "phases": self.method.written,
            "variant": self.variant,
            "n": self.n,
            "cutoff": self.cutoff,
            "relearn": self.relearn,
            "originals": self.n_originals,
        }
        return Question(f"probe-{self.method.name}", about, self.n, self.of_some)

    def of_some(
        self, workbench: Workbench, trained: TrainedWeights, places: np.ndarray
    ) -> list[pd.DataFrame]:
        """The table about the models with these numbers."""
        holder = workbench.holder
        models = holder.open([trained.of(self.variant, place) for place in places])
        task = workbench.task(models, self._seeds(workbench, self.method.name, places), self.cutoff)
        task.run(self.method.phases)
        ended = [weights_of(models, place) for place in range(models.count)]
        parts = [self._measured(workbench, UNLEARNING, models, places)]
        models = holder.open(ended)
        round_to_4_bits(models)
        parts.append(self._measured(workbench, ROUNDED, models, places))
        models = holder.open(ended)
        task = workbench.task(models, self._seeds(workbench, AFTERWARDS, places), cutoff=0)
        rows = task.sets[FORGET]
        is_forgotten = np.isin(np.arange(len(workbench.texts)), rows)
        task.sets[FORGET] = rows[every(SECOND, is_forgotten)[rows]]
        for _ in steps_of_relearning(task, self.relearn, workbench.run.recipe.peak_rate):
            pass
        parts.append(self._measured(workbench, RELEARNING, models, places))
        originals = [trained.of(ORIGINAL, place % self.n_originals) for place in places]
        models = holder.open(list(map(patched, ended, originals)))
        parts.append(self._measured(workbench, PATCHED, models, places))
        return [pd.concat(parts)]

    def _seeds(self, workbench: Workbench, purpose: str, places: np.ndarray) -> list[tuple]:
        return seeds_of(workbench.keys["seed"], purpose, places, np.zeros_like(places))

    def _measured(
        self, workbench: Workbench, stage: str, models: Models, places: np.ndarray
    ) -> pd.DataFrame:
        measured, scores = workbench.measure_with_scores(models)
        if not np.isfinite(measured).all():
            raise UserError(
                f"{self.method.name} on {workbench.run.model}: the loss is no longer finite "
                f"({stage}); lower the method's rates in unlearning/table"
            )
        n_strings = measured.shape[2]
        nll, n_correct, rank_sum = measured.transpose(1, 0, 2).reshape(3, -1)
        whole = {"n_correct": n_correct, "rank_sum": rank_sum}
        whole["n_last_correct"] = scores.pop("n_last_correct").ravel()
        return pd.DataFrame(
            {
                **workbench.keys,
                "method": self.method.name,
                "stage": stage,
                "origin": np.repeat(places, n_strings),
                "string_id": np.tile(workbench.material.string_ids, len(places)),
                "nll": nll,
                "n_tokens": np.tile(workbench.material.encoded.n_tokens, len(places)),
                **{name: values.ravel() for name, values in scores.items()},
                **{name: values.astype(np.int64) for name, values in whole.items()},
            }
        )[PROBED.names]


@joint_query("unlearning", PROBED, make_bench=Workbench)
def probe(*, models: Mapping[str, Mapping], cutoff: float, relearn: int) -> Iterator[Question]:
    """Measure models in four stages.

    `models` has by name the `variant` on which the models were trained, their number `n`, and the
    `phases` of the method that is applied to them, if there are any. For the other values, see
    `Probe`.
    """
    n_originals = next(of["n"] for of in models.values() if of["variant"] == ORIGINAL)
    for name, given in models.items():
        method = Method.of(name, given["phases"]) if given["phases"] else Method(name, [])
        yield Probe(method, given["variant"], given["n"], cutoff, relearn, n_originals).question
