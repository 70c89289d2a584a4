"""The allowed values of a phase's fields."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from typing import Any

DOMAIN = "domain"


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
        kinds = (int,) if self.whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not self._holds(value):
            raise ValueError
        return int(value) if self.whole else float(value)

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
        said = [f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None]
        return f"a {'whole ' if self.whole else ''}number {' and '.join(said)}".strip()


@dataclass(frozen=True)
class Choice:
    """One of some words, or a list of them."""

    words: tuple[str, ...]
    several: bool = False

    def check(self, value: Any) -> str | tuple[str, ...]:
        """The word or words; `ValueError` if one is unknown."""
        values = value if self.several and isinstance(value, list | tuple) else [value]
        if not values or any(not isinstance(v, str) or v not in self.words for v in values):
            raise ValueError
        if len(set(values)) < len(values):
            raise ValueError
        return tuple(values) if self.several else value

    def __str__(self) -> str:
        known = ", ".join(self.words)
        return f"a list of some of {known}" if self.several else f"one of {known}"


def number(default: float = MISSING, **bounds: float) -> Any:
    """A field that holds a number within bounds: `above`, `least`, `below`, `most`.

    For example, `rate: float = number(above=0)` has no default, so the table must give a value.
    """
    return _field(default, Number(**bounds))


def whole(default: int = MISSING, **bounds: int) -> Any:
    """A field that holds a whole number within bounds."""
    return _field(default, Number(**bounds, whole=True))


def choice(words: Sequence[str], default: str = MISSING) -> Any:
    """A field that holds one of some words."""
    return _field(default, Choice(tuple(words)))


def choices(words: Sequence[str], default: tuple[str, ...] = MISSING) -> Any:
    """A field that holds some of some words."""
    return _field(default, Choice(tuple(words), several=True))


def _field(default: Any, domain: Number | Choice) -> Any:
    return dataclasses.field(default=default, metadata={DOMAIN: domain})
