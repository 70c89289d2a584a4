"""The format of numbers and names for a reader."""

from __future__ import annotations

import re

from palimpsest.lazy_import import lazy_import

pd = lazy_import("pandas")

WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def number(value: float | None) -> str:
    """A number with three significant digits and a proper minus sign; a dash if there is none."""
    if value is None or pd.isna(value):
        return "–"
    if value == 0 or abs(value) < 1e-9:
        return "0"
    shown = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return shown.replace("-", "−").replace("inf", "∞")


def score(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.3f}".replace("-", "−")


def percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%".replace("-", "−")


def plural(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def in_words(n: int) -> str:
    return WORDS[n] if n < len(WORDS) else str(n)


def duration(seconds: float | None) -> str:
    """Seconds for a reader: the two largest units."""
    if seconds is None or pd.isna(seconds):
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", str(text)).strip("-") or "x"
