"""The models to which a job applies a method, and what is done with them afterwards."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class MethodModels:
    """The unlearned models of one method in a job.

    `origins` and `unlearning_replicates` name the unlearned models. They start from trained models
    of the variant `variant`, with the replicates `starts`.
    """

    origins: list[int]
    unlearning_replicates: list[int]
    variant: str
    starts: list[int]


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

    @property
    def nothing(self) -> Afterwards:
        """The same schedules, after which models are only measured."""
        return replace(
            self, curve=replace(self.curve, models=0), relearn=replace(self.relearn, models=0)
        )

    @classmethod
    def of(cls, given: dict) -> Afterwards:
        return cls(given["cutoff"], Curve(**given["curve"]), Relearning(**given["relearn"]))
