"""Kinds of tables: the meaning of a row, the path, and each column with its meaning.

Only modules that load fast are imported, because Snakemake reads kinds before it builds its graph
of jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

from palimpsest.lazy_import import lazy_import

pa = lazy_import("pyarrow")

VECTOR = "vector"  # the type of a column of vectors: arrays float32, each a list in Arrow
# Types of the columns of users' tables, which any type of a file may hold: see `user_tables`
NAME, TIME, NUMBER, TEXT = "name", "time", "finite number", "text"
ARROW_TYPES = {str: "string", int: "int64", float: "double", bool: "bool"}


@dataclass(frozen=True)
class Column:
    """One column: its type, its meaning (with the unit), and whether it may be null."""

    name: str
    type: type[str] | type[int] | type[float] | type[bool] | str
    meaning: str
    nullable: bool = False

    @property
    def arrow_type(self) -> pa.DataType:
        """The type in Arrow."""
        if self.type == VECTOR:
            return pa.list_(pa.float32())
        return pa.type_for_alias(ARROW_TYPES[self.type])


@dataclass(frozen=True)
class Document:
    """A kind of JSON file: its name, and the pattern of its paths."""

    name: str
    path: str


@dataclass(frozen=True)
class Kind:
    """A kind of table: its name, one sentence on its rows, the pattern of its paths, its columns.

    In `path`, a wildcard in braces stands for a part of the path.
    """

    name: str
    rows: str
    path: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with the kind's name in its metadata."""
        fields = [pa.field(c.name, c.arrow_type, nullable=c.nullable) for c in self.columns]
        return pa.schema(fields, metadata={"palimpsest_table": self.name})


@dataclass(frozen=True)
class UserKind:
    """A kind of table that users bring: its name, what its rows and items are, and its columns.

    An item is what a user leaves out if its rows cannot be mended. A column that may be null may
    have empty cells. The table may have other columns, too. `renamed` says how a user names columns
    that the table calls otherwise, as an example in the configuration.
    """

    name: str
    rows: str
    item: str
    columns: tuple[Column, ...]
    renamed: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]
