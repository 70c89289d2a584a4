"""The allowed values of a phase's fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from typing import Any

from palimpsest.allowed import Number

DOMAIN = "domain"


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
    return _field(default, Number(**bounds, whole=True))


def choice(words: Sequence[str], default: str = MISSING) -> Any:
    return _field(default, Choice(tuple(words)))


def choices(words: Sequence[str], default: tuple[str, ...] = MISSING) -> Any:
    return _field(default, Choice(tuple(words), several=True))


def _field(default: Any, domain: Number | Choice) -> Any:
    return dataclasses.field(default=default, metadata={DOMAIN: domain})
