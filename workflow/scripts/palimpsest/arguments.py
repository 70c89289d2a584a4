"""What the public functions take: declared above a function, and checked when it is called.

@takes(loss=Numbers("models", "texts"), inside=Truths("models", "texts"))
def lira_online(loss, inside, unit=None): ...

A value of a wrong kind ends in one line that names the argument, what it is, and what it must be.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

from palimpsest.allowed import WHOLE, WrongValue, checked_numbers, shown

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


LARGEST = 2**53  # whole numbers below it are exact as floats


class WrongKind(WrongValue, TypeError):
    """An argument of a function is of a kind that is not allowed."""


class Kind(Protocol):
    """What an argument may be; its text says so after "must be"."""

    def check(self, value: Any) -> Any:
        """The value as the function takes it; `ValueError` if it is of another kind."""


def takes(**kinds: Kind) -> Callable[[Callable], Callable]:
    """Check some arguments of a function, by their names.

    Axes with one name must have one length. A value that is the default is not checked. Raises
    `WrongKind`.
    """

    def declared(function: Callable) -> Callable:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            given = {
                name: kind
                for name, kind in kinds.items()
                if name in bound.arguments
                and bound.arguments[name] is not signature.parameters[name].default
            }
            for name, kind in given.items():
                bound.arguments[name] = _checked(name, bound.arguments[name], kind)
            _check_lengths({name: bound.arguments[name] for name in given}, given)
            return function(*bound.args, **bound.kwargs)

        return checked

    return declared


def _checked(name: str, value: Any, kind: Kind) -> Any:
    try:
        return kind.check(value)
    except ValueError:
        raise WrongKind(f"{name}: is {_said(value)} and must be {kind}") from None


def _check_lengths(values: Mapping[str, Any], kinds: Mapping[str, Kind]) -> None:
    known: dict[str, tuple[str, int]] = {}
    for name, value in values.items():
        axes = getattr(kinds[name], "axes", ())
        lengths = getattr(value, "shape", None) or (len(value),) if axes else ()
        for axis, length in zip(axes, lengths, strict=True):
            other, expected = known.setdefault(axis, (name, length))
            if length != expected:
                raise WrongKind(
                    f"{name}: has {length:,} {axis}, and {other} has {expected:,}; give the same "
                    f"{axis} in both"
                )


def _said(value: Any) -> str:
    """A value in a message: arrays by their shape, and other objects by their class."""
    if value is None or isinstance(value, str | Real):
        return shown(value)
    kind = type(value).__name__
    if (shape := getattr(value, "shape", None)) is not None:
        return f"of the class {kind} and the shape {list(shape)}"
    return f"of the class {kind}"


@dataclass(frozen=True)
class Made:
    """An object of a class that a function of the library returns; `by` is such a call."""

    of: type
    by: str

    def check(self, value: Any) -> Any:
        if not isinstance(value, self.of):
            raise ValueError
        return value

    def __str__(self) -> str:
        return f"of the class {self.of.__name__}: what {self.by} returns"


@dataclass(frozen=True)
class Listed:
    """A list of such objects."""

    each: Made

    def check(self, value: Any) -> list:
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise ValueError
        return [self.each.check(one) for one in value]

    def __str__(self) -> str:
        return f"a list of objects {self.each}"


@dataclass(frozen=True)
class Counts:
    """A mapping from whole numbers to whole numbers, both of them 1 or more."""

    example: str

    def check(self, value: Any) -> Mapping[int, int]:
        if not isinstance(value, Mapping):
            raise ValueError
        for number in (*value.keys(), *value.values()):
            WHOLE.check(number)
        return value

    def __str__(self) -> str:
        return f"a mapping of whole numbers at least 1, such as {self.example}"


class _Axes:
    """The names of the axes of an array. Without names, it may have any shape."""

    def __init__(self, *axes: str):
        self.axes = axes

    def _check_axes(self, array: np.ndarray) -> np.ndarray:
        if self.axes and array.ndim != len(self.axes):
            raise ValueError
        return array

    def __str__(self) -> str:
        return f"an array [{', '.join(self.axes)}] of {self.of}" if self.axes else self.of


class Numbers(_Axes):
    """Numbers, which become an array of floats; short floats stay short."""

    of = "numbers"

    def check(self, value: Any) -> np.ndarray:
        return self._check_axes(checked_numbers("", value, keeps_short=True))


class Wholes(_Axes):
    """Whole numbers, which become an array."""

    of = "whole numbers"

    def check(self, value: Any) -> np.ndarray:
        numbers = self._check_axes(checked_numbers("", value))
        if not ((numbers == numbers.round()) & (abs(numbers) < LARGEST)).all():
            raise ValueError
        return numbers.astype(int)


class Truths(_Axes):
    """Truth values, or the numbers 1 and 0, which become an array of truth values."""

    of = "True and False"

    def check(self, value: Any) -> np.ndarray:
        numbers = self._check_axes(checked_numbers("", value))
        if not ((numbers == 0) | (numbers == 1)).all():
            raise ValueError
        return numbers.astype(bool)


class Names(_Axes):
    """Names or numbers of things, which become an array."""

    of = "names or numbers"

    def check(self, value: Any) -> np.ndarray:
        import numpy as np

        return self._check_axes(np.asarray(value))


class Texts(_Axes):
    """A list of texts; `such_as` is an example."""

    def __init__(self, *axes: str, such_as: str = ""):
        super().__init__(*axes)
        self.such_as = such_as

    def check(self, value: Any) -> list[str]:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise ValueError
        found = [] if hasattr(value, "columns") else list(value)  # a table has its columns' names
        if hasattr(value, "columns") or not all(isinstance(text, str) for text in found):
            raise ValueError
        return found

    def __str__(self) -> str:
        return "a list of texts (str)" + (f", such as {self.such_as}" if self.such_as else "")


class _Text:
    def check(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError
        return value

    def __str__(self) -> str:
        return "a text (str)"


@dataclass(frozen=True)
class FilePath:
    """A path; `of_frame` is a call that takes a table in place of its file."""

    of_frame: str = ""

    def check(self, value: Any) -> str | os.PathLike:
        if not isinstance(value, str | os.PathLike):
            raise ValueError
        return value

    def __str__(self) -> str:
        said = "a path (str or Path)"
        return f"{said}; a table is taken by {self.of_frame}" if self.of_frame else said


class _Frame:
    def check(self, value: Any) -> pd.DataFrame:
        import pandas as pd

        if not isinstance(value, pd.DataFrame):
            raise ValueError
        return value

    def __str__(self) -> str:
        return "a table (pandas.DataFrame)"


TEXT, PATH, FRAME = _Text(), FilePath(), _Frame()
