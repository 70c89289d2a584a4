"""A short `repr` of objects that hold arrays, so that they can be looked at in a notebook."""

from __future__ import annotations

from dataclasses import fields

MOST = 60  # letters of a value that is shown as it is


class ShortRepr:
    """A dataclass, made with `repr=False`, whose arrays and long values are shown by their size."""

    def __repr__(self) -> str:
        shown = (f"{field.name}={size_of(getattr(self, field.name))}" for field in fields(self))
        return f"{type(self).__name__}({', '.join(shown)})"


def size_of(value: object) -> str:
    """The value itself, or for example float64[50, 1024], 12 rows × 3 columns, or 24 items."""
    if hasattr(value, "columns"):
        return f"{len(value)} rows × {len(value.columns)} columns"
    if hasattr(value, "dtype") and getattr(value, "ndim", 0):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    text = repr(value)
    if len(text) > MOST:
        return f"{len(value)} items" if hasattr(value, "__len__") else f"{text[:MOST]}…"
    return text
