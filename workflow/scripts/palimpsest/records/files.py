"""Records that a user brings: texts with names, groups, and whether a model was trained on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from palimpsest.errors import UserError
from palimpsest.records.losses import GROUP, TRAINED, WHICH
from palimpsest.tables import user_files
from palimpsest.tables.kinds import NAME, Column, UserKind
from palimpsest.tables.user_tables import read_user_table

TEXT = "text"
NEEDED = (Column(TEXT, NAME, "the text of the record"),)
OPTIONAL = (Column("id", NAME, "the name of the record"), *WHICH)
RENAMED = "{text: body, id: key}"


@dataclass(frozen=True)
class Records:
    """Records of a user's own.

    Parameters
    ----------
    ids : str[records], in the order of the file; without a column `id`, numbers from 1
    texts : str[records]
    trained : bool[records] or None
        Whether the model was trained on the record. Records on which it was not are the placebo.
    groups : str[records]; without a column `group`, each record is a group of its own
    source : the name of the file in messages
    """

    ids: np.ndarray
    texts: np.ndarray
    trained: np.ndarray | None
    groups: np.ndarray
    source: str = "records"


def read_records(path: str | Path, columns: Mapping[str, str] | None = None) -> Records:
    """Read records from a file with one row for each of them.

    Parameters
    ----------
    path : a .csv, .tsv, .jsonl, .json or .parquet file with the column text, and any of id, trained
        (true or false, yes or no, 1 or 0) and group
    columns : the file's own names of columns, such as {"text": "body"}

    Raises `UserError` if there is no such file, if it cannot be read, if a text is empty or blank,
    if two records have one id, or if no record was trained on. The message names the row.
    """
    file = user_files.opened(path, user_files.TABLES, "a table of records")
    asked = columns or {}
    there = [column for column in OPTIONAL if column.name in asked or column.name in file.columns]
    kind = UserKind(
        "table of records", "one row for each record", "record", (*NEEDED, *there), renamed=RENAMED
    )
    table = read_user_table(path, kind, columns)
    places, values = table.names(TEXT)
    texts = np.array(values, dtype=object)[places]
    if blank := [row for row, text in enumerate(texts) if not text.strip()]:
        raise table.wrong(TEXT, blank[0], "has no words")
    ids = np.array([str(number) for number in range(1, len(texts) + 1)], dtype=object)
    if "id" in table.cells:
        places, names = table.names("id")
        ids = np.array(names, dtype=object)[places]
        if len(names) < len(ids):
            first = {}
            row = next(r for r, place in enumerate(places) if first.setdefault(place, r) != r)
            earlier = table.another(first[places[row]])
            raise UserError(
                f"{table.at(row)}: the id {ids[row]!r} is that of {earlier} already; give every "
                "record an id of its own"
            )
    trained = table.truths(TRAINED) if TRAINED in table.cells else None
    if trained is not None and not trained.any():
        raise UserError(f"{table.source}: no record was trained on; add some to ask about")
    groups = ids
    if GROUP in table.cells:
        places, names = table.names(GROUP)
        groups = np.array(names, dtype=object)[places]
    return Records(ids, texts, trained, groups, str(path))
