"""The files with a run's weights after each epoch, for runs that keep them."""

import re
from pathlib import Path

from palimpsest.errors import UserError

PATTERN = re.compile(r"epoch-(\d+)\.safetensors")


def weights_after(epoch: int) -> str:
    return f"epoch-{epoch}.safetensors"


def weights_by_epoch(folder: str | Path) -> dict[int, Path]:
    """The files of weights in a folder, by epoch.

    Raises `UserError` if there are none.
    """
    found = {path: PATTERN.fullmatch(path.name) for path in Path(folder).glob("*")}
    files = {int(match[1]): path for path, match in found.items() if match}
    if not files:
        raise UserError(f"{folder}: no weights of any epoch; delete the folder and run again")
    return dict(sorted(files.items()))
