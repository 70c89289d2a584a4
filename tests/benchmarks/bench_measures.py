"""Start and score of memorisation, against a plain loop over strings and epochs.

Run as a script: `python tests/benchmarks/bench_measures.py`. The peer computes the same
definitions one string at a time, in the same process; the results are asserted equal.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from rows import Row, at_most, main  # noqa: E402

from palimpsest import memorisation  # noqa: E402
from palimpsest.memorisation.approximation import TIE  # noqa: E402

N_EPOCHS, N_STRINGS, N_TEST = 50, 2048, 1024
TINY = 5, 32, 16
TARGET_MS = 50.0


def looped(loss: np.ndarray, threshold: np.ndarray, binary: bool) -> tuple[np.ndarray, np.ndarray]:
    """Start after the last miss and score, string by string and epoch by epoch."""
    n_epochs, n_strings = loss.shape
    start, score = np.full(n_strings, np.nan), np.zeros(loss.shape)
    for s in range(n_strings):
        first = 0
        for e in range(n_epochs):
            if not loss[e, s] < threshold[e, s]:
                first = e + 1
        if first == n_epochs:
            continue
        start[s] = first
        for e in range(first, n_epochs):
            score[e, s] = 1.0 if binary else (threshold[e, s] - loss[e, s]) / threshold[e, s]
    return start, score


def best_of(function: Callable, repeats: int) -> tuple[float, object]:
    """Shortest wall time of several calls, in ms, and what the last call returned."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = function()
        times.append(1000 * (time.perf_counter() - begin))
    return min(times), result


def measures(n_epochs: int, n_strings: int) -> list[Row]:
    """Recollection, counterfactual and contextual memorisation together."""
    generator = np.random.default_rng(0)
    decay = np.exp(-np.arange(n_epochs) / 12)[:, None]
    loss = decay * generator.uniform(0.5, 2, (n_epochs, n_strings))
    loss_without = np.maximum(decay, 0.3) * generator.uniform(0.8, 2, (n_epochs, n_strings))

    def ours():
        return (
            memorisation.recollection(loss, 0.2),
            memorisation.counterfactual(loss, loss_without),
            memorisation.contextual(loss, loss_without),
        )

    def peer():
        optimal = np.tile(loss_without.min(axis=0), (n_epochs, 1))
        return (
            looped(loss, np.full(loss.shape, 0.2), binary=True),
            looped(loss, loss_without, binary=False),
            looped(loss, optimal, binary=False),
        )

    fast, results = best_of(ours, 20)
    slow, expected = best_of(peer, 1)
    for result, (start, score) in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result.start, start)
        np.testing.assert_array_equal(result.score, score)
    name = f"start and score, 3 measures, {n_strings:,} strings x {n_epochs} epochs"
    return [at_most(name, fast, slow, "ms", TARGET_MS)]


def stand_ins(n_epochs: int, n_strings: int, n_test: int) -> list[Row]:
    """Same-frequency stand-ins and the median of their losses."""
    generator = np.random.default_rng(0)
    train = generator.integers(0, 60, n_strings) / 2
    test = generator.integers(0, 60, n_test) / 2
    n_tokens = np.ones(n_strings)
    loss = generator.random((n_epochs, n_test))

    def peer():
        medians = np.empty((n_epochs, n_strings))
        for s in range(n_strings):
            distance = np.abs(test - train[s])
            tied = distance <= distance.min() + TIE * max(1.0, abs(train[s]))
            medians[:, s] = np.median((loss - test)[:, tied], axis=1)
        return np.maximum(medians + train, 0.0)

    fast, result = best_of(
        lambda: memorisation.stand_ins(train, test, n_tokens, np.inf).loss(loss), 10
    )
    slow, expected = best_of(peer, 1)
    np.testing.assert_array_equal(result, expected)
    name = f"stand-ins, {n_strings:,} of {n_test:,} strings x {n_epochs} epochs"
    return [at_most(name, fast, slow, "ms", TARGET_MS)]


def rows(tiny: bool) -> list[Row]:
    """All rows of this benchmark."""
    n_epochs, n_strings, n_test = TINY if tiny else (N_EPOCHS, N_STRINGS, N_TEST)
    return [*measures(n_epochs, n_strings), *stand_ins(n_epochs, n_strings, n_test)]


if __name__ == "__main__":
    sys.exit(main(rows))
