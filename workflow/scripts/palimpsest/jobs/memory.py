"""What a job does when a device's memory runs out: the next attempt uses smaller batches."""

import contextlib
from collections.abc import Callable, Iterator

from palimpsest.errors import OutOfMemory, UserError
from palimpsest.lazy_import import lazy_import
from palimpsest.training.attempts import Attempts, Passes

torch = lazy_import("torch")

# Messages for exhausted memory of a device or the machine, in addition to torch's own error class.
SAID = ("can't allocate memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
REMEDY = "in the recipe, raise processes or zero_stage, or set offload_optimizer to cpu"


@contextlib.contextmanager
def less_next_time(
    attempts: Attempts | None,
    engine: str,
    passes: Passes,
    is_measuring: Callable[[], bool],
    cuts_batches: bool = True,
) -> Iterator[None]:
    """If memory runs out, let the next attempt take half as many strings per forward pass.

    Parameters
    ----------
    attempts : the record for the next attempt; with None the library's error is raised unchanged
    engine : `deepspeed` or `fleet`; errors of a fleet are raised unchanged, because a fleet divides
        its models by itself
    passes : the number of strings per forward pass in this attempt
    is_measuring : tells whether the job is measuring strings now, and not training on them
    cuts_batches : whether the batch of a step may be cut into several forward passes

    Raises
    ------
    OutOfMemory
        The next attempt can succeed.
    UserError
        No attempt can take fewer strings.
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
            f"out of memory while {doing} with a loss over a whole batch, which cannot be split; "
            f"{REMEDY}"
        )
    less = passes.halved(measuring)
    if less is None:
        raise UserError(f"out of memory while {doing} with one string per forward pass; {REMEDY}")
    attempts.note(less)
    name = "evaluation_batch_size" if measuring else "micro_batch_size"
    raise OutOfMemory(
        f"out of memory while {doing} with {getattr(passes, name)} strings per forward pass; the "
        f"next attempt takes {getattr(less, name)}, with the same result"
    )


def is_out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in SAID)
