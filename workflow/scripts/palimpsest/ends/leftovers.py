"""Leftovers: figures and tables in `results` that another configuration made.

Only what people look at counts: figures, and the tables that claims are tested on. They are fast to
make again. Runs and state stay where they are, because another configuration may go on with them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from palimpsest.errors import WRITE_REMEDY, UserError
from palimpsest.paths import WILDCARD, values_in

RESULTS = Path("results")
APART = RESULTS / "apart"


def leftovers(patterns: Iterable[str], wanted: Iterable[str]) -> list[str]:
    wanted = set(wanted)
    there = (
        path.as_posix()
        for pattern in patterns
        for path in Path().glob(WILDCARD.sub("*", pattern))
        if values_in(pattern, path.as_posix()) is not None
    )
    return sorted({path for path in there if path not in wanted})


def notice(found: list[str], command: str) -> str | None:
    """One line about leftovers, with the command that sets them apart; None if there are none."""
    if not found:
        return None
    return (
        f"not of this configuration: {len(found)} figures and tables in {RESULTS}, such as "
        f"{found[0]}; to move them aside: {command}"
    )


def set_apart(files: list[str]) -> Path:
    """Move files into a new folder, where each has the place that it has in `results`."""
    for number in count(1):
        folder = APART / str(number)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UserError(f"{folder}: cannot be made: {error.strerror}; {WRITE_REMEDY}") from None
        break
    for file in files:
        target = folder / Path(file).relative_to(RESULTS)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.move(file, target)
        except OSError as error:
            raise UserError(f"{file}: cannot be moved: {error.strerror}; {WRITE_REMEDY}") from None
    return folder


def account(files: list[str], runs: list[str]) -> list[str]:
    """Set leftovers apart, and say what was moved, how to take it back, and what stays."""
    said = []
    if files:
        folder = set_apart(files)
        said.append(f"moved {len(files)} figures and tables to {folder}")
        said.append(f"to have them back: cp --recursive --preserve {folder}/. {RESULTS}")
    else:
        said.append("no figure or table of another configuration")
    if runs:
        said.append(f"left in place: {len(runs)} runs of other configurations, such as {runs[0]}")
    return said
