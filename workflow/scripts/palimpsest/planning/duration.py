"""Duration of a run, by part: from assumptions, or from the speed of finished runs."""

import math
from dataclasses import dataclass

from palimpsest.planning.assumptions import (
    CPU_UPDATES,
    DISK_SPEED,
    HOST_SPEED,
    LINK_SPEED,
    OPERATIONS_TO_ADAPT,
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
from palimpsest.planning.shapes import Hardware, Shape, Strings, Training, trained_parameters

LEAST_MINUTES = 60
READINGS_TO_TRAIN = 3  # readings of every weight in a forward and a backward pass
READINGS_TO_ADAPT = 2  # the backward pass needs no gradient of a frozen weight


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
        return self.training + self.measuring + self.checkpoints + self.start


@dataclass(frozen=True)
class Speed:
    """The speed of a model's finished runs on one kind of hardware.

    `trained` is the number of training tokens per second of training. `rest` is the time of
    everything else (measuring, checkpoints, start) in seconds per measured token.
    """

    trained: float
    rest: float


def measured(speed: Speed, training: Training, strings: Strings) -> Duration:
    """The duration of a run at a measured speed; everything except training is one part."""
    return Duration(
        training=strings.tokens_trained(training) / speed.trained,
        measuring=strings.tokens_measured(training) * speed.rest,
        checkpoints=0.0,
        start=0.0,
        basis="measured",
    )


def full(shape: Shape, training: Training, strings: Strings, hardware: Hardware) -> Duration:
    """The assumed duration of a run of a full model on its GPUs."""
    saved = checkpoint_bytes(shape, training)
    return Duration(
        training=strings.steps(training) * step_seconds(shape, training, strings, hardware),
        measuring=measuring_seconds(shape, training, strings, hardware),
        checkpoints=training.checkpoints * saved / DISK_SPEED,
        start=START_SECONDS + training.width * shape.parameters / DISK_SPEED,
    )


def step_seconds(shape: Shape, training: Training, strings: Strings, hardware: Hardware) -> float:
    """One optimiser step: the passes, the exchange of gradients and weights, and the update."""
    batch = min(training.batch_size, strings.n_trained)
    tokens = batch * strings.expected / training.processes
    operations = OPERATIONS_TO_ADAPT if training.adapts else OPERATIONS_TO_TRAIN
    readings = READINGS_TO_ADAPT if training.adapts else READINGS_TO_TRAIN
    products = operations * shape.parameters * tokens / hardware.operations
    # In a step with a few short strings, reading and updating the weights takes about as long as
    # the matrix products.
    reading = readings * training.passes * _reading_seconds(shape, training, hardware)
    update = update_seconds(shape, training, hardware)
    return max(products, reading) + exchange_seconds(shape, training) + update


def exchange_seconds(shape: Shape, training: Training) -> float:
    """Sending gradients and receiving weights once per step; with ZeRO 3, weights in every pass."""
    others = (training.processes - 1) / training.processes
    sent = 2 * trained_parameters(shape, training)
    if training.zero_stage == 3:
        sent = sent / 2 + 2 * training.passes * shape.parameters
    return others * training.width * sent / LINK_SPEED


def update_seconds(shape: Shape, training: Training, hardware: Hardware) -> float:
    """AdamW on a process's share of the parameters: on the GPU, or on the CPU if offloaded."""
    share = trained_parameters(shape, training) / (training.processes if training.zero_stage else 1)
    if not training.offloaded:
        return UPDATE_BYTES * share / hardware.gpu_memory_speed
    return share / CPU_UPDATES + 2 * training.width * share / HOST_SPEED


def measuring_seconds(
    shape: Shape, training: Training, strings: Strings, hardware: Hardware
) -> float:
    """All measurements of a run's strings, shared among its processes."""
    tokens = strings.tokens_measured(training) / training.processes
    products = OPERATIONS_TO_MEASURE * shape.parameters * tokens / hardware.operations
    batches = math.ceil(strings.n_measured / (training.evaluation_batch_size * training.processes))
    reading = training.measurements * batches * _reading_seconds(shape, training, hardware)
    return max(products, reading)


def _reading_seconds(shape: Shape, training: Training, hardware: Hardware) -> float:
    return training.width * shape.parameters / hardware.gpu_memory_speed


def twin(shape: Shape, training: Training, strings: Strings, engine: str, threads: int) -> Duration:
    """The assumed duration of one run of a twin on CPU threads, without the start of its job."""
    products = OPERATIONS_TO_TRAIN * shape.parameters / TWIN_SPEED
    token = (products + TWIN_TOKEN_SECONDS) / threads
    step = TWIN_STEP_SECONDS[engine]
    return Duration(
        training=token * strings.tokens_trained(training) + step * strings.steps(training),
        # A forward pass is a third of the work of a step.
        measuring=token * strings.tokens_measured(training) / 3,
        checkpoints=0.0,
        start=0.0,
    )


def asked_for(seconds: float, attempt: int, most: float) -> int:
    """Minutes that a job requests: with a margin, in half hours, more at every attempt.

    Never more than `most` seconds. A job that runs out of time resumes in its next attempt.
    """
    minutes = 30 * math.ceil(seconds * TIME_SAFETY / 60 / 30)
    return min(int(most / 60), max(LEAST_MINUTES, minutes) * attempt)
