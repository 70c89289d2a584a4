"""The allowed values of a phase's fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from typing import Any

from palimpsest.allowed import Number
from palimpsest.plain_text import stripped_lines

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


@dataclass(frozen=True)
class Texts:
    """Texts, in a list or in a text file with one on each line.

    They become a part of commands, so they may have `most` bytes together.
    """

    most: int = 20_000

    def check(self, value: Any) -> tuple[str, ...]:
        """The texts; `ValueError` if there are none, or too many. `UserError` of a lost file."""
        if isinstance(value, str):
            value = stripped_lines(value)
        if not isinstance(value, list | tuple) or not value:
            raise ValueError
        if any(not isinstance(text, str) or not text.strip() for text in value):
            raise ValueError
        if sum(len(text.encode()) for text in value) > self.most:
            raise ValueError
        return tuple(value)

    def __str__(self) -> str:
        return f"a list of texts, or a .txt file with one a line; at most {self.most:,} bytes"


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


def texts() -> Any:
    return _field(MISSING, Texts())


def _field(default: Any, domain: Number | Choice | Texts) -> Any:
    return dataclasses.field(default=default, metadata={DOMAIN: domain})
