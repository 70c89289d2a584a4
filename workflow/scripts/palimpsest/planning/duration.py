"""How long a run takes, by part, from assumptions or from what finished runs have measured."""

import math
from dataclasses import dataclass

from palimpsest.planning.assumptions import (
    CPU_UPDATES,
    DISK_SPEED,
    GPU_MEMORY_SPEED,
    HOST_SPEED,
    LINK_SPEED,
    OPERATIONS_TO_MEASURE,
    OPERATIONS_TO_TRAIN,
    START_SECONDS,
    TIME_SAFETY,
    TWIN_SPEED,
    TWIN_STEP_SECONDS,
    TWIN_TOKEN_SECONDS,
    UPDATE_BYTES,
)
from palimpsest.planning.disk import checkpoint_bytes
from palimpsest.planning.shapes import Hardware, Settings, Shape, Strings

LEAST_MINUTES = 60
READINGS_TO_TRAIN = 3  # of every weight in a forward and a backward pass


@dataclass(frozen=True)
class Duration:
    """Seconds of one run, by part."""

    training: float
    measuring: float
    checkpoints: float
    start: float
    basis: str = "assumed"

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.training + self.measuring + self.checkpoints + self.start


@dataclass(frozen=True)
class Speed:
    """What finished runs of a model have measured, on one kind of hardware.

    `trained` are tokens trained on per second of training, `rest` seconds of all else (measuring,
    checkpoints, the start) per token measured.
    """

    trained: float
    rest: float


def measured(speed: Speed, settings: Settings, strings: Strings) -> Duration:
    """The duration of a run at the speed of finished ones; all but training is one part."""
    return Duration(
        training=strings.tokens_trained(settings) / speed.trained,
        measuring=strings.tokens_measured(settings) * speed.rest,
        checkpoints=0.0,
        start=0.0,
        basis="measured",
    )


def full(shape: Shape, settings: Settings, strings: Strings, hardware: Hardware) -> Duration:
    """The assumed duration of a run of a full model on its GPUs."""
    saved = checkpoint_bytes(shape, settings)
    return Duration(
        training=strings.steps(settings) * step_seconds(shape, settings, strings, hardware),
        measuring=measuring_seconds(shape, settings, strings, hardware),
        checkpoints=settings.checkpoints * saved / DISK_SPEED,
        start=START_SECONDS + settings.width * shape.parameters / DISK_SPEED,
    )


def step_seconds(shape: Shape, settings: Settings, strings: Strings, hardware: Hardware) -> float:
    """One optimiser step: passes, the exchange of gradients and weights, the update."""
    batch = min(settings.batch_size, strings.n_trained)
    tokens = batch * strings.expected / settings.processes
    products = OPERATIONS_TO_TRAIN * shape.parameters * tokens / hardware.operations
    reading = READINGS_TO_TRAIN * settings.passes * _reading_seconds(shape, settings)
    return (
        max(products, reading) + exchange_seconds(shape, settings) + update_seconds(shape, settings)
    )


def exchange_seconds(shape: Shape, settings: Settings) -> float:
    """Gradients out and weights in, once a step; ZeRO 3 gathers the weights for every pass."""
    others = (settings.processes - 1) / settings.processes
    times = 1 + 2 * settings.passes if settings.zero_stage == 3 else 2
    return times * others * settings.width * shape.parameters / LINK_SPEED


def update_seconds(shape: Shape, settings: Settings) -> float:
    """AdamW on the process's share of the parameters, on the GPU or, offloaded, on the CPU."""
    share = shape.parameters / (settings.processes if settings.zero_stage else 1)
    if not settings.offloaded:
        return UPDATE_BYTES * share / GPU_MEMORY_SPEED
    return share / CPU_UPDATES + 2 * settings.width * share / HOST_SPEED


def measuring_seconds(
    shape: Shape, settings: Settings, strings: Strings, hardware: Hardware
) -> float:
    """All measurements of a run's strings, shared among its processes."""
    tokens = strings.tokens_measured(settings) / settings.processes
    products = OPERATIONS_TO_MEASURE * shape.parameters * tokens / hardware.operations
    batches = math.ceil(strings.n_measured / (settings.evaluation_batch_size * settings.processes))
    reading = settings.measurements * batches * _reading_seconds(shape, settings)
    return max(products, reading)


def _reading_seconds(shape: Shape, settings: Settings) -> float:
    """Reading every weight once."""
    return settings.width * shape.parameters / GPU_MEMORY_SPEED


def twin(shape: Shape, settings: Settings, strings: Strings, engine: str, threads: int) -> Duration:
    """The assumed duration of one run of a twin on CPU threads, without its job's start."""
    products = OPERATIONS_TO_TRAIN * shape.parameters / TWIN_SPEED
    token = (products + TWIN_TOKEN_SECONDS) / threads
    step = TWIN_STEP_SECONDS[engine]
    return Duration(
        training=token * strings.tokens_trained(settings) + step * strings.steps(settings),
        # A forward pass is a third of the work of a step.
        measuring=token * strings.tokens_measured(settings) / 3,
        checkpoints=0.0,
        start=0.0,
    )


def asked_for(seconds: float, attempt: int, most: float) -> int:
    """Minutes that a job asks for: with a margin, in half hours, more at every attempt.

    Never more than `most` seconds. A job that is cut off resumes in its next attempt.
    """
    minutes = 30 * math.ceil(seconds * TIME_SAFETY / 60 / 30)
    return min(int(most / 60), max(LEAST_MINUTES, minutes) * attempt)
