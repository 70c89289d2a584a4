"""What a run leaves on disk, and what it needs there while it is under way. Bytes everywhere."""

from palimpsest.planning.memory import FP32, MOMENTS
from palimpsest.planning.shapes import Settings, Shape, Strings

TRACE_BYTES = 12  # per string and measurement, compressed, as seen in finished studies


def trace_bytes(settings: Settings, strings: Strings) -> float:
    """The trace of one run."""
    return TRACE_BYTES * strings.n_measured * settings.measurements


def weights_bytes(shape: Shape, settings: Settings) -> float:
    """The final weights of one run, where they are saved."""
    return settings.width * shape.parameters


def checkpoint_bytes(shape: Shape, settings: Settings) -> float:
    """One checkpoint: weights, moments and, unless the weights are it, the float32 master."""
    alone = settings.zero_stage == 0 and settings.width == FP32
    return (settings.width + MOMENTS + (0 if alone else FP32)) * shape.parameters


def state_bytes(shape: Shape, settings: Settings) -> float:
    """Checkpoints of a run that is under way: the last one stays until the next is complete."""
    return min(2, settings.checkpoints) * checkpoint_bytes(shape, settings)
