"""One line of a benchmark's table: our value, a peer's, and whether the target was reached."""

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

MISSED = 3  # exit status of a benchmark that missed a target; Python's own for an error is 1
HEADER = f"{'work':58} {'ours':>11} {'peer':>11} {'unit':10} {'ratio':>9}  target"


@dataclass(frozen=True)
class Row:
    """Our value and a peer's value, measured in the same run.

    `ratio` says how many times better than the peer we are; `target` is the value to reach.
    `reached` is None if there is no target.
    """

    name: str
    ours: float
    peer: float
    unit: str
    ratio: float
    target: str
    reached: bool | None


def at_least(name, ours, peer, unit, target=None, target_ratio=None, ratio=None) -> Row:
    """More is better; the target is a value of our own, or a ratio to the peer's."""
    ratio = ours / peer if ratio is None else ratio
    if target is None:
        return Row(name, ours, peer, unit, ratio, f">= {target_ratio:,} x", ratio >= target_ratio)
    return Row(name, ours, peer, unit, ratio, f">= {target:,} {unit}", ours >= target)


def at_most(name, ours, peer, unit, target, ratio=None) -> Row:
    """Less is better; the target is an upper bound of our value."""
    ratio = peer / ours if ratio is None else ratio
    return Row(name, ours, peer, unit, ratio, f"<= {target:,} {unit}", ours <= target)


def shown(name, ours, peer, unit, ratio) -> Row:
    """A value without a target."""
    return Row(name, ours, peer, unit, ratio, "none", None)


def false_positives(name, found, n, peer, level) -> Row:
    """Percent of n studies with a finding where there is nothing; `peer` is the peer's percent.

    In the name stands the exact binomial 95 % interval. The target is that its lower end is at most
    the level, in percent.
    """
    # Imported here, because most benchmarks, and the command that runs them, do not need it.
    from scipy.stats import binomtest

    ends = binomtest(int(found), n).proportion_ci()
    low, high, ours = 100 * ends.low, 100 * ends.high, 100 * found / n
    what = f"{name}: {low:.1f}-{high:.1f}"
    return Row(what, ours, peer, "%", peer / max(ours, 0.5), f"<= {level:g} % (low)", low <= level)


def in_turns(ours: Callable, theirs: Callable, rounds: int) -> np.ndarray:
    """Seconds [rounds, 2] of two functions that take turns; the first round is left out."""
    seconds = np.zeros((rounds + 1, 2))
    for n in range(rounds + 1):
        turns = [(0, ours), (1, theirs)]
        for place, work in turns if n % 2 else turns[::-1]:
            begin = time.perf_counter()
            work(n)
            seconds[n, place] = time.perf_counter() - begin
    return seconds[1:]


def main(rows: Callable[..., Iterable[Row]], flag: str | None = None, about: str = "") -> int:
    """The command line of a benchmark, which makes its `rows` at their real or tiny size.

    A benchmark may have one `flag` of its own, whose value is the second argument of `rows`.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiny", action="store_true", help="only see that the benchmark runs")
    parser.add_argument("--no-header", action="store_true", help="print the rows alone")
    if flag:
        parser.add_argument(flag, dest="own", help=about)
    arguments = parser.parse_args()
    own = [arguments.own] if flag else []
    if not arguments.no_header:
        print(HEADER)
    return report(rows(arguments.tiny, *own), judged=not arguments.tiny)


def report(rows: Iterable[Row], judged: bool = True) -> int:
    """Print rows as they come; the exit status, which tells whether a target was missed."""
    missed = 0
    for row in rows:
        judged_row = judged and row.reached is not None
        missed += judged_row and not row.reached
        verdict = ("reached" if row.reached else "MISSED") if judged_row else "not judged"
        print(
            f"{row.name:58} {number(row.ours):>11} {number(row.peer):>11} {row.unit:10} "
            f"{number(row.ratio):>8}x  {row.target}: {verdict}",
            flush=True,
        )
    return MISSED if missed else 0


def number(value: float) -> str:
    """A number with three digits or, if it is large, with all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
