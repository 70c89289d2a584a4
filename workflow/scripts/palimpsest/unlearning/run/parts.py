"""The models to which a job applies a method, and what is done with them afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from palimpsest.jobs.delivery import Files
from palimpsest.unlearning.kinds import STAGES, UNLEARNED, UNLEARNED_MODELS


@dataclass(frozen=True)
class Part:
    """The unlearned models of one method in a job, and their files.

    `origins` and `draws` name the unlearned models. They start from trained models of the variant
    `variant`, with the replicates `starts`.
    """

    origins: list[int]
    draws: list[int]
    variant: str
    starts: list[int]
    predictions: str = ""
    models: str = ""
    stages: str = ""
    manifest: str = ""

    @property
    def files(self) -> Files:
        made = (
            (self.predictions, UNLEARNED),
            (self.models, UNLEARNED_MODELS),
            (self.stages, STAGES),
        )
        return Files(self.manifest, made)


@dataclass(frozen=True)
class Curve:
    """Losses of the first `models` models, `points` times while a method runs; 0 models: never."""

    models: int
    points: int


@dataclass(frozen=True)
class Relearning:
    """Training the first `models` models on the forget set again, for `steps` optimiser steps."""

    models: int
    steps: int


@dataclass(frozen=True)
class Afterwards:
    """What decides the schedules of methods, and what is done with the unlearned models.

    A method may take at most the share `cutoff` of the steps of retraining.
    """

    cutoff: float
    curve: Curve
    relearn: Relearning

    @classmethod
    def of(cls, given: dict) -> Afterwards:
        return cls(given["cutoff"], Curve(**given["curve"]), Relearning(**given["relearn"]))
