"""Values that are allowed, and the one line that says so where a value is not."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from palimpsest.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike


class WrongValue(UserError, ValueError):
    """An argument of a function has a value that is not allowed."""


@dataclass(frozen=True)
class Number:
    """A finite number within bounds; the bounds `above` and `below` themselves are not allowed."""

    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None
    whole: bool = False

    def check(self, value: Any) -> float:
        """The value as a number; `ValueError` if it is not allowed."""
        # NumPy's numbers are of these kinds, too.
        kind = numbers.Integral if self.whole else numbers.Real
        if isinstance(value, bool) or not isinstance(value, kind):
            raise ValueError
        try:
            number = int(value) if self.whole else float(value)
            is_allowed = self._holds(number)
        except OverflowError:  # a whole number that no float can hold
            is_allowed = False
        if not is_allowed:
            raise ValueError
        return number

    def _holds(self, value: float) -> bool:
        return math.isfinite(value) and not (
            (self.above is not None and value <= self.above)
            or (self.least is not None and value < self.least)
            or (self.below is not None and value >= self.below)
            or (self.most is not None and value > self.most)
        )

    def __str__(self) -> str:
        bounds = {
            "above": self.above,
            "at least": self.least,
            "below": self.below,
            "at most": self.most,
        }
        said = [
            # A number of points is written with all its digits.
            f"{word} {bound}" if isinstance(bound, int) else f"{word} {bound:g}"
            for word, bound in bounds.items()
            if bound is not None
        ]
        return f"a {'whole ' if self.whole else ''}number {' and '.join(said)}".strip()


CONFIDENCES = Number(above=0, below=1)
SEEDS = COUNTS = Number(least=0, whole=True)
WHOLE = Number(least=1, whole=True)


def checked_number(name: str, value: Any, allowed: Number, why: str = "") -> float:
    """The value as a number; `WrongValue` that names the value if it is not allowed.

    `why` ends the message.
    """
    try:
        return allowed.check(value)
    except ValueError:
        raise WrongValue(f"{name}: is {shown(value)} and must be {allowed}{why}") from None


def checked_word(name: str, value: Any, known: Sequence[str]) -> str:
    """The value; `WrongValue` if it is not one of the known words."""
    if not isinstance(value, str) or value not in known:
        raise WrongValue(f"{name}: {shown(value)} is unknown; choose from {', '.join(known)}")
    return value


def checked_numbers(name: str, values: ArrayLike, keeps_short: bool = False) -> np.ndarray:
    """The values as an array float64[...]; `WrongValue` that names them if they are no numbers.

    With `keeps_short`, floats of a shorter type stay so: their rounding errors are larger.
    """
    import numpy as np

    try:
        numbers = numeric(np.asarray(values))
        return numbers if keeps_short and numbers.dtype.kind == "f" else numbers.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise WrongValue(f"{name}: is {shown(values)} and must be an array of numbers") from None


def numeric(array: np.ndarray) -> np.ndarray:
    """The array, if it holds numbers; `ValueError` if it does not. Objects become float64.

    Text is refused, although NumPy reads the text "1" as the number 1.
    """
    if array.dtype.kind == "O" and all(isinstance(each, numbers.Real) for each in array.flat):
        return array.astype(float)
    if array.dtype.kind not in "biuf":
        raise ValueError
    return array


def shown(value: Any) -> str:
    """A value as messages have it: at most 60 characters, with quotes around a text."""
    try:
        said = str(value) if isinstance(value, numbers.Real) else repr(value)
    except ValueError:  # Python does not write numbers of thousands of digits
        said = f"a number of {value.bit_length()} bits"
    return said if len(said) <= 60 else f"{said[:57]}..."
