"""Folders in which Hugging Face's `datasets` saved a dataset, or a dictionary of splits.

`datasets` itself is not needed: a file of rows is a stream in Arrow's format, and three small files
in JSON name the columns, the files of rows, and the splits (`Dataset.save_to_disk` and
`DatasetDict.save_to_disk` of datasets 5.2.0; older versions write the same names).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from palimpsest.errors import UserError
from palimpsest.plain_text import read_text
from palimpsest.tables.user_files import TXT, Opened, Rows, broken, check_texts, object_in

INFO, STATE, DICTIONARY = "dataset_info.json", "state.json", "dataset_dict.json"
SPLIT = "split"  # the column of the names of splits
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
SAVE_AGAIN = "save it again with save_to_disk"


class SavedFile(NamedTuple):
    """A file of rows in a saved folder, and the name of its split, if splits have names."""

    path: Path
    split: str | None
    schema: pa.Schema


def is_saved(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (DICTIONARY, STATE))


def opened(folder: Path) -> Opened:
    """The dataset in a folder, or all splits of a folder of splits, in its order.

    The names of splits are a column, unless the records have a column of this name.
    """
    files, features = _saved(folder)
    known = list(dict.fromkeys(name for file in files for name in file.schema.names)) or features
    adds_splits = SPLIT not in known and any(file.split for file in files)

    def read(columns: list[str]) -> Iterator[Rows]:
        stored = [name for name in columns if name != SPLIT or not adds_splits]
        for file in files:
            for name in stored:
                _check_same_type(name, file, files)
            for batch in _batches(file.path, stored):
                cells = {name: batch.column(name) for name in stored}
                if adds_splits:
                    cells[SPLIT] = pa.repeat(file.split, len(batch))
                yield Rows(cells, None)

    return Opened(str(folder), [*known, SPLIT] if adds_splits else known, read)


def _saved(folder: Path) -> tuple[list[SavedFile], list[str]]:
    """The files of rows in a saved folder, and the names of its columns."""
    splits = {None: folder}
    if (folder / DICTIONARY).is_file():
        names = _names(folder / DICTIONARY, lambda content: content["splits"])
        splits = {name: folder / name for name in names}
    elif not is_saved(folder):
        raise UserError(
            f"{folder}: is no folder that `datasets` saved: it has no {STATE} and no {DICTIONARY}; "
            f"nor has it {TXT} files; name a file in it, or {SAVE_AGAIN}"
        )
    files, features = [], {}
    for split, inner in splits.items():
        features |= dict.fromkeys(_names(inner / INFO, lambda content: [*content["features"]]))
        for name in _names(inner / STATE, _of_state):
            files.append(SavedFile(inner / name, split, _schema(inner / name)))
    return files, list(features)


def _of_state(content: dict) -> list:
    """The names of the files of rows. A dataset without rows has none."""
    return [file["filename"] for file in content["_data_files"]]


def _names(path: Path, listed_in: Callable[[dict], list]) -> list[str]:
    """The names that one of the JSON files of a saved folder lists."""
    content = object_in(str(path), read_text(path), SAVE_AGAIN)
    try:
        names = listed_in(content)
        if all(isinstance(name, str) for name in names):
            return names
    except (KeyError, TypeError):
        pass
    raise UserError(f"{path}: is not as `datasets` saves it; {SAVE_AGAIN}")


def _schema(path: Path) -> pa.Schema:
    """The columns of a file of rows; `UserError` if it is damaged, or its end is not there."""
    try:
        with open(path, "rb") as file:
            file.seek(-len(END_OF_STREAM), os.SEEK_END)
            is_whole = file.read() == END_OF_STREAM
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            schema = stream.schema
    except (pa.ArrowException, OSError) as error:
        raise broken(path, error, "Arrow") from None
    if not is_whole:  # Arrow itself takes a file that is cut off after some of its rows
        raise UserError(f"{path}: is cut off; copy it again, or {SAVE_AGAIN}")
    return schema


def _batches(path: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    n_before = 0
    try:
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                for name in columns:
                    check_texts(path, name, batch.column(name), n_before)
                yield batch
                n_before += len(batch)
    except (pa.ArrowException, OSError) as error:
        raise broken(path, error, "Arrow") from None


def _check_same_type(name: str, file: SavedFile, files: list[SavedFile]) -> None:
    """Raise `UserError` unless a file has a column, in the type that it has first."""
    first = next(other for other in files if name in other.schema.names)
    kind = first.schema.field(name).type
    if name not in file.schema.names:
        what = f"has no column {name!r}, which is in {first.path.parent}"
    elif file.schema.field(name).type != kind:
        own = file.schema.field(name).type
        what = f"column {name!r} is of the type {own}, and of {kind} in {first.path.parent}"
    else:
        return
    raise UserError(f"{file.path.parent}: {what}; make them alike, or read the folder of one split")
