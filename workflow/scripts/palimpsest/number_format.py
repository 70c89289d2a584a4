"""The format of numbers and names for a reader."""

from __future__ import annotations

import math
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


def alike(*values: float) -> list[str]:
    """Numbers that a reader compares, such as an estimate and the ends of its interval.

    Where some would have an exponent and others not, these are written without, to the precision of
    the widest difference (three significant digits), or to their own first digit: −0.00527 and
    −0.00003.
    """
    shown = [number(value) for value in values]
    if len({"e" in one for one in shown}) == 1:
        return shown
    known = [value for value in values if math.isfinite(value)]
    width = max(known) - min(known)
    return [
        number_to(value, width) if "e" in one and abs(value) < 1 else one
        for value, one in zip(values, shown, strict=True)
    ]


def number_to(value: float, width: float) -> str:
    digits = max(2 - math.floor(math.log10(width)), -math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}".replace("-", "−")


def the_model(name: str) -> str:
    """A model in a sentence; one that is called "model" is no name."""
    return "the model" if name == "model" else name


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
