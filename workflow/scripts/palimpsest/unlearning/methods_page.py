"""The page of the documentation with the settings of the shipped methods."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.methods.phases import ROLES, Training
from palimpsest.unlearning.methods.table import PHASES, REPEAT

# The defaults of keys that all phases have
OF_ALL_PHASES = {field.name: field.default for field in dataclasses.fields(Training)}


def methods_page(methods: Mapping[str, Method]) -> str:
    """The table of methods, in Markdown: every setting that is not a default of all phases."""
    lines = [
        "# The settings of the unlearning methods",
        "",
        "These are the methods of [config/unlearning.yaml](../config/unlearning.yaml). Phases run "
        "in this order; `n x [...]` runs n times. [methods.md](methods.md#phases) explains the "
        "phases and their keys; defaults of the keys that all phases have are left out. "
        "[How the settings were chosen](unlearning.md#how-the-settings-were-chosen).",
        "",
        "| method | side in the paper | phases | warning |",
        "|---|---|---|---|",
        *(_row(method) for method in methods.values()),
    ]
    return "\n".join(lines) + "\n"


def _row(method: Method) -> str:
    cells = (f"`{method.name}`", method.source, _phases(method.written), method.warning)
    return f"| {' | '.join(cells)} |"


def _phases(written: Iterable[Mapping[str, Any]]) -> str:
    return "; ".join(map(_entry, written))


def _entry(entry: Mapping[str, Any]) -> str:
    if REPEAT in entry:
        return f"{entry[REPEAT]} x [{_phases(entry[PHASES])}]"
    role = next(key for key in entry if key in ROLES)
    settings = ", ".join(
        f"{key} {_value(value)}"
        for key, value in entry.items()
        if key != role and value != OF_ALL_PHASES.get(key)
    )
    return f"{role} `{entry[role]}`" + f" ({settings})" * bool(settings)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(value)
    return value if isinstance(value, str) else f"{value:g}"
