"""Disk space of a run: its results, and its checkpoints while it runs. All sizes are in bytes."""

from palimpsest.planning.memory import FP32, MOMENTS
from palimpsest.planning.shapes import Shape, Strings, Training, trained_parameters

TRACE_BYTES = 12  # per string and measurement, compressed; measured in finished studies


def trace_bytes(training: Training, strings: Strings) -> float:
    return TRACE_BYTES * strings.n_measured * training.measurements


TOKEN_BYTES = 5  # per predicted token and measurement, compressed; measured in finished studies


def tokens_bytes(training: Training, strings: Strings) -> float:
    return TOKEN_BYTES * strings.tokens_measured(training)


def weights_bytes(shape: Shape, training: Training) -> float:
    """The final weights of one run, if they are saved; an adapter is merged in float32."""
    return (FP32 if training.adapts else training.width) * shape.parameters


def checkpoint_bytes(shape: Shape, training: Training) -> float:
    """One checkpoint: weights, moments and, except in float32 without ZeRO, a float32 master.

    With adapters, only the adapters are in it.
    """
    alone = training.zero_stage == 0 and training.width == FP32
    each = training.width + MOMENTS + (0 if alone else FP32)
    return each * trained_parameters(shape, training)


def state_bytes(shape: Shape, training: Training) -> float:
    """Checkpoints of a run in progress: the last one stays until the next is complete."""
    return min(2, training.checkpoints) * checkpoint_bytes(shape, training)
