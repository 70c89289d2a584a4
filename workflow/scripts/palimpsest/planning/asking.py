"""What it takes to ask models that a section does not train."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from palimpsest.models.table import Model
from palimpsest.planning.assumptions import (
    DISK_SPEED,
    OPERATIONS_TO_MEASURE,
    TWIN_START_SECONDS,
)
from palimpsest.planning.shapes import Hardware
from palimpsest.section import Asked

WIDTH = 2  # bytes of a weight that is read
NOT_KNOWN = "not known"


def parameters_of(model: str, known: Mapping[str, Model]) -> int | None:
    """The size of a model, from its row of the table or the heads of its folder's files.

    None if neither is there, or if the folder holds an adapter alone.
    """
    name = model.partition("@")[0]
    for row in known.values():
        if name in (row.model, row.id):
            return row.parameters
    files = [path for path in Path(model).glob("*.safetensors") if path.is_file()]
    if not files or any(path.name.startswith("adapter") for path in files):
        return None
    return sum(map(_weights_in, files)) or None


def _weights_in(path: Path) -> int:
    """The number of weights in a safetensors file; 0 for a broken one, which its job refuses."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except (SafetensorError, OSError):
        return 0


def seconds(asked: Asked, parameters: int, hardware: Hardware) -> float:
    """The least time on one GPU: the start of the job, reading the model, and the passes.

    `asked.tokens` must be known. Source of the operations: as `OPERATIONS_TO_MEASURE`.
    """
    operations = asked.passes * OPERATIONS_TO_MEASURE * parameters * asked.tokens
    reading = WIDTH * parameters / DISK_SPEED
    return TWIN_START_SECONDS + reading + operations / hardware.operations


def lines(
    asked: Mapping[str, Iterable[Asked]], known: Mapping[str, Model], hardware: Hardware
) -> list[tuple[str, ...]]:
    """A line for each section that asks models: how many, those left, their tokens, and the time.

    Tokens and time are of the models that are left, and say how many models they do not cover.
    """
    found = []
    for section, models in asked.items():
        distinct = list(dict.fromkeys(models))
        left = [one for one in distinct if not Path(one.file).is_file()]
        tokens = [one.tokens for one in left]
        times = [_time(one, parameters_of(one.model, known), hardware) for one in left]
        counts = f"{len(distinct):,}", f"{len(left):,}"
        minutes = math.ceil(sum(time for time in times if time is not None) / 60)
        n_tokens = sum(n for n in tokens if n is not None)
        known_of = _covered(f"{n_tokens:,.0f}", tokens), _covered(f"{minutes:,} min", times)
        found.append((section, *counts, *known_of))
    return found


def _time(asked: Asked, parameters: int | None, hardware: Hardware) -> float | None:
    if asked.tokens is None or parameters is None:
        return None
    return seconds(asked, parameters, hardware)


def _covered(total: str, values: list[float | None]) -> str:
    """A total, and how many values are not known, if some are not."""
    n_unknown = values.count(None)
    if not n_unknown:
        return total
    return NOT_KNOWN if n_unknown == len(values) else f"{total}, {n_unknown} {NOT_KNOWN}"
