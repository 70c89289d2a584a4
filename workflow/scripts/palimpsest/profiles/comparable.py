"""Whether panels can be compared with each other.

Source: Causal Estimation of Memorisation Profiles, section 7: models of several sizes, measured on
the same strings, by the same outcome, at the same steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import combinations

import numpy as np

from palimpsest.errors import Notice, UserError
from palimpsest.profiles.panel import NEVER, Panel

WHERE = "profiles/panels"
SUSPECT = 10  # so many times as large a spread is hardly that of the same strings in one unit


def check_outcomes(names: Mapping[str, str]) -> None:
    """Raise `UserError` if panels have outcomes of other names; `names` are columns by panel."""
    (first, expected), *others = names.items()
    for panel, name in others:
        if name != expected:
            raise UserError(
                f"{WHERE}: the outcome of {first} is {expected!r}, and that of {panel} is "
                f"{name!r}; a study compares one outcome: name a column that all panels have, or "
                "give it the same name in all files"
            )


def check_comparable(panels: Mapping[str, Panel]) -> None:
    """Raise `UserError` if panels cannot be compared.

    That is: if one has numbers as times and another one dates; if a unit that two panels have is in
    another cohort; or if both have the same outcomes, so that they are of one model. Logs a line if
    the outcomes of units never treated differ so much in their spread that the units of the
    outcomes may differ.
    """
    for one, other in combinations(panels, 2):
        _check_pair(one, panels[one], other, panels[other])


def _check_pair(one: str, panel: Panel, other: str, second: Panel) -> None:
    if panel.kind_of_time != second.kind_of_time:
        raise UserError(
            f"{WHERE}: a time of {one} is {panel.kind_of_time}, and one of {other} is "
            f"{second.kind_of_time}; give all panels times of one kind"
        )
    spreads = [own.outcome[own.cohorts == NEVER].std() for own in (panel, second)]
    if min(spreads) > 0 and max(spreads) > SUSPECT * min(spreads):
        warnings.warn(
            Notice(
                f"{WHERE}: the outcomes of units never treated have a standard deviation of "
                f"{spreads[0]:.3g} in {one}, and of {spreads[1]:.3g} in {other}; check that both "
                "panels have the same outcome in the same unit"
            ),
            stacklevel=4,
        )
    if panel.units is None or second.units is None:
        return
    shared, rows, columns = np.intersect1d(panel.units, second.units, return_indices=True)
    is_other = panel.cohorts[rows] != second.cohorts[columns]
    if is_other.any():
        place = int(is_other.argmax())
        cohorts = panel.cohorts[rows[place]], second.cohorts[columns[place]]
        raise UserError(
            f"{WHERE}: unit {shared[place]!r} is of cohort {panel.shown(cohorts[0])} in {one}, "
            f"and of cohort {second.shown(cohorts[1])} in {other} ({is_other.sum()} such units); "
            "give other strings other names; if the times differ, keep those that both panels have"
        )
    times, *places = np.intersect1d(panel.times, second.times, return_indices=True)
    if not len(shared) or not len(times):
        return
    cells = panel.outcome[np.ix_(rows, places[0])], second.outcome[np.ix_(columns, places[1])]
    if np.array_equal(*cells):
        raise UserError(
            f"{WHERE}: {one} and {other} have the same outcomes of all {len(shared)} common units "
            f"at all {len(times)} common times; leave one of them out: it is the same model"
        )
