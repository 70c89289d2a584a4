"""One line of a benchmark's table: ours beside a peer's, and whether the target was reached."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What was measured of us and of a peer in the same run.

    `ratio` says how many times better than the peer we are, `target` what was to be reached.
    """

    name: str
    ours: float
    peer: float
    unit: str
    ratio: float
    target: str
    reached: bool


def at_least(name, ours, peer, unit, target=None, target_ratio=None, ratio=None) -> Row:
    """More is better; the target is a value of our own, or a ratio to the peer's."""
    ratio = ours / peer if ratio is None else ratio
    if target is None:
        return Row(name, ours, peer, unit, ratio, f">= {target_ratio:,} x", ratio >= target_ratio)
    return Row(name, ours, peer, unit, ratio, f">= {target:,} {unit}", ours >= target)


def at_most(name, ours, peer, unit, target) -> Row:
    """Less is better; the target is an upper bound of our value."""
    return Row(name, ours, peer, unit, peer / ours, f"<= {target:,} {unit}", ours <= target)


def report(rows: Iterable[Row]) -> int:
    """Print rows as they come; the exit status, 1 if a target was missed."""
    print(f"{'work':58} {'ours':>11} {'peer':>11} {'unit':10} {'ratio':>9}  target")
    missed = 0
    for row in rows:
        missed += not row.reached
        print(
            f"{row.name:58} {number(row.ours):>11} {number(row.peer):>11} {row.unit:10} "
            f"{number(row.ratio):>8}x  {row.target}: {'reached' if row.reached else 'MISSED'}",
            flush=True,
        )
    return 1 if missed else 0


def number(value: float) -> str:
    """Three digits or, of large numbers, all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
