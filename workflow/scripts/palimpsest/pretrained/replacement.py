"""Folders of models that appear whole, or not at all."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from palimpsest.errors import WRITE_REMEDY, UserError


@contextlib.contextmanager
def replacing(folder: Path, *errors: type[Exception]) -> Iterator[Path]:
    """A temporary folder that replaces the given folder, if nothing is raised.

    The temporary name is always the same, so that the next job removes what a killed job left.
    Raises `UserError` for an `OSError`, and for any of the further errors of writing.
    """
    work = folder.with_name(f".{folder.name}")
    try:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        yield work
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    except (OSError, *errors) as error:
        first = str(error).partition("\n")[0]
        raise UserError(f"{folder}: cannot be made: {first}; {WRITE_REMEDY}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
