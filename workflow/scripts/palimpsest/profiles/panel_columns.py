"""The columns of a panel that a user brings, and which of them is its outcome."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from palimpsest.errors import UserError
from palimpsest.tables import user_files
from palimpsest.tables.kinds import NAME, NUMBER, TIME, Column, UserKind
from palimpsest.tables.user_columns import named_columns

OUTCOME, LOSS = "outcome", "loss"
LOSSES = {LOSS, "nll"}  # columns that stand for an outcome
# Beginnings and ends of words in a column's name that say: smaller is better, or larger is better
SMALLER = (
    r"(.*loss(es)?|.*nlls?|.*perplexit(y|ies)|.*ppl|.*entrop(y|ies)|surprisals?|.*xent|bp[bc]"
    r"|crossent|ce|r?mse|mae|errors?|deviance)"
)
LARGER = r"(.*likelihoods?|.*log_?liks?|.*ll|.*prob(abilit(y|ies)|s)?|.*logp)"
RATE = r"(.*_)?bits_per_.*"
# Words that turn smaller-is-better into larger-is-better, such as the reduction of a loss
LESS = {"reduction", "decrease", "drop", "gain", "improvement", "saved", "inverse", "inv"}
NEGATED = r"(neg|negative|minus)_?"
NEGATED_AT_THE_END = r"_(neg|negative|negated|minus)$"
TURNED = r"\s*(-|1\s*/|exp\(\s*-)"  # a formula: -loss, 1/ppl, exp(-loss)
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
    renamed="{file: mine.csv, unit: document, time: step}",
)


def check_head(path: str, columns: Mapping[str, str], other_outcomes: Sequence[str] = ()) -> None:
    """Raise `UserError` unless a file has the columns of a panel, and other outcomes if any."""
    file = user_files.opened(path, user_files.TABLES, "a panel")
    outcome, _ = outcome_column(file.where, file.columns, columns)
    named = {name: own for name, own in columns.items() if name != LOSS}
    for each in (outcome, *other_outcomes):
        named_columns(file.where, PANEL, file.columns, {**named, OUTCOME: each}, True)


def outcome_column(where: str, known: Sequence[str], asked: Mapping[str, str]) -> tuple[str, int]:
    """The name of a panel's column of outcomes, and its sign: -1 if it is a loss.

    A column is a loss if `asked` gives the column as `loss`, or if the column's name says so.
    Raises `UserError` if there is an outcome and a loss, or if `asked` gives both.
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
    name = "_".join(re.findall("[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", column).casefold()))
    if re.match(TURNED, column) or re.search(NEGATED_AT_THE_END, name):
        name = f"minus_{re.sub(NEGATED_AT_THE_END, '', name)}"
    if LESS & {*name.split("_")}:
        return False
    if negated := re.match(f"(.*_)?{NEGATED}(?=.)", name):
        rest = _words(name[negated.end() :])
        return any(re.fullmatch(LARGER, w) and not re.fullmatch(SMALLER, w) for w in rest)
    return bool(re.fullmatch(RATE, name)) or any(re.fullmatch(SMALLER, w) for w in name.split("_"))


def _words(name: str) -> list[str]:
    """The words of a name, and the whole name: log_lik is one word of two."""
    return [name, *name.split("_")]
