"""Kinds of tables: what a row is, where such tables are, and each column with its meaning.

Only light modules are imported: Snakemake reads kinds while it builds its graph of jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

from palimpsest.lazy_import import lazy_import

pa = lazy_import("pyarrow")

ARROW_TYPES = {str: "string", int: "int64", float: "double", bool: "bool"}


@dataclass(frozen=True)
class Column:
    """One column: its type, what it means (with its unit), whether it may be null."""

    name: str
    type: type[str] | type[int] | type[float] | type[bool]
    meaning: str
    nullable: bool = False

    @property
    def arrow_type(self) -> pa.DataType:
        """The type as Arrow has it."""
        return pa.type_for_alias(ARROW_TYPES[self.type])


@dataclass(frozen=True)
class Document:
    """A kind of JSON file: its name, and where such files are."""

    name: str
    path: str


@dataclass(frozen=True)
class Kind:
    """A kind of table: its name, one sentence on its rows, where such tables are, its columns.

    `path` is a pattern: a wildcard in braces stands for a part of the path.
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
