"""Kernel densities: time and error of exact ones, and of algorithm 1 at the size of a large corpus.

Run as a script: `python tests/benchmarks/bench_density.py`. One core.

Peers: scikit-learn's KernelDensity (a tree, as it chooses by itself) for time, and differences of
vectors, one query after the other, for the error. For the approximation, the peer is our exact
density of the same queries in the same run; both times are from the embeddings, the search for
neighbours included.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from sklearn.neighbors import KernelDensity

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts")]

from rows import Row, at_most, main, shown  # noqa: E402

from palimpsest import density  # noqa: E402

BANDWIDTH = 0.5  # the paper's
TARGET_SECONDS, TARGET_ERROR = 0.10, 1e-9
TARGET_SECONDS_OF_A_MILLION, TARGET_GB = 10.0, 4.0
REPETITIONS = 5


def embeddings(n: int, width: int, seed: int, kind=np.float64) -> np.ndarray:
    """Normalised vectors around a common direction, as embeddings of texts are."""
    chance = np.random.default_rng(seed)
    vectors = chance.normal(size=(n, width)).astype(kind) + kind(1) * (np.arange(width) == 0) * 5
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(kind)


def seconds(call: Callable[[], object], repetitions: int = REPETITIONS) -> float:
    """The shortest of some runs, because other programs only make a run longer."""
    found = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return min(found)


def plain(queries: np.ndarray, corpus: np.ndarray, kernel: str) -> np.ndarray:
    """The log density from differences of vectors."""
    rows = []
    for query in queries:
        apart = np.linalg.norm(corpus - query, axis=1)
        is_gaussian = kernel == density.GAUSSIAN
        log_kernel = -(apart**2) / (2 * BANDWIDTH**2) if is_gaussian else -apart / BANDWIDTH
        rows.append(logsumexp(log_kernel) - np.log(len(corpus)))
    return np.array(rows)


def exact(n_queries: int, n_points: int, width: int) -> Iterator[Row]:
    """Time and largest error of both kernels; a quarter of the queries are copies."""
    corpus, queries = embeddings(n_points, width, 0), embeddings(n_queries, width, 1)
    queries[::4] = corpus[: len(queries[::4])]
    for kernel in density.KERNELS:
        peer = KernelDensity(bandwidth=BANDWIDTH, kernel=kernel).fit(corpus)
        ours = seconds(lambda: density.kernel_density(queries, corpus, BANDWIDTH, kernel))  # noqa: B023
        theirs = seconds(lambda: peer.score_samples(queries), 1)  # noqa: B023
        work = f"{kernel}, {n_queries} queries x {n_points:,} x {width}"
        yield at_most(work, ours, theirs, "s", TARGET_SECONDS)
        found = density.log_kernel_density(queries, corpus, BANDWIDTH, kernel)
        error = np.abs(found - plain(queries, corpus, kernel)).max()
        yield at_most("  largest error of the log density", error, np.nan, "nats", TARGET_ERROR)


def approximate(n_queries: int, n_points: int, width: int, asked: density.Approximation):
    """Exact float32 and algorithm 1 on a large corpus: time, memory and relative error."""
    corpus = embeddings(n_points, width, 0, np.float32)
    queries = embeddings(n_queries, width, 1, np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    whole = density.kernel_density(queries, corpus, BANDWIDTH)
    took = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work = f"exact float32, {n_queries:,} x {n_points:,} x {width}"
    yield at_most(work, took, np.nan, "s", TARGET_SECONDS_OF_A_MILLION)
    held = corpus.nbytes / 1e9
    yield at_most(
        "  memory, the corpus included", held + (after - before) * 1024 / 1e9, held, "GB", TARGET_GB
    )
    begin = time.perf_counter()
    parts = density.parts_of_density(queries, corpus, BANDWIDTH, density.GAUSSIAN, asked)
    approximately = time.perf_counter() - begin
    work = f"algorithm 1, k {asked.k:,}, m2 {asked.m2:,}: all of it"
    yield shown(work, approximately, took, "s", took / approximately)
    begin = time.perf_counter()
    density.nearest(queries, corpus, asked.k)
    search = time.perf_counter() - begin
    yield shown("  of which the search for neighbours", search, approximately, "s", np.nan)
    error = np.abs(parts.combined / whole - 1)
    yield shown("  largest relative error", error.max(), np.nan, "", np.nan)
    yield shown(
        "  median share of the local part",
        np.median(asked.k / n_points * parts.local / parts.combined),
        np.nan,
        "",
        np.nan,
    )


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    if tiny:
        yield from exact(8, 200, 8)
        yield from approximate(4, 300, 8, density.Approximation(20, 200, 50))
        return
    yield from exact(200, 20_000, 384)
    yield from approximate(1000, 1_000_000, 384, density.Approximation(1000, 200_000, 10_000))


if __name__ == "__main__":
    sys.exit(main(rows))
