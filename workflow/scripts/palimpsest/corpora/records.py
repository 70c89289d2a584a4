"""Records that a user brings: texts with names, groups, and whether a model was trained on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from palimpsest import tables
from palimpsest.corpora.kinds import CORPUS
from palimpsest.errors import UserError
from palimpsest.making import makes
from palimpsest.tables import user_files
from palimpsest.tables.kinds import NAME, TRUTH, Column, UserKind
from palimpsest.tables.user_tables import UserTable, read_user_table

TEXT, TRAINED, GROUP = "text", "trained", "group"
# Which records they are
WHICH = (
    Column(TRAINED, TRUTH, "whether the model was trained on the record: true or false"),
    Column(GROUP, NAME, "the name of the record's group, such as a person"),
)
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
    splits : str[records] or None: train, test, holdout, forget or retain
    copies : int64[records] or None
        How often the record is in the training data; None: once each.
    """

    ids: np.ndarray
    texts: np.ndarray
    trained: np.ndarray | None
    groups: np.ndarray
    source: str = "records"
    splits: np.ndarray | None = None
    copies: np.ndarray | None = None


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
    known = (*NEEDED, *there(OPTIONAL, file.columns, columns or {}))
    rows = "one row for each record"
    kind = UserKind("table of records", rows, "record", known, renamed=RENAMED)
    table = read_user_table(path, kind, columns)
    texts = table.names(TEXT).by_row()
    if blank := [row for row, text in enumerate(texts) if not text.strip()]:
        raise table.wrong(TEXT, blank[0], "has no words")
    ids = np.array([str(number) for number in range(1, len(texts) + 1)], dtype=object)
    if "id" in table.cells:
        ids = table.names("id").by_row()
        if (again := pd.Series(ids).duplicated()).any():
            row = int(again.to_numpy().argmax())
            earlier = table.another(int((ids == ids[row]).argmax()))
            raise UserError(
                f"{table.at(row)}: the id {ids[row]!r} is that of {earlier} already; give every "
                "record an id of its own"
            )
    trained = table.truths(TRAINED) if TRAINED in table.cells else None
    if trained is not None:
        check_trained(table, trained)
    groups = table.names(GROUP).by_row() if GROUP in table.cells else ids
    return Records(ids, texts, trained, groups, str(path))


def there(
    columns: Iterable[Column], known: Sequence[str], asked: Mapping[str, str]
) -> list[Column]:
    """Those of some optional columns that a table has, or that the user names."""
    return [column for column in columns if column.name in asked or column.name in known]


def check_trained(table: UserTable, trained: np.ndarray) -> None:
    """Raise `UserError` unless the model was trained on some record."""
    if not trained.any():
        raise UserError(f"{table.source}: no record was trained on; add some to ask about")


@makes(CORPUS)
def corpus_table(records: str | Path, columns: Mapping[str, str] | None) -> pd.DataFrame:
    """The table of kind `corpus` of a user's file, see `read_records`."""
    found = read_records(records, columns)
    n_records = len(found.ids)
    missing = [None] * n_records
    return pd.DataFrame(
        {
            "id": found.ids,
            "text": found.texts,
            "group": found.groups,
            "trained": pd.array(missing if found.trained is None else found.trained, "boolean"),
            "split": missing if found.splits is None else found.splits,
            "copies": np.ones(n_records, int) if found.copies is None else found.copies,
        }
    )


def records_of_table(path: str | Path) -> Records:
    """The records in a table of kind `corpus`."""
    frame = tables.read(path, CORPUS)

    def unless_missing(name: str) -> np.ndarray | None:
        return None if frame[name].isna().any() else frame[name].to_numpy()

    ids, texts, groups = (frame[name].to_numpy(dtype=object) for name in ("id", TEXT, GROUP))
    trained = unless_missing(TRAINED)
    return Records(
        ids,
        texts,
        None if trained is None else trained.astype(bool),
        groups,
        str(path),
        unless_missing("split"),
        frame["copies"].to_numpy(),
    )
