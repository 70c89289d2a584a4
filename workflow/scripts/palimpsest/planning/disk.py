"""Disk space of a run: its results, and its checkpoints while it runs. All sizes are in bytes."""

from palimpsest.planning.memory import FP32, MOMENTS
from palimpsest.planning.shapes import Shape, Strings, Training

TRACE_BYTES = 12  # per string and measurement, compressed; measured in finished studies


def trace_bytes(training: Training, strings: Strings) -> float:
    """The trace of one run."""
    return TRACE_BYTES * strings.n_measured * training.measurements


TOKEN_BYTES = 5  # per predicted token and measurement, compressed; measured in finished studies


def tokens_bytes(training: Training, strings: Strings) -> float:
    """The losses of single tokens of one run, if they are kept."""
    return TOKEN_BYTES * strings.tokens_measured(training)


def weights_bytes(shape: Shape, training: Training) -> float:
    """The final weights of one run, if they are saved."""
    return training.width * shape.parameters


def checkpoint_bytes(shape: Shape, training: Training) -> float:
    """One checkpoint: weights, moments and, except in float32 without ZeRO, a float32 master."""
    alone = training.zero_stage == 0 and training.width == FP32
    return (training.width + MOMENTS + (0 if alone else FP32)) * shape.parameters


def state_bytes(shape: Shape, training: Training) -> float:
    """Checkpoints of a run in progress: the last one stays until the next is complete."""
    return min(2, training.checkpoints) * checkpoint_bytes(shape, training)
