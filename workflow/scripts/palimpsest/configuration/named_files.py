"""Files of a user's own that the configuration names: panels, records and losses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from palimpsest.configuration.messages import Mistake
from palimpsest.errors import UserError
from palimpsest.models.table import NAME, NAMES_ARE
from palimpsest.tables.user_files import TABLES, wrong_path


@dataclass(frozen=True)
class NamedFile:
    """A file of the configuration, and the file's own names of the columns."""

    name: str
    file: str
    columns: Mapping[str, str] = field(default_factory=dict)


def named_files(block: Mapping[str, str | Mapping] | None) -> dict[str, NamedFile]:
    """The files of a block, by name. A value is a path or a block with `file`."""
    found = {}
    for name, asked in (block or {}).items():
        values = {"file": asked} if isinstance(asked, str) else dict(asked)
        found[name] = NamedFile(name, values.pop("file"), values)
    return found


def unusable_files(
    key: str,
    files: Mapping[str, NamedFile],
    what: str,
    formats: Sequence[str] = TABLES,
    folders: bool = False,
    check: Callable[[NamedFile], object] = lambda named: None,
) -> Iterator[Mistake]:
    """Files that are not there, whose names cannot be in paths, or whose head is not as it must be.

    `what` names such a file, such as "a panel". With `folders`, a folder may stand for a file.
    `check` raises `UserError` for the head of a file, of which it reads no more.
    """
    for name, named in files.items():
        if not NAME.fullmatch(name):
            yield Mistake(f"{key}/{name}", f"is not a name; allowed are {NAMES_ARE}")
            continue
        is_folder = folders and os.path.isdir(named.file) and not set("{}") & set(named.file)
        if not is_folder and (wrong := wrong_path(named.file, formats, what)):
            yield Mistake(f"{key}/{name}", wrong)
        else:
            yield from errors_of(f"{key}/{name}", check, named)


def errors_of(key: str, check: Callable, *arguments: object) -> Iterator[Mistake]:
    """The error that a check raises, as a mistake in the value of a key."""
    try:
        check(*arguments)
    except UserError as error:
        yield Mistake(key, str(error))
