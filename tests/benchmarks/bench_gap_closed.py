"""How often the 95 % interval of the share of the gap closed by one model misses the truth.

Run as a script: `python tests/benchmarks/bench_gap_closed.py`. In simulated worlds, records of a
group are alike, and each of several models has a loss of its own. The peer is the percentile
bootstrap over groups of records. Rows of eight groups have no target.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

from rows import Row, at_most, main, shown  # noqa: E402

from helpers.gap_worlds import SHARE, GapWorld, gap_world  # noqa: E402
from palimpsest.audit.checkpoints.closed import share_closed  # noqa: E402

N_WORLDS, N_OF_PEER, TINY = 4000, 1000, 10
N_DRAWS = 400  # of the bootstrap
TARGET = 6.0  # percent
MODELS = ((1, 1), (1, 4), (4, 4))
N_GROUPS = (8, 20, 60)


def missed(n_groups: int, models: tuple[int, int], same: bool, n_worlds: int) -> tuple:
    """Percent of intervals that miss the truth, and of those of the bootstrap."""
    chance = np.random.default_rng(0)
    ours, peer = [], []
    for number in range(n_worlds):
        world = gap_world(chance, *models, n_groups)
        is_forget = np.full(len(world.group), True) if same else world.group < n_groups // 2
        measured = is_forget if same else ~is_forget
        share = share_closed(*world[:3], is_forget, measured, world.group)
        ours.append(not share.lower <= SHARE <= share.upper)
        if number < N_OF_PEER:
            lower, upper = bootstrap(chance, world, is_forget, measured)
            peer.append(not lower <= SHARE <= upper)
    return 100 * np.mean(ours), 100 * np.mean(peer)


def bootstrap(chance, world: GapWorld, forget: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """The ends of the percentile interval, for groups that are drawn anew."""
    before = world.originals.mean(axis=0)
    gap, rise = world.retrained.mean(axis=0) - before, world.model - before
    weights = {}
    for side in {tuple(forget), tuple(measured)}:
        names, of_record = np.unique(world.group[np.array(side)], return_inverse=True)
        drawn = chance.multinomial(len(names), np.full(len(names), 1 / len(names)), N_DRAWS)
        weights[side] = drawn[:, of_record]
    of_gap, of_rise = weights[tuple(forget)], weights[tuple(measured)]
    gaps = (of_gap @ gap[forget]) / of_gap.sum(axis=1)
    rises = (of_rise @ rise[measured]) / of_rise.sum(axis=1)
    return np.quantile(rises / gaps, [0.025, 0.975])


def rows(tiny: bool) -> Iterator[Row]:
    for n_groups in N_GROUPS:
        for models in MODELS:
            for same in (True, False):
                records = "forget records" if same else "other records"
                name = f"{records}, {n_groups} groups, {models[0]} + {models[1]} models"
                ours, peer = missed(n_groups, models, same, TINY if tiny else N_WORLDS)
                if n_groups == min(N_GROUPS):
                    yield shown(f"missed, {name}", ours, peer, "%", np.nan)
                else:
                    yield at_most(f"missed, {name}", ours, peer, "%", TARGET, ratio=np.nan)


if __name__ == "__main__":
    sys.exit(main(rows))
