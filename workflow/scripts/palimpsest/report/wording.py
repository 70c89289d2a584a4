"""Numbers as the report writes them."""

import pandas as pd


def number(value: float | None) -> str:
    """A number to three significant digits, a dash for none, with a proper minus sign."""
    if value is None or pd.isna(value):
        return "–"
    if value == 0 or abs(value) < 1e-9:
        return "0"
    shown = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return shown.replace("-", "−")


def score(value: float) -> str:
    """A score in [0, 1], or the end of its interval, to three decimals; a dash for none."""
    return "–" if pd.isna(value) else f"{value:.3f}".replace("-", "−")


def percent(share: float) -> str:
    """A share as a whole percentage, its sign on the same line."""
    return f"{100 * share:.0f}\u00a0%".replace("-", "−")
