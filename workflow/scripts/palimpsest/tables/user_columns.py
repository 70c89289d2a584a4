"""The columns of tables that users bring: which column of a file holds what is expected."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from palimpsest.errors import UserError, nearest
from palimpsest.tables import user_files
from palimpsest.tables.kinds import UserKind

PAIR = re.compile(r"(\w+): ([^,{}]+)")  # of an example such as {file: mine.csv, unit: document}
IN_CONFIGURATION = "name yours in the configuration: "


def check_columns(
    path: str,
    kind: UserKind,
    columns: Mapping[str, str] | None = None,
    formats: Sequence[str] = user_files.TABLES,
) -> None:
    """Raise `UserError` unless a file of the configuration has all columns of a kind.

    No more than the head of the file is read.
    """
    file = user_files.opened(path, formats, f"a {kind.name}")
    named_columns(file.where, kind, file.columns, columns or {}, True)


def named_columns(
    where: str,
    kind: UserKind,
    known: Sequence[str],
    asked: Mapping[str, str],
    in_configuration: bool = False,
) -> dict[str, str]:
    """The table's own name of each column of a kind; `UserError` if one is missing or there twice.

    `asked` has the names that differ from those of the kind. They are given in Python, or
    `in_configuration`, as the message then says.
    """
    for name in asked:
        if name not in kind.names:
            near = nearest(name, [one for one in kind.names if one not in asked])
            raise UserError(
                f"{where}: columns: a {kind.name} has no column {name!r}{near}; choose from "
                f"{', '.join(kind.names)}"
            )
    written_as = {name: asked.get(name, name) for name in kind.names}
    for name, own in written_as.items():
        if own not in known:
            others = {written_as[other] for other in kind.names if other != name}
            example = _example(kind.renamed, in_configuration)
            raise UserError(f"{where}: {_no_column(kind, name, own, known, others, example)}")
        if list(known).count(own) > 1:
            raise UserError(f"{where}: has the column {own!r} twice; rename or drop one of them")
    return written_as


def _example(renamed: str, in_configuration: bool) -> str:
    """How to name columns, from an example in YAML; empty without one."""
    if not renamed:
        return ""
    if in_configuration:
        return f", or {IN_CONFIGURATION}{renamed}"
    pairs = dict(PAIR.findall(renamed))
    pairs.pop("file", None)
    return f", or name yours: columns={json.dumps(pairs)}"


def _no_column(
    kind: UserKind, name: str, own: str, known: Sequence[str], others: set[str], example: str
) -> str:
    """`others` are the columns that hold something else, so no column of them is meant."""
    if len(known) == 1 and (parted := next((sign for sign in ";\t|" if sign in known[0]), None)):
        return f"its columns are separated by {parted!r}; save it with commas between them"
    for_what = f" for {name!r}" if name != own else ""
    # A file has few columns, so a guess helps.
    near = nearest(own, [column for column in known if column not in others], 0.5)
    return (
        f"has no column {own!r}{for_what}{near}; it has: "
        f"{', '.join(known) or 'none'}; a {kind.name} has the columns {', '.join(kind.names)}"
        f"{example}"
    )
