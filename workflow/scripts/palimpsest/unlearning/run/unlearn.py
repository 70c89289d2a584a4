"""Unlearning: apply methods to original models, and tell what the unlearned models predict.

Source: Are we making progress in unlearning?, section 2.1 and algorithm 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from palimpsest.jobs.bench import TrainedWeights
from palimpsest.jobs.query import Question, joint_query
from palimpsest.unlearning.kinds import STAGES, UNLEARNED, UNLEARNED_MODELS
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.run.jobs import models_by_method
from palimpsest.unlearning.run.method_models import Afterwards, MethodModels
from palimpsest.unlearning.run.wave import UnlearningWave
from palimpsest.unlearning.run.workbench import Workbench


@dataclass(frozen=True)
class Unlearning:
    """The work of a job with one method: the models to which it is applied, and what follows."""

    method: Method
    part: MethodModels
    afterwards: Afterwards

    @property
    def question(self) -> Question:
        part = self.part
        about = {
            "method": self.method.name,
            "phases": self.method.written,
            "variant": part.variant,
            "starts": part.starts,
            "origins": part.origins,
            "draws": part.unlearning_replicates,  # frozen: the key of the state hashes this name
            "afterwards": asdict(self.afterwards),
        }
        return Question(self.method.name, about, len(part.origins), self.of_some)

    def of_some(
        self, workbench: Workbench, trained: TrainedWeights, places: np.ndarray
    ) -> list[pd.DataFrame]:
        """The tables about the part's models with these indices."""
        wave = UnlearningWave(workbench, self.part, trained, places)
        wave.forget(self.method, self.afterwards.cutoff)
        wave.keep(self.afterwards.relearn.models)
        wave.follow(self.method, self.afterwards.cutoff, self.afterwards.curve)
        wave.round_weights(self.afterwards.relearn.models)
        wave.relearn(self.afterwards.relearn)
        return wave.frames()


def forget_loss(workbench: Workbench, frames: list[pd.DataFrame]) -> float:
    return workbench.loss_in(frames[0])


@joint_query(
    "unlearning",
    UNLEARNED,
    UNLEARNED_MODELS,
    STAGES,
    make_bench=Workbench,
    loss_in=forget_loss,
)
def unlearn(
    *,
    phases: Mapping[str, list[dict]],
    models: Mapping,
    afterwards: Mapping,
    parts: Sequence[str] = (),
) -> list[Question]:
    """Apply every method to its models; `phases` are those of each method.

    Models of the methods `parts` are only unlearned: they are not followed, and do not relearn. For
    `models`, see `palimpsest.unlearning.run.jobs.models_by_method`.
    """
    then = Afterwards.of(afterwards)
    return [
        Unlearning(
            Method.of(name, phases[name]), of_method, then.nothing if name in parts else then
        ).question
        for name, of_method in models_by_method(phases, models).items()
    ]
