"""Interventions of the section `records`: all records to be trained on, and all but one fold."""

import re

from palimpsest.interventions import Intervention

ALL = "records"
PATTERN = rf"{ALL}(-without-(?P<fold>\d+)-of-(?P<folds>\d+))?"

INTERVENTIONS = (Intervention(PATTERN, "palimpsest.records.folds:records"),)


def without_fold(fold: int, folds: int) -> str:
    """All records but those of a fold, from 0; `folds` says how many there are."""
    return f"{ALL}-without-{fold}-of-{folds}"


def fold_in(name: str) -> tuple[int, int] | None:
    """The fold that a dataset is without, and the number of folds; None if it has all records."""
    found = re.fullmatch(PATTERN, name)
    return None if found["fold"] is None else (int(found["fold"]), int(found["folds"]))
