"""A short `repr` of objects that hold arrays, so that they can be looked at in a notebook."""

from __future__ import annotations

from dataclasses import fields

MOST = 60  # letters of a value that is shown as it is


def short_repr(value: object) -> str:
    """The `repr` of a dataclass or a named tuple; arrays and long values are shown by their size.

    In the body of a named tuple, write `__repr__ = short_repr`.
    """
    names = getattr(value, "_fields", None) or [field.name for field in fields(value)]
    shown = (f"{name}={size_of(getattr(value, name))}" for name in names)
    return f"{type(value).__name__}({', '.join(shown)})"


class ShortRepr:
    """A dataclass, made with `repr=False`, with a short `repr`."""

    __repr__ = short_repr


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
