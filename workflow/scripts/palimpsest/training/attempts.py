"""A note from earlier attempts at a job to the next attempt: the batch sizes that fit into memory.

If a job runs out of the device's memory, it tries again from its last checkpoint, with half as many
strings per forward pass and twice as many passes per step. How a batch is cut into passes affects
no result, so the note is not part of the key of a run's state.
"""

import json
import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.training.recipe import Recipe

log = logging.getLogger("palimpsest")


@dataclass(frozen=True)
class Passes:
    """Number of strings per forward pass of one process, in training and in measuring.

    `tries` counts the attempts with more strings that ran out of memory.
    """

    micro_batch_size: int
    evaluation_batch_size: int
    tries: int = 0

    @classmethod
    def of(cls, recipe: Recipe) -> "Passes":
        return cls(recipe.micro_batch_size, recipe.evaluation_batch_size)

    def halved(self, measuring: bool) -> "Passes | None":
        """Half as many strings in the work that ran out of memory; None if it had only one."""
        name = "evaluation_batch_size" if measuring else "micro_batch_size"
        strings = getattr(self, name)
        if strings == 1:
            return None
        return replace(self, **{name: strings // 2}, tries=self.tries + 1)


class Attempts:
    """The note that an attempt at a job leaves for the next attempt.

    `asked` holds the settings that decide the use of memory. A note made with other settings is
    ignored.
    """

    def __init__(self, path: str | Path, asked: dict):
        self.path, self.asked = Path(path), asked

    def passes(self) -> Passes:
        """The strings per forward pass to try: as many as set, or fewer if memory ran out."""
        try:
            note = json.loads(self.path.read_text())
            if note["asked"] == self.asked:
                return Passes(**note["passes"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return Passes(self.asked["micro_batch_size"], self.asked["evaluation_batch_size"])

    def note(self, passes: Passes) -> None:
        tables.write_json(self.path, {"asked": self.asked, "passes": asdict(passes)})

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)


def fewer_models(n: int, model: str) -> int:
    """How many models a fleet holds at once after memory ran out with `n`: half of them.

    Raises `UserError` if a single model ran out of memory.
    """
    if n == 1:
        raise UserError(
            f"{model}: the GPU does not have enough memory for even one model; wait until other "
            "programs leave the GPU, or hide the GPU: CUDA_VISIBLE_DEVICES= snakemake ..."
        )
    log.warning("out of memory with %d models at once; continuing with fewer", n)
    return n // 2
