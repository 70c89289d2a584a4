"""What earlier attempts at a job learned about memory, for the next one.

A job that runs out of the device's memory tries again with half as many strings per forward pass
and twice as many passes per step, from its last checkpoint. How a batch is cut into passes decides
no result, so this is no part of what a run's state is named by.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from palimpsest import tables
from palimpsest.training.recipe import Recipe


@dataclass(frozen=True)
class Passes:
    """Strings per forward pass of one process, in training and when measuring.

    `tries` counts the attempts that ran out of memory with more.
    """

    micro_batch_size: int
    evaluation_batch_size: int
    tries: int = 0

    @classmethod
    def of(cls, recipe: Recipe) -> "Passes":
        """As many as the recipe says."""
        return cls(recipe.micro_batch_size, recipe.evaluation_batch_size)

    def halved(self, measuring: bool) -> "Passes | None":
        """Half as many strings where memory ran out; None if there was but one."""
        name = "evaluation_batch_size" if measuring else "micro_batch_size"
        strings = getattr(self, name)
        if strings == 1:
            return None
        return replace(self, **{name: strings // 2}, tries=self.tries + 1)


class Attempts:
    """The note that attempts at one job leave for the next; it holds for the same settings only.

    `asked` are the settings on which memory depends.
    """

    def __init__(self, path: str | Path, asked: dict):
        self.path, self.asked = Path(path), asked

    def passes(self) -> Passes:
        """The strings per forward pass to try: as asked for, or fewer if that was too much."""
        try:
            note = json.loads(self.path.read_text())
            if note["asked"] == self.asked:
                return Passes(**note["passes"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return Passes(self.asked["micro_batch_size"], self.asked["evaluation_batch_size"])

    def note(self, passes: Passes) -> None:
        """Leave word of what to try next."""
        tables.write_json(self.path, {"asked": self.asked, "passes": asdict(passes)})

    def forget(self) -> None:
        """The job is done."""
        self.path.unlink(missing_ok=True)
