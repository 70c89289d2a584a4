"""Templates of the report's frame and of sections, and the rows of tables that they show."""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup

from palimpsest.estimates import with_interval
from palimpsest.number_format import alike, number, plural, slug
from palimpsest.report.part import NOTHING
from palimpsest.statistics import student
from palimpsest.tables import Kind

HERE = Path(__file__).parent
TABLE = "table.html.j2"


def template(module_file: str, name: str) -> jinja2.Template:
    """The template in the folder of a module; all inserted values are escaped.

    A template can call the macro `table`. The macros that it defines are attributes of its
    `module`: functions that return `Markup`.
    """
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([Path(module_file).parent, HERE]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(number=number, plural=plural, slug=slug)
    made.globals.update(infinity=math.inf, in_one_form=alike)
    made.globals["table"] = made.get_template(TABLE).module.table
    return made.get_template(name)


def given(tables: Mapping[str, pd.DataFrame], *kinds: Kind) -> list[pd.DataFrame]:
    """The stacked tables of some kinds; without columns if there is no table of a kind."""
    return [tables.get(kind.name, pd.DataFrame()) for kind in kinds]


def rows_of(make: Callable[[pd.DataFrame], list[dict]], table: pd.DataFrame) -> list[dict]:
    """The rows that a function makes of a table; none if the table is empty."""
    return [] if table.empty else make(table)


def shown(
    macro: Callable[[list[dict]], Markup],
    make: Callable[[pd.DataFrame], list[dict]],
    table: pd.DataFrame,
) -> Markup:
    """The HTML that a macro makes of the rows of a table; nothing without any."""
    rows = rows_of(make, table)
    return macro(rows) if rows else NOTHING


def groups(
    table: pd.DataFrame, keys: list[str], sort: bool = False, dropna: bool = True
) -> Iterator[tuple[dict, pd.DataFrame]]:
    """Every combination of keys in a table, as a dict, with its rows."""
    for values, rows in table.groupby(keys, sort=sort, dropna=dropna):
        yield dict(zip(keys, values, strict=True)), rows


def mean_over_seeds(values: pd.Series) -> str:
    """The mean of one value per seed, with its interval: 0.48 [0.13, 0.83]."""
    return with_interval(student(values))
