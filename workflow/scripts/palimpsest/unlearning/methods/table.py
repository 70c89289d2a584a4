"""The table of methods, config/unlearning.yaml: methods as lists of phases."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import os
import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palimpsest.configuration.yaml_files import check_file, read_file
from palimpsest.errors import UserError, nearest
from palimpsest.fingerprint import location_of, of_own_code
from palimpsest.unlearning.methods.phases import (
    REPAIR,
    ROLES,
    Phase,
    Training,
    registered,
)
from palimpsest.unlearning.run.setups import ENDS, SOURCES

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}")  # a part of paths
REPEAT, PHASES, GRID, WARNING, SOURCE = "repeat", "phases", "grid", "warning", "source"
KEYS = {PHASES, GRID, WARNING, SOURCE}
MOST_REPEATED, MOST_POINTS, DEEPEST = 1000, 1000, 4
# The fingerprint of a user's own code in the entry of a phase: if the code changes, so does the
# method. No field of a class can have this name, as it is of two words.
OWN_CODE = "own code"
NO_VALUES = (*ROLES, PHASES, OWN_CODE)  # keys of an entry that a grid cannot change
PART = ".repair"  # ends the name of a method without its erase phases; no method has a point in it
AND = " and "  # separates places that a line of a grid changes together


@dataclass(frozen=True)
class Placed:
    """A phase in a method: its role, and its place in the list, such as 2.1."""

    role: str
    place: str
    phase: Phase


@dataclass(frozen=True)
class Method:
    """An unlearning method: phases that run one after another.

    `written` holds the phases in the format of the table, with all keys filled in; a phase of a
    user's own also has the fingerprint of its code. `grid` maps
    places, such as `2.1.rate`, to the values for tuning. `warning` says in a few words what no
    setting of the search could reach; it is empty for most methods. `source` is one of the SOURCES
    if the method is in the paper's comparison; otherwise it is empty.
    """

    name: str
    written: list[dict[str, Any]]
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    warning: str = ""
    source: str = ""

    @property
    def placed(self) -> list[Placed]:
        """The phases in the order in which they run; a phase repeated n times occurs n times."""
        return list(_flat(self.written))

    @property
    def phases(self) -> list[Phase]:
        """The phases for `Task.run`; a repeated phase is the same object in every round."""
        return [placed.phase for placed in self.placed]

    @property
    def ruled_out_by_adapters(self) -> str:
        """The first phase that cannot run if only adapters are trained, and why; or empty.

        Such a phase reads or moves every weight while it trains. With adapters the weights are
        frozen, and the memory for their gradients is what adapters save.
        """
        for placed in self.placed:
            if reason := placed.phase.works_on_every_weight:
                return f"phase {placed.place}, {placed.phase.name}, {reason}"
        return ""

    @property
    def repair_alone(self) -> Method | None:
        """The method without its erase phases; None unless it has both erase and repair phases.

        A selection changes no weight, so selections stay if a repair phase works on selected
        weights. The passes of the erase phases are not given to the repair.
        """
        if {placed.role for placed in self.placed} != set(ROLES):
            return None
        alone = _kept(self.written, lambda role, phase: role == REPAIR)
        if any(placed.phase.needs_selection for placed in _flat(alone, once=True)):
            alone = _kept(self.written, lambda role, phase: role == REPAIR or phase.selects)
        return Method.of(self.name + PART, alone)

    def points(self, names: Container[str] | None = None) -> dict[str, Method]:
        """Every point of the grid as a method, by its name: `scrub.1`, `scrub.2`, ...

        The last line of the grid varies fastest. Without a grid, there are no points. Of some
        `names`, there are only these.
        """
        points = {}
        for name, settings in self.settings().items():
            if names is not None and name not in names:
                continue
            written = copy.deepcopy(self.written)
            for places, value in settings.items():
                _set(written, places, value)
            points[name] = Method.of(name, written)
        return points

    def settings(self) -> dict[str, dict[str, Any]]:
        """For every point of the grid, by name: the value that it sets at each place."""
        if not self.grid:
            return {}
        combinations = itertools.product(*self.grid.values())
        return {
            f"{self.name}.{number}": dict(zip(self.grid, values, strict=True))
            for number, values in enumerate(combinations, start=1)
        }

    @classmethod
    def of(cls, name: str, phases: list[dict[str, Any]]) -> Method:
        """A method with these phases, in the format of the table; the two ends have none.

        Raises `UserError` as `read_methods` does.
        """
        if name in ENDS:
            return cls(name, [])
        return cls(name, _Reader(name).phases(phases))


def read_methods(path: str | Path) -> dict[str, Method]:
    """Read the table of methods.

    Raises `UserError` with file, method, phase, key, value, allowed values and, if there is one, a
    similar correct spelling.
    """
    check_file(path)
    return methods_of(read_file(path), f"{os.path.relpath(path)}: ")


def methods_of(content: Mapping, place: str = "") -> dict[str, Method]:
    """The methods of a table that is read already; `place` begins every message.

    Raises `UserError` as `read_methods` does.
    """
    return {str(name): _read_method(place, name, entry) for name, entry in content.items()}


def _read_method(place: str, name: Any, entry: Any) -> Method:
    where = f"{place}{name}"
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise UserError(
            f"{place}{name!r} is not a name of a method; allowed are letters, digits, '_' and "
            "'-', at most 50, in quotes if YAML would read a number"
        )
    if name in ENDS:
        raise UserError(
            f"{where}: the name is taken: none is the original model, retrain the retrained one; "
            "choose another"
        )
    if not isinstance(entry, dict) or PHASES not in entry:
        raise UserError(
            f"{where}: must have phases: [...], and may have grid: {{...}}, warning: text and "
            f"source: {' or '.join(SOURCES)}"
        )
    for key in entry.keys() - KEYS:
        hint = nearest(key, KEYS - entry.keys())
        raise UserError(f"{where}: unknown key {key!r}; known: {', '.join(sorted(KEYS))}{hint}")
    method = Method(name, _Reader(where).phases(entry[PHASES]))
    grid, warning = entry.get(GRID) or {}, entry.get(WARNING, "")
    if not isinstance(warning, str):
        raise UserError(f"{where}: warning: {warning!r} is not a text")
    source = entry.get(SOURCE, "")
    if SOURCE in entry and source not in SOURCES:
        hint = nearest(source, SOURCES)
        raise UserError(f"{where}: source: {source!r} is not one of {', '.join(SOURCES)}{hint}")
    _check_grid(where, method, grid)
    return Method(name, method.written, grid, warning, source)


class _Reader:
    """Reads a list of phases; `where` begins every message."""

    def __init__(self, where: str):
        self.where = where
        self.known = registered()

    def phases(self, entries: Any) -> list[dict[str, Any]]:
        """The checked phases, with all keys filled in."""
        written = self._list(entries, "", 1)
        selected = False
        for placed in _flat(written, once=True):
            if placed.phase.needs_selection and not selected:
                choosers = [name for name, phase in self.known.items() if phase.selects]
                raise self._error(
                    placed.place,
                    f"{placed.phase.name} works on selected weights, and no phase before it "
                    f"selects any; put one of {', '.join(choosers)} before it",
                )
            selected = selected or placed.phase.selects
        self._check_shares(written)
        return written

    def _check_shares(self, written: list[dict[str, Any]]) -> None:
        """Raise `UserError` if the phases' shares of the budget add up to more than 1."""
        total = self._total_share(written)
        if total > 1 + 1e-9:
            raise UserError(
                f"{self.where}: the shares of the phases add up to {total:.4g}, counted once per "
                "round of a repeat; at most 1 is allowed, which is the whole budget of passes"
            )

    def _total_share(self, written: list[dict[str, Any]]) -> float:
        """The sum of the shares of the phases that train, once per round of a repeat."""
        total = 0.0
        for entry in written:
            if REPEAT in entry:
                total += entry[REPEAT] * self._total_share(entry[PHASES])
            elif issubclass(self.known[entry[_role_in(entry)]], Training):
                total += entry["share"]
        return total

    def _list(self, entries: Any, above: str, depth: int) -> list[dict[str, Any]]:
        if not isinstance(entries, list) or not entries:
            raise self._error(above.rstrip("."), "phases: must be a list of at least one phase")
        if depth > DEEPEST:
            raise self._error(above.rstrip("."), f"repeats nest at most {DEEPEST - 1} deep")
        return [
            self._entry(entry, f"{above}{place}", depth) for place, entry in enumerate(entries, 1)
        ]

    def _entry(self, entry: Any, place: str, depth: int) -> dict[str, Any]:
        if not isinstance(entry, dict):
            raise self._error(
                place, f"{entry!r} is not a phase; write it as {{erase: name, key: value, ...}}"
            )
        if REPEAT in entry:
            return self._repeat(entry, place, depth)
        roles = [key for key in entry if key in ROLES]
        if len(roles) != 1:
            raise self._error(
                place,
                "must have exactly one of the keys erase, repair (its value is the phase's name), "
                f"or repeat with phases; it has {', '.join(map(str, entry)) or 'none'}",
            )
        return self._phase(entry, roles[0], place)

    def _repeat(self, entry: dict, place: str, depth: int) -> dict[str, Any]:
        for key in entry.keys() - {REPEAT, PHASES}:
            raise self._error(place, f"unknown key {key!r}; known in addition to repeat: phases")
        times = entry[REPEAT]
        if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= MOST_REPEATED:
            allowed = f"a whole number at least 1 and at most {MOST_REPEATED}"
            raise self._error(place, f"repeat: {times!r} is not allowed; it must be {allowed}")
        return {REPEAT: times, PHASES: self._list(entry.get(PHASES), f"{place}.", depth + 1)}

    def _phase(self, entry: dict, role: str, place: str) -> dict[str, Any]:
        name = entry[role]
        if not isinstance(name, str) or name not in self.known:
            raise self._error(
                place,
                f"{role}: unknown phase {name!r}{nearest(name, self.known)}; "
                f"known: {', '.join(self.known)}",
            )
        domains = self.known[name].domains()
        values = {key: value for key, value in entry.items() if key not in (role, OWN_CODE)}
        for key in values.keys() - domains.keys():
            raise self._error(
                place,
                f"unknown key {key!r} of {name}; known: {', '.join(domains)}"
                f"{nearest(key, domains)}",
            )
        resolved = {role: name}
        for spec in dataclasses.fields(self.known[name]):
            if spec.name not in values and spec.default is dataclasses.MISSING:
                raise self._error(
                    place, f"{name} needs the key {spec.name!r}: {domains[spec.name]}"
                )
            value = values.get(spec.name, spec.default)
            resolved[spec.name] = self._value(place, spec.name, value, domains[spec.name])
        if code := of_own_code(location_of(self.known[name])):
            resolved[OWN_CODE] = code
        return resolved

    def _value(self, place: str, key: str, value: Any, domain) -> Any:
        try:
            checked = domain.check(value)
        except ValueError:
            hint = nearest(value, getattr(domain, "words", ()))
            if isinstance(value, str) and _is_number(value):
                hint = f" (YAML reads {value} as text: write {float(value)!r})"
            raise self._error(
                place, f"{key}: {value!r} is not allowed; it must be {domain}{hint}"
            ) from None
        return list(checked) if isinstance(checked, tuple) else checked

    def _error(self, place: str, message: str) -> UserError:
        return UserError(f"{self.where}: {f'phase {place}: ' if place else ''}{message}")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _role_in(entry: dict) -> str:
    return next(key for key in entry if key in ROLES)


