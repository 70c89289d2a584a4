"""Panels of the configuration: their files, and what their columns are.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.

Source: Causal Estimation of Memorisation Profiles.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError
from palimpsest.models.table import NAME as PATH_NAME
from palimpsest.tables.kinds import NAME, NUMBER, TIME, Column, UserKind
from palimpsest.tables.user_files import TABLES, format_of, listed

OUTCOME, LOSS = "outcome", "loss"
LOSSES = {LOSS, "nll"}  # columns that take the place of an outcome
# Words of a column's name: smaller is better, larger is better, and the other way round
SMALLER, LARGER = LOSSES | {"losses", "perplexity", "ppl", "entropy"}, {"likelihood"}
NEGATED = {"neg", "negative", "minus"}
PANEL = UserKind(
    "panel",
    "one row for each unit and time",
    "unit",
    (
        Column("unit", NAME, "the name of the unit, such as that of a string"),
        Column("time", TIME, "when the unit was measured, such as the step of a checkpoint"),
        Column(
            "cohort",
            TIME,
            "the time at which the unit is first trained on, or nothing if it never is",
            True,
        ),
        Column(OUTCOME, NUMBER, "what was measured, such as a log-likelihood"),
    ),
)
KEY = "profiles/panels"


@dataclass(frozen=True)
class PanelFile:
    """A panel of the configuration, and the file's own names of the columns."""

    name: str
    file: str
    columns: Mapping[str, str] = field(default_factory=dict)


def panels(block: dict) -> dict[str, PanelFile]:
    """The panels of the block `profiles`, by name: each is a path, or a block with `file`."""
    found = {}
    for name, asked in block["panels"].items():
        values = {"file": asked} if isinstance(asked, str) else dict(asked)
        found[name] = PanelFile(name, values.pop("file"), values)
    return found


def outcome_column(where: str, known: Sequence[str], asked: Mapping[str, str]) -> tuple[str, int]:
    """The name of a panel's column of outcomes, and its sign: -1 if it is a loss.

    A column is a loss if it is asked for as `loss`, or if its name says so. Raises `UserError` if
    there is an outcome and a loss, or if both are asked for.
    """
    named = [key for key in (OUTCOME, LOSS) if key in asked]
    if len(named) > 1:
        raise UserError(
            f"{where}: {OUTCOME} {asked[OUTCOME]!r} and {LOSS} {asked[LOSS]!r} are both asked for; "
            "name one of the two columns"
        )
    if named:
        column = asked[named[0]]
        return column, -1 if named[0] == LOSS or is_loss(column) else 1
    found = [name for name in known if name == OUTCOME or name.casefold() in LOSSES]
    if len(set(found)) > 1:
        raise UserError(
            f"{where}: has the columns {' and '.join(map(repr, found))}, and a panel has one "
            "outcome; rename or drop the other"
        )
    column = found[0] if found else OUTCOME
    return column, -1 if is_loss(column) else 1


def is_loss(column: str) -> bool:
    """Whether the name of a column says that smaller is better, such as eval_loss."""
    words = set(re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", column).casefold()))
    return bool(words & (LARGER if words & NEGATED else SMALLER))


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """Panels that are not there, or whose names cannot be in paths."""
    for name, panel in panels(settings.block("profiles")).items():
        key = f"{KEY}/{name}"
        if not PATH_NAME.fullmatch(name):
            yield Mistake(key, "is not a name; allowed are letters, digits, '.', '_' and '-'")
        elif set("{}") & set(panel.file):
            yield Mistake(key, f"{panel.file!r} is not allowed; must be a path without braces")
        elif not os.path.isfile(panel.file):
            yield Mistake(key, f"no such file: {panel.file}; a panel is a {listed(TABLES)} file")
        elif format_of(panel.file) not in TABLES:
            yield Mistake(key, f"{panel.file!r} is not a {listed(TABLES)} file; save it as one")
        elif OUTCOME in panel.columns and LOSS in panel.columns:
            yield Mistake(key, f"{OUTCOME} and {LOSS} are both given; name one of the two columns")
