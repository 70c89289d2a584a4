"""The tables that compare several panels, such as those of models of several sizes.

Source: Causal Estimation of Memorisation Profiles, section 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import combinations

import numpy as np
import pandas as pd

from palimpsest.making import makes, reads
from palimpsest.profiles import effects, kinds
from palimpsest.profiles.comparable import check_comparable, check_outcomes
from palimpsest.profiles.effects import Effect, part_of
from palimpsest.profiles.panel import Panel
from palimpsest.profiles.panel_correlation import correlations
from palimpsest.profiles.profile import read_outcomes

LEVELS = (effects.INSTANTANEOUS, effects.PERSISTENT, effects.RESIDUAL)
STUDY_KINDS = (
    kinds.PANELS_PROFILE,
    kinds.PANELS_PERSISTENCE,
    kinds.PANELS_EFFECTS,
    kinds.PANELS_CORRELATION,
)


@reads(profiles=kinds.PANEL_PROFILE, persistence=kinds.PANEL_PERSISTENCE)
@makes(*STUDY_KINDS)
def study(
    panels: Sequence[str],
    profiles: pd.DataFrame,
    persistence: pd.DataFrame,
    *,
    language: str,
    names: Sequence[str],
    columns: Sequence[Mapping[str, str]],
) -> dict[str, pd.DataFrame]:
    """The tables of a study of panels.

    Parameters
    ----------
    panels : files, from the smallest model to the largest
    profiles, persistence : the estimates of each panel, stacked
    language : the name of the study in paths
    names, columns : of each file: its name in the configuration, and its names of the columns

    Raises `UserError` if the panels cannot be compared: see `comparable`.
    """
    files = zip(names, panels, columns, strict=True)
    found = {name: next(iter(read_outcomes(file, own).items())) for name, file, own in files}
    check_outcomes({name: outcome for name, (outcome, _) in found.items()})
    of_names = {name: panel for name, (_, panel) in found.items()}
    return tables_of(of_names, profiles, persistence, language)


def tables_of(
    panels: Mapping[str, Panel], profiles: pd.DataFrame, persistence: pd.DataFrame, study: str
) -> dict[str, pd.DataFrame]:
    """The tables of a study, by the names of their kinds.

    Raises `UserError` if the panels cannot be compared.
    """
    check_comparable(panels)
    rows = [
        _in_order(profiles, panels),
        _in_order(persistence, panels),
        pd.DataFrame(effect_rows(panels)),
        pd.DataFrame(correlations(panels)),
    ]
    return {
        kind.name: frame.assign(language=study).reindex(columns=kind.names)
        for kind, frame in zip(STUDY_KINDS, rows, strict=True)
    }


def _in_order(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    place = {name: number for number, name in enumerate(names)}
    return frame.sort_values("panel", key=lambda panel: panel.map(place), kind="stable")


def effect_rows(panels: Mapping[str, Panel]) -> Iterator[dict]:
    """Rows of the table `panels_effects`, without `language`, of panels and of their placebos."""
    shared = _shared(panels.values(), "treated")
    by_role = {
        kinds.TRAINED: dict(panels),
        kinds.PLACEBO: {
            name: made
            for name, panel in panels.items()
            if (made := effects.placebos(panel, shared)) is not None
        },
    }
    for role, own in by_role.items():
        for row in _rows(own) if own else ():
            yield {"string_role": role, **row}


def _shared(panels: Iterable[Panel], name: str) -> np.ndarray:
    """The values, `treated` or `times`, that all panels have."""
    return reduce(np.intersect1d, (getattr(panel, name) for panel in panels))


def _rows(panels: Mapping[str, Panel]) -> Iterator[dict]:
    """Effects of each panel, differences of each pair, and means of the order over panels."""
    for name, panel in panels.items():
        yield from _with_intervals(dict(_alone(panel)), compared=kinds.ONE_PANEL, panel=name)
    yield from _with_intervals(dict(_means(list(panels.values()))), compared=kinds.ALL_PANELS)
    for panel, other in combinations(panels, 2):
        pair = dict(_differences(panels[panel], panels[other]))
        yield from _with_intervals(pair, compared=kinds.PAIR, panel=panel, other=other)


def _alone(panel: Panel) -> Iterator[tuple[str, Effect]]:
    parts = {part: part_of(panel, part) for part in effects.PARTS}
    first = parts[effects.INSTANTANEOUS]
    for name, part in effects.SHARES.items():
        if first is not None and parts[part] is not None:
            parts[name] = effects.ratio(parts[part], first)
    yield from ((name, effect) for name, effect in parts.items() if effect is not None)


def _means(panels: Sequence[Panel]) -> Iterator[tuple[str, Effect]]:
    """The order of cohorts, on those that all panels have with a time before and after them."""
    cohorts = reduce(np.intersect1d, (panel.observed for panel in panels))
    for part in effects.ORDERS:
        found = [part_of(one, part, np.isin(one.treated, cohorts)[:, None]) for one in panels]
        if None not in found:
            yield part, effects.mean(found)


def _differences(one: Panel, other: Panel) -> Iterator[tuple[str, Effect]]:
    """The second panel minus the first, over the cells that both have."""
    cohorts, times = (_shared((one, other), name) for name in ("treated", "times"))
    cells = [
        np.isin(panel.treated, cohorts)[:, None] & np.isin(panel.times, times)
        for panel in (one, other)
    ]
    for part in LEVELS:
        own = [part_of(panel, part, some) for panel, some in zip((one, other), cells, strict=True)]
        if None not in own:
            yield part, effects.difference_of(own[1], own[0])


def _with_intervals(parts: Mapping[str, Effect], **about) -> Iterator[dict]:
    for part, effect in parts.items():
        yield {**about, "part": part, **effect.interval()._asdict()}
