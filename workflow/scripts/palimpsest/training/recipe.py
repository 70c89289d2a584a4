"""The recipe of a run: everything about training except the model, the data and the seed."""

import argparse
import math
from dataclasses import asdict, dataclass, fields

import numpy as np

from palimpsest.models.adapters import ADAPTERS, ALL_LINEAR, LORA, NONE, Adapter

ADAM_BETAS, ADAM_EPS = (0.9, 0.999), 1e-8
LINEAR, COSINE, CONSTANT = SCHEDULES = "linear", "cosine", "constant"


@dataclass(frozen=True)
class Recipe:
    """How to train: the keys of a recipe in the configuration, and the model's learning rate.

    `batch_size` counts the strings per optimiser step over all processes and accumulation steps.
    `micro_batch_size` counts the strings per forward pass of one process. `evaluate_every` and
    `checkpoint_every` are in epochs (`checkpoint_every: 0` means no checkpoints).

    After the warm-up, the learning rate falls to 0 linearly or as a cosine, or stays constant
    (`schedule`).

    With the adapter `lora`, only low-rank adapters are trained; `adapter_targets` are names of
    matrices, separated by commas, and `adapter_rate` multiplies the learning rate. Without an
    adapter, the keys `adapter_*` have no effect.

    Source: Learning Without Memorizing Considered Infeasible, appendix E.
    """

    learning_rate: float
    epochs: int = 50
    batch_size: int = 8
    micro_batch_size: int = 8
    warmup_ratio: float = 0.05
    schedule: str = LINEAR
    weight_decay: float = 0.0
    gradient_clipping: float = 1.0
    zero_stage: int = 2
    offload_optimizer: str = "none"
    precision: str = "auto"
    predict_end: bool = False
    evaluate_every: int = 1
    evaluation_batch_size: int = 64
    checkpoint_every: int = 10
    adapter: str = NONE
    adapter_rank: int = 16
    adapter_alpha: float = 32.0
    adapter_dropout: float = 0.0
    adapter_targets: str = ALL_LINEAR
    adapter_rate: float = 10.0

    @property
    def lora(self) -> Adapter | None:
        if self.adapter != LORA:
            return None
        targets = tuple(self.adapter_targets.split(","))
        return Adapter(self.adapter_rank, self.adapter_alpha, self.adapter_dropout, targets)

    @property
    def peak_rate(self) -> float:
        """The peak learning rate of what is trained: all weights, or an adapter."""
        return self.learning_rate * (self.adapter_rate if self.lora else 1)

    def decisive(self) -> dict[str, int | float | str | bool]:
        """The keys that decide a trace, for the key of a run.

        `checkpoint_every` decides none, so a killed run can be resumed with another interval. The
        keys of an adapter are only there with an adapter, and the schedule if it is not linear:
        runs of versions without them keep their key. Numbers are of the type of their field: 32 and
        32.0 are the same.
        """
        kinds = {field.name: field.type for field in fields(self)}
        return {
            name: float(value) if kinds[name] is float else value
            for name, value in asdict(self).items()
            if name != "checkpoint_every"
            and (self.lora or not name.startswith("adapter"))
            and (name, value) != ("schedule", LINEAR)
        }

    def accumulation_steps(self, processes: int) -> int:
        """Forward passes of each process per optimiser step; the last may be partly empty."""
        return math.ceil(self.batch_size / (self.micro_batch_size * processes))

    def steps_per_epoch(self, n_strings: int) -> int:
        """Optimiser steps in one pass over the training multiset; the last may be smaller."""
        return math.ceil(n_strings / self.batch_size)

    def evaluation_epochs(self) -> list[int]:
        """The epochs in the trace: 0 (the untrained model), every n-th epoch, and the last one."""
        return sorted({*range(0, self.epochs + 1, self.evaluate_every), self.epochs})

    def learning_rate_at(self, step: int, total_steps: int) -> float:
        """Linear warm-up from 0 to the peak, then the schedule; `step` counts from 0.

        The numbers equal those of the schedules of transformers. They depend on the step only, so
        that a resumed run needs no saved state of a scheduler.
        """
        warmup = math.ceil(total_steps * self.warmup_ratio)
        if step < warmup:
            return self.peak_rate * step / warmup
        if self.schedule == CONSTANT:
            return self.peak_rate
        if self.schedule == COSINE:
            progress = (step - warmup) / max(1, total_steps - warmup)
            return self.peak_rate * 0.5 * (1 + math.cos(math.pi * progress))
        return self.peak_rate * (total_steps - step) / max(1, total_steps - warmup)


def epoch_order(n_strings: int, seed: int, epoch: int) -> np.ndarray:
    """Order int[n_strings] of the training multiset in an epoch; epochs are numbered from 1.

    The order depends on seed and epoch only, so that all engines and all resumed runs use the same
    order.
    """
    return np.random.default_rng([seed, epoch]).permutation(n_strings)


CHOICES = {"adapter": ADAPTERS, "schedule": SCHEDULES}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add one flag for each key of a recipe; those of adapters and schedules have defaults."""
    group = parser.add_argument_group("recipe", "the keys of a recipe in the configuration")
    for field in fields(Recipe):
        flag = "--" + field.name.replace("_", "-")
        kind = _boolean if field.type is bool else field.type
        given = {"required": True}
        if field.name.startswith("adapter") or field.name == "schedule":
            given = {"default": field.default}
        group.add_argument(
            flag,
            type=kind,
            choices=CHOICES.get(field.name),
            help=f"{field.name} of the recipe",
            **given,
        )


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]