def _flat(written: list[dict], above: str = "", once: bool = False) -> Iterator[Placed]:
    """The phases of checked entries; a repeated phase occurs n times, or once with `once`."""
    known = registered()
    for number, entry in enumerate(written, start=1):
        place = f"{above}{number}"
        if REPEAT in entry:
            one_round = list(_flat(entry[PHASES], f"{place}.", once))
            for _ in range(1 if once else entry[REPEAT]):
                yield from one_round
            continue
        role = _role_in(entry)
        values = {key: value for key, value in entry.items() if key not in (role, OWN_CODE)}
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        yield Placed(role, place, known[entry[role]](**values))


def _kept(written: list[dict], keeps: Callable[[str, type[Phase]], bool]) -> list[dict]:
    """The phases whose role and class `keeps` takes; a repeat without any is left out."""
    known, kept = registered(), []
    for entry in written:
        if REPEAT in entry:
            inner = _kept(entry[PHASES], keeps)
            kept += [{**entry, PHASES: inner}] if inner else []
        elif keeps(role := _role_in(entry), known[entry[role]]):
            kept.append(entry)
    return kept


# Grids


def _check_grid(where: str, method: Method, grid: Any) -> None:
    """Raise `UserError` unless every value of a grid is allowed at its place."""
    if not isinstance(grid, dict):
        raise UserError(f"{where}: grid: must map places to lists of values: 1.rate: [0.1, 0.3]")
    for places, values in grid.items():
        shown = f"{where}: grid: {places}"
        if not isinstance(values, list) or not values:
            raise UserError(f"{shown}: must be a list of values, such as [0.1, 0.3]")
        for value in values:
            written = copy.deepcopy(method.written)
            try:
                _set(written, str(places), value)
            except LookupError:
                known = ", ".join(_places(method.written))
                hint = nearest(str(places), _places(method.written))
                raise UserError(
                    f"{shown}: is not the place of a value; known: {known}; values that change "
                    f"together: 1.rate{AND}2.rate{hint}"
                ) from None
            _Reader(shown).phases(written)
    _Reader(f"{where}: grid").phases(_longest(method.written, grid))
    n_points = math.prod(map(len, grid.values()))
    if n_points > MOST_POINTS:
        raise UserError(f"{where}: grid: has {n_points} points; at most {MOST_POINTS} are allowed")


