"""Epsilon of 512 + 512 models, against the thresholds of the grid tried one by one.

Run as a script: `python tests/benchmarks/bench_epsilon.py`. The peer is our own plain reading of
what the released scoring code does (`plain_epsilon.grid`), in NumPy and in the same process on one
core; it is not that code. Our own grid is asserted to give what the peer gives.
"""

import os

os.environ.update(NUMBA_NUM_THREADS="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

from rows import Row, at_most, main  # noqa: E402

from helpers import plain_epsilon  # noqa: E402
from palimpsest import unlearning  # noqa: E402

N_MODELS, N_EXAMPLES, N_BY_PEER = 512, 300, 6
TARGET_MS = 5.0


def confidences(n_models: int, n_examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Confidences as they occur: equal, shifted, narrower, and both, next to each other."""
    generator = np.random.default_rng(0)
    shift = np.tile([0.0, 1.0, 0.0, 1.5, 3.0, 0.3], n_examples // 6)
    scale = np.tile([1.0, 1.0, 0.3, 0.1, 0.7, 1.5], n_examples // 6)
    return (
        generator.normal(shift, scale, (n_models, n_examples)),
        generator.normal(0, 1, (n_models, n_examples)),
    )


def timed(function: Callable, n_examples: int, repeats: int) -> tuple[float, np.ndarray]:
    """Shortest time of several calls, in ms per example, and what the last call returned."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = function()
        times.append(1000 * (time.perf_counter() - begin))
    return min(times) / n_examples, result


def rows(tiny: bool) -> list[Row]:
    """All rows of this benchmark."""
    n_models, n_examples = (16, 6) if tiny else (N_MODELS, N_EXAMPLES)
    unlearned, retrained = confidences(n_models, n_examples)
    few = unlearned[:, :N_BY_PEER], retrained[:, :N_BY_PEER]
    for thresholds in ("exact", "grid"):
        unlearning.epsilon(*few, thresholds=thresholds)  # compile

    def by_peer():
        pairs = zip(*(x.T for x in few), strict=True)
        return np.array([plain_epsilon.grid(*pair) for pair in pairs])

    exact_ms, exact = timed(lambda: unlearning.epsilon(unlearned, retrained), n_examples, 3)
    grid_ms, grid = timed(
        lambda: unlearning.epsilon(unlearned, retrained, thresholds="grid"), n_examples, 3
    )
    peer_ms, peer = timed(by_peer, N_BY_PEER, 1)
    np.testing.assert_allclose(grid[:N_BY_PEER], peer, rtol=0, atol=1e-12)
    below, above = 100 * np.mean(exact < grid), 100 * np.mean(exact > grid)
    size = f"{n_models} + {n_models} models"
    return [
        at_most(f"exact epsilon, {size}", exact_ms, peer_ms, "ms/example", TARGET_MS),
        at_most(f"grid epsilon, {size}", grid_ms, peer_ms, "ms/example", TARGET_MS),
        Row(
            "examples whose exact epsilon is below the grid's (and above)",
            below,
            above,
            "%",
            above / below if below else math.inf,
            "0 %",
            below == 0,
        ),
    ]


if __name__ == "__main__":
    sys.exit(main(rows))
