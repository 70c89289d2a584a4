"""Losses of records over the checkpoints of a training, from a table that a user brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from palimpsest.arguments import FRAME, FilePath, Made, takes
from palimpsest.corpora.records import GROUP, TRAINED, WHICH, check_trained, there
from palimpsest.errors import UserError
from palimpsest.short_repr import ShortRepr
from palimpsest.tables import user_files
from palimpsest.tables.kinds import NAME, NUMBER, TIME, Column, UserKind
from palimpsest.tables.user_columns import named_columns
from palimpsest.tables.user_tables import UserTable, read_user_table, user_table

NATS = "nats per token"
LOSS, WITHOUT, REFERENCE = "loss", "loss_without", "loss_reference"
NEEDED = (
    Column("id", NAME, "the name of the record"),
    Column("checkpoint", TIME, "when the record was measured, such as the step of a checkpoint"),
    Column(LOSS, NUMBER, "the model's loss of the record, not negative"),
)
# The columns that a table may lack, in the order of their use
OPTIONAL = (
    Column(
        WITHOUT,
        NUMBER,
        "the record's loss under a model trained without it, not negative; empty: unknown",
        nullable=True,
    ),
    Column(REFERENCE, NUMBER, "the record's loss under another model, not negative"),
    *WHICH,
)
RENAMED = "{id: key, checkpoint: step, loss: nll}"


@dataclass(frozen=True, repr=False)
class Losses(ShortRepr):
    """Losses of records at checkpoints, as arrays.

    Parameters
    ----------
    ids : str[records], in the order of the table
    checkpoints : float64[checkpoints], ascending; dates are days since 1970-01-01
    loss : float64[checkpoints, records], the model's
    without : float64[checkpoints, records] or None
        Of models that were trained without the record, or without its group; NaN for records of
        which there is none.
    reference : float64[checkpoints, records] or None
        Of another model, in the unit of `loss`.
    trained : bool[records] or None
        Whether the model was trained on the record. Records on which it was not are the placebo.
    groups : str[records]; a record without a group is a group of its own
    source : the name of the table in messages
    unit : of the losses, such as "bits per byte"; None if it is not known
    """

    ids: np.ndarray
    checkpoints: np.ndarray
    loss: np.ndarray
    without: np.ndarray | None
    reference: np.ndarray | None
    trained: np.ndarray | None
    groups: np.ndarray
    source: str = "losses"
    unit: str | None = None

    @property
    def has_placebo(self) -> bool:
        """Whether the model was not trained on some record."""
        return self.trained is not None and not self.trained.all()

    @property
    def is_trained(self) -> np.ndarray:
        """bool[records]: whether the model was trained on the record; all, if nothing is said."""
        return np.ones(len(self.ids), dtype=bool) if self.trained is None else self.trained

    @property
    def is_retrained(self) -> np.ndarray:
        """bool[records]: whether there is a model that was trained without the record."""
        if self.without is None:
            return np.zeros(len(self.ids), dtype=bool)
        return ~np.isnan(self.without[-1])

    def of(self, chosen: np.ndarray) -> Losses:
        """The losses of some records, bool[records]; the unseen ones stay the placebo."""
        of_records = {
            name: None if (array := getattr(self, name)) is None else array[..., chosen]
            for name in ("ids", "loss", "without", "reference", "trained", "groups")
        }
        return replace(self, **of_records)

    def to_frame(self) -> pd.DataFrame:
        """A row per record and checkpoint, with the columns that `to_losses` reads."""
        n_checkpoints, n_records = self.loss.shape
        arrays = {LOSS: self.loss, WITHOUT: self.without, REFERENCE: self.reference}
        of_records = {TRAINED: self.trained, GROUP: self.groups}
        return pd.DataFrame(
            {
                "id": np.repeat(self.ids, n_checkpoints),
                "checkpoint": np.tile(self.checkpoints, n_records),
                **{name: array.T.ravel() for name, array in arrays.items() if array is not None},
                **{
                    name: np.repeat(array, n_checkpoints)
                    for name, array in of_records.items()
                    if array is not None
                },
            }
        )


LOSSES = Made(Losses, "records.to_losses(frame) or records.read_losses(path)")


@takes(path=FilePath(of_frame="records.to_losses(frame)"))
def read_losses(path: str | Path, columns: Mapping[str, str] | None = None) -> Losses:
    """Read the losses of records from a file, see `to_losses`.

    Parameters
    ----------
    path : a .csv, .tsv, .jsonl, .json or .parquet file
    columns : the file's own names of columns, such as {"id": "key", "loss": "nll"}

    Raises `UserError` if there is no such file, if it cannot be read, or as `to_losses` does.
    """
    file = user_files.opened(path, user_files.TABLES, "a table of losses")
    kind = _kind(file.columns, columns or {})
    return _losses(read_user_table(path, kind, columns))


@takes(frame=FRAME)
def to_losses(
    frame: pd.DataFrame, source: str = "losses", columns: Mapping[str, str] | None = None
) -> Losses:
    """The losses in a table with one row for each record and checkpoint, in any order.

    Parameters
    ----------
    frame : columns id (text or number), checkpoint (number or date) and loss, and any of
        loss_without, loss_reference, trained (true or false, yes or no, 1 or 0) and group. All
        losses are in one unit. Only loss_without may be empty, for all rows of a record.
    source : name of the table in messages
    columns : the table's own names of columns

    Raises `UserError` if a column is missing, a value is not of its kind, a loss is negative, a
    record has two rows or none at a checkpoint, or only at some a loss without it, a record's group
    or `trained` changes, or no record was trained on. The message names the row, counted from 1.
    """
    kind = _kind([str(name) for name in frame.columns], columns or {})
    return _losses(user_table(frame, kind, source, columns))


def check_head(path: str | Path, columns: Mapping[str, str]) -> None:
    """Raise `UserError` unless a file has the columns that it needs; only its head is read."""
    file = user_files.opened(path, user_files.TABLES, "a table of losses")
    named_columns(file.where, _kind(file.columns, columns), file.columns, columns, True)


def _kind(known: Sequence[str], asked: Mapping[str, str]) -> UserKind:
    columns = (*NEEDED, *there(OPTIONAL, known, asked))
    rows = "one row for each record and checkpoint"
    return UserKind("table of losses", rows, "record", columns, renamed=RENAMED)


def _losses(table: UserTable) -> Losses:
    of_record, ids = table.names("id")
    (times,), _ = table.times("checkpoint")
    if not np.isfinite(times).all():
        raise table.wrong("checkpoint", int((~np.isfinite(times)).argmax()), "is not finite")
    of_checkpoint, checkpoints = pd.factorize(times, sort=True)
    _check_cells(table, of_record, of_checkpoint, ids, len(checkpoints))

    def by_checkpoint(name: str) -> np.ndarray | None:
        if name not in table.cells:
            return None
        values = table.numbers(name)
        if (values < 0).any():
            raise table.wrong(name, int((values < 0).argmax()), "is negative")
        found = np.empty((len(checkpoints), len(ids)))
        found[of_checkpoint, of_record] = values
        empty = np.isnan(found)
        if (partly := empty.any(axis=0) & ~empty.all(axis=0)).any():
            row = int((np.isnan(values) & partly[of_record]).argmax())
            raise UserError(
                f"{table.at(row)}: {table.written_as[name]} is empty, and the record "
                f"{ids[of_record[row]]!r} has one at another checkpoint; give it one at all "
                "checkpoints, or at none"
            )
        return None if empty.all() else found

    trained = None
    if TRAINED in table.cells:
        trained = _of_records(table, TRAINED, of_record, table.truths(TRAINED))
        check_trained(table, trained)
    ids = np.array(ids, dtype=object)
    groups = ids
    if GROUP in table.cells:
        groups = _of_records(table, GROUP, of_record, table.names(GROUP).by_row())
    return Losses(
        ids,
        checkpoints,
        by_checkpoint(LOSS),
        by_checkpoint(WITHOUT),
        by_checkpoint(REFERENCE),
        trained,
        groups,
        table.source,
    )


def _check_cells(
    table: UserTable,
    of_record: np.ndarray,
    of_checkpoint: np.ndarray,
    ids: Sequence[str],
    n_checkpoints: int,
) -> None:
    """Raise `UserError` unless every record has one row at every checkpoint."""
    cells = pd.Series(of_record * n_checkpoints + of_checkpoint)
    if (again := cells.duplicated()).any():
        row = int(again.to_numpy().argmax())
        first = int((cells == cells[row]).to_numpy().argmax())
        raise UserError(
            f"{table.at(row)}: the record {ids[of_record[row]]!r} has a loss at checkpoint "
            f"{table.value('checkpoint', row)} in {table.another(first)} already; delete one of "
            "the two rows"
        )
    counts = np.bincount(of_record, minlength=len(ids))
    if (short := counts < n_checkpoints).any():
        record = int(short.argmax())
        row = int((of_record == record).argmax())
        raise UserError(
            f"{table.at(row)}: the record {ids[record]!r} has losses at {counts[record]} of "
            f"{n_checkpoints} checkpoints; measure it at all of them, or leave the record out"
        )


def _of_records(
    table: UserTable, name: str, of_record: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """[records]: the value of each record; `UserError` if a record has two."""
    first = pd.Series(values).groupby(of_record).first().to_numpy()
    if (differs := first[of_record] != values).any():
        row = int(differs.argmax())
        earlier = int((of_record == of_record[row]).argmax())
        raise UserError(
            f"{table.at(row)}: {table.written_as[name]} is {table.value(name, row)}, and in "
            f"{table.another(earlier)} the same record has {table.value(name, earlier)}; a record "
            "has one"
        )
    return first
