"""What phases of unlearning cost, worked out from their values."""

from collections.abc import Iterable, Mapping

from palimpsest.unlearning.methods import Training
from palimpsest.unlearning.methods.phases import Phase


def passes(phases: Iterable[Phase], sizes: Mapping[str, int], batch_size: int, budget: int) -> int:
    """Forward and backward passes over a batch, as in `Task.steps`.

    `sizes` holds the number of strings in each set, with copies, and `budget` the passes that the
    method may make.
    """
    found = 0
    for phase in phases:
        if isinstance(phase, Training):
            found += phase.steps(budget) * phase.passes_per_step
        elif phase.name == "select-gradient":
            found += sum(-(-sizes[name] // batch_size) for name in phase.sets)
    return found
