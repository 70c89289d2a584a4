"""Kinds of tables: the meaning of a row, the path, and each column with its meaning.

A column is declared once, in a glossary: `tables/columns.py` has the columns that several sections
share, and a section has its own. A kind lists names of columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from palimpsest.errors import nearest
from palimpsest.lazy_import import lazy_import

pa = lazy_import("pyarrow")

# The Arrow type of each type of column. A vector is an array float32, a list in Arrow.
ARROW_TYPES = {"str": "string", "int": "int64", "float": "double", "bool": "bool"}
VECTOR = "vector"
# Types of the columns of users' tables. A column of any type in a file may hold them: see
# `user_tables`.
NAME, TIME, NUMBER, TEXT, TRUTH = "name", "time", "finite number", "text", "true or false"
LIST = "text, or list of texts"
TYPE = "|".join([*ARROW_TYPES, VECTOR])
DECLARATION = re.compile(
    rf"(?P<name>\w+) (?P<type>{TYPE})(?P<null>\??): (?P<meaning>.+)", re.DOTALL
)


@dataclass(frozen=True)
class Column:
    """One column: its type, its meaning (with the unit), and whether it may be null."""

    name: str
    type: str
    meaning: str
    nullable: bool = False

    @classmethod
    def declared(cls, text: str) -> Column:
        """The column of a declaration such as `score float?: in [0, 1]; null: no stand-ins`.

        Raises `ValueError` if the text is no declaration.
        """
        match = DECLARATION.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} does not declare a column: write 'name type: sentence'")
        meaning = " ".join(match["meaning"].split())
        return cls(match["name"], match["type"], meaning, bool(match["null"]))

    @property
    def arrow_type(self) -> pa.DataType:
        if self.type == VECTOR:
            return pa.list_(pa.float32())
        return pa.type_for_alias(ARROW_TYPES[self.type])


class Glossary(dict[str, Column]):
    """Columns by name.

    Each line of the text declares one column: `name type: sentence`. A column whose type ends with
    a question mark may be null. A line that begins with a blank continues the sentence.
    """

    def __init__(self, text: str, shared: Glossary | None = None):
        super().__init__(shared or {})
        for line in filter(None, re.split(r"\n(?! )", text.strip())):
            column = Column.declared(line)
            if column.name in self:
                raise ValueError(f"column {column.name!r} is declared twice")
            self[column.name] = column

    def extended(self, text: str) -> Glossary:
        return Glossary(text, self)

    def __call__(self, names: str, /, **declared: str) -> tuple[Column, ...]:
        """The columns with these names, in order: `columns("seed epoch score?")`.

        A question mark lets a column be null in this kind; where it may not be null, the part of
        its sentence from "; null" on is left out. `declared` says what a column is in this kind
        alone, as in `columns("seed epoch", epoch="float: interpolated, in epochs")`.

        Raises `ValueError` for a name that is unknown or listed twice.
        """
        known = {**self, **{n: Column.declared(f"{n} {text}") for n, text in declared.items()}}
        chosen = {}
        for word in names.split():
            name = word.removesuffix("?")
            if name not in known:
                raise ValueError(f"column {name!r} is in no glossary{nearest(name, known)}")
            if name in chosen:
                raise ValueError(f"column {name!r} is listed twice")
            column = known[name]
            if word != name:
                column = replace(column, nullable=True)
            elif not column.nullable:
                column = replace(column, meaning=re.split(r"; null\b", column.meaning)[0])
            chosen[name] = column
        if unlisted := declared.keys() - chosen.keys():
            raise ValueError(f"column {min(unlisted)!r} is declared, but not listed")
        return tuple(chosen.values())


@dataclass(frozen=True)
class Document:
    """A kind of JSON file: its name, and the pattern of its paths."""

    name: str
    path: str


@dataclass(frozen=True)
class Kind:
    """A kind of table; `rows` is one sentence on the meaning of a row.

    In `path`, a wildcard in braces stands for a part of the path.
    """

    name: str
    rows: str
    path: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def schema(self) -> pa.Schema:
        fields = [pa.field(c.name, c.arrow_type, nullable=c.nullable) for c in self.columns]
        return pa.schema(fields, metadata={"palimpsest_table": self.name})


def kinds_in(names: Mapping[str, object]) -> tuple[Kind, ...]:
    """The kinds that a module declares, in order, from its `globals()`."""
    return tuple(value for value in names.values() if isinstance(value, Kind))


@dataclass(frozen=True)
class UserKind:
    """A kind of table that users bring: its name, what its rows and items are, and its columns.

    An item is what a user leaves out if its rows cannot be corrected. A column that may be null may
    have empty cells. The table may have other columns, too. `renamed` is an example, in the
    configuration, of the names of columns that differ in the user's table.
    """

    name: str
    rows: str
    item: str
    columns: tuple[Column, ...]
    renamed: str = ""

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]
