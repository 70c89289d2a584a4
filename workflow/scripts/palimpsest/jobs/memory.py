"""What a job does when a device's memory runs out: its next attempt takes less at once."""

import contextlib
from collections.abc import Callable, Iterator

import torch

from palimpsest.errors import OutOfMemory, UserError
from palimpsest.training.attempts import Attempts, Passes

# What a device, or the machine, says when it has no memory left, beside torch's own error.
SAID = ("can't allocate memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
REMEDY = "raise training/processes or training/zero_stage, or set training/offload_optimizer to cpu"


@contextlib.contextmanager
def less_next_time(
    attempts: Attempts | None,
    engine: str,
    passes: Passes,
    is_measuring: Callable[[], bool],
    cuts_batches: bool = True,
) -> Iterator[None]:
    """Note for the next attempt to take half as many strings per forward pass, if memory runs out.

    Parameters
    ----------
    attempts : where it is noted; with None the error of the library is passed on
    engine : `deepspeed`, or `fleet`, which divides its models by itself: its errors are passed on
    passes : how many strings this attempt takes
    is_measuring : whether strings are measured now, and not trained on
    cuts_batches : whether the batch of a step may be cut into several forward passes

    Raises
    ------
    OutOfMemory
        The next attempt should be made.
    UserError
        No attempt can take less.
    """
    try:
        yield
    except RuntimeError as error:
        if attempts is None or engine == "fleet" or not is_out_of_memory(error):
            raise
        measuring = is_measuring()
    else:
        return
    doing = "measuring" if measuring else "training"
    if not measuring and not cuts_batches:
        raise UserError(
            f"out of memory while {doing} with a loss that is of a whole batch, which cannot be "
            f"cut; {REMEDY}"
        )
    less = passes.halved(measuring)
    if less is None:
        raise UserError(f"out of memory while {doing} with one string per forward pass; {REMEDY}")
    attempts.note(less)
    name = "evaluation_batch_size" if measuring else "micro_batch_size"
    raise OutOfMemory(
        f"out of memory while {doing} with {getattr(passes, name)} strings per forward pass; the "
        f"next attempt takes {getattr(less, name)}, to the same effect"
    )


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether a device, or the machine, had no memory left to give."""
    return isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in SAID)
