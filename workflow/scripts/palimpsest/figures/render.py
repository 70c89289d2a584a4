"""Drawing a figure from the files of its tables."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from palimpsest import tables
from palimpsest.commands import remake
from palimpsest.errors import UserError
from palimpsest.figures.figure import Figure
from palimpsest.figures.style import save
from palimpsest.lazy_import import named
from palimpsest.tables import Document, Kind


def render(figure: Figure, inputs: Mapping[str, Iterable[str]], svg_path: str | Path) -> None:
    """Draw a figure from its tables and save it as SVG and PNG.

    Parameters
    ----------
    figure : what to draw
    inputs : files of one language, by the name of their kind; several files are stacked
    svg_path : path of the SVG; a PNG is written to the same folder

    Raises
    ------
    UserError
        If a table is broken, empty or of another kind.
    """
    contents = [
        read_filled(
            inputs[kind.name],
            kind,
            some_empty=kind in figure.some_empty,
            all_empty=kind in figure.some_empty and kind is not figure.tables[0],
        )
        for kind in figure.tables
    ]
    save(named(figure.draw)(*contents), svg_path)


def read_filled(
    paths: str | Iterable[str],
    kind: Kind | Document,
    some_empty: bool = False,
    all_empty: bool = False,
) -> pd.DataFrame | dict:
    """Stacked tables of a kind, each with at least one row; or the only document of a kind.

    With `some_empty`, at least one table must have a row. With `all_empty`, no table must.
    """
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    if isinstance(kind, Document):
        return tables.read_json(paths[0])
    found = [tables.read(path, kind) for path in paths]
    if some_empty and not all(table.empty for table in found):
        # Columns of empty tables may have other types, which would change those of the whole.
        return pd.concat([table for table in found if not table.empty], ignore_index=True)
    for path, table in zip(paths, found, strict=True):
        if table.empty and not all_empty:
            raise UserError(f"{path}: has no rows to draw; {remake(path)}")
    return pd.concat(found, ignore_index=True)