def _longest(written: list[dict], grid: Mapping[str, list]) -> list[dict]:
    """The phases of a point whose shares add up to most; they grow with every share and repeat."""
    written = copy.deepcopy(written)
    for places, values in grid.items():
        if all(isinstance(value, int | float) for value in values):
            _set(written, str(places), max(values))
    return written


def _set(written: list[dict], places: str, value: Any) -> None:
    """Set a value at places such as `1.rate and 2.1.rate`; LookupError if a place is missing."""
    for place in places.split(AND):
        *numbers, key = place.strip().split(".")
        entry: dict[str, Any] = {PHASES: written}
        for number in numbers:
            if not number.isdecimal() or not 1 <= int(number) <= len(entry.get(PHASES, ())):
                raise LookupError(place)
            entry = entry[PHASES][int(number) - 1]
        if not numbers or key not in entry or key in NO_VALUES:
            raise LookupError(place)
        entry[key] = value


def _places(written: list[dict], above: str = "") -> list[str]:
    """All places of values: `1.rate`, `2.repeat`, `2.1.share`, ..."""
    places = []
    for number, entry in enumerate(written, start=1):
        settable = [key for key in entry if key not in NO_VALUES]
        places += [f"{above}{number}.{key}" for key in settable]
        places += _places(entry.get(PHASES, []), f"{above}{number}.")
    return places
