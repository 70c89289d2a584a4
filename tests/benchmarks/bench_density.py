"""Kernel densities: time and error of exact ones, and when algorithm 1 pays on a large corpus.

Run as a script: `python tests/benchmarks/bench_density.py`. One core.

Peers: scikit-learn's KernelDensity (a tree, as it chooses by itself) for time, and differences of
vectors, one query after the other, for the error. For algorithm 1, the peer is our exact density of
the same queries in the same run; both times are from the embeddings on. Its own search is also
compared with that of faiss. A corpus in files, and the embedding of a text's corpus, have their
peak memory measured in a process of their own, at two sizes. For an approximate index, the peer
is the exact search. An index is built once for all queries, so the number of queries decides
whether it pays: the benchmark prints from how many on, for each size of the corpus. There `inf`
says for no number of queries and, in the last rows, for no size that is measured.

The vectors have topics, few common and many rare, because texts have them, and because
the nearest of random directions are hardly nearer than others. A quarter of the queries are copies.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from sklearn.neighbors import KernelDensity

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts")]

from rows import Row, at_most, main, shown  # noqa: E402

from palimpsest import density, tables  # noqa: E402
from palimpsest.density.algorithm_1 import (  # noqa: E402
    InMemory,
    Reading,
    first_sample,
    log_random_parts,
    read_once,
)
from palimpsest.density.kinds import NGRAMS, SEGMENTS  # noqa: E402
from palimpsest.density.neighbours import Index  # noqa: E402

BANDWIDTH = 0.5  # the paper's
TARGET_SECONDS, TARGET_ERROR = 0.10, 1e-9
TARGET_SECONDS_OF_A_MILLION, TARGET_GB = 10.0, 4.0
REPETITIONS = 5
SHARD = 100_000  # vectors of a file
WORDS = 50  # of a segment


def embeddings(n: int, width: int, seed: int) -> np.ndarray:
    """Vectors float32[n, width] of length 1, around a common direction and 2,000 topics.

    Topics, and the vectors of a topic, differ mainly in few directions. At 384 dimensions, the
    cosine of two random vectors is from -0.3 to 0.4 for 9 of 10 pairs.
    """
    world = np.random.default_rng(0)
    directions = world.normal(size=(128, width)) / np.sqrt(np.arange(1, 129))[:, None]
    directions = (directions / np.linalg.norm(directions)).astype(np.float32)
    topics = world.normal(size=(2000, 128)).astype(np.float32) @ directions
    topics += world.normal(size=width).astype(np.float32) * np.float32(0.3 / np.sqrt(width))
    chance = np.random.default_rng([1, seed])
    common = np.arange(1, len(topics) + 1) ** -0.8
    vectors = topics[chance.choice(len(topics), n, p=common / common.sum())]
    for start in range(0, n, 10_000):
        some = vectors[start : start + 10_000]
        own = chance.standard_normal((len(some), 128), dtype=np.float32)
        some += np.float32(0.7) * (own @ directions)
        noise = chance.standard_normal(some.shape, dtype=np.float32)
        some += np.float32(0.3 / np.sqrt(width)) * noise
        some /= np.linalg.norm(some, axis=1, keepdims=True)
    return vectors


def problem(n_queries: int, n_points: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Queries and a corpus; a quarter of the queries are copies."""
    corpus, queries = embeddings(n_points, width, 0), embeddings(n_queries, width, 1)
    queries[::4] = corpus[: len(queries[::4])]
    return queries, corpus


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
    """Time and largest error of both kernels."""
    queries, corpus = (some.astype(float) for some in problem(n_queries, n_points, width))
    for kernel in density.KERNELS:
        peer = KernelDensity(bandwidth=BANDWIDTH, kernel=kernel).fit(corpus)
        ours = seconds(lambda: density.kernel_density(queries, corpus, BANDWIDTH, kernel))  # noqa: B023
        theirs = seconds(lambda: peer.score_samples(queries), 1)  # noqa: B023
        work = f"{kernel}, {n_queries} queries x {n_points:,} x {width}"
        yield at_most(work, ours, theirs, "s", TARGET_SECONDS)
        found = density.log_kernel_density(queries, corpus, BANDWIDTH, kernel)
        error = np.abs(found - plain(queries, corpus, kernel)).max()
        yield at_most("  largest error of the log density", error, np.nan, "nats", TARGET_ERROR)


def large(queries: np.ndarray, corpus: np.ndarray, asked: density.Approximation) -> Iterator[Row]:
    """Exact float32, and algorithm 1 with both indexes: time, memory and error."""
    before = peak_gb()
    whole, took = timed(lambda: density.kernel_density(queries, corpus, BANDWIDTH))
    grown = peak_gb() - before
    work = f"exact float32, {len(queries):,} x {len(corpus):,} x {corpus.shape[1]}"
    yield at_most(work, took, np.nan, "s", TARGET_SECONDS_OF_A_MILLION)
    held = corpus.nbytes / 1e9
    yield at_most("  memory, the corpus included", held + grown, held, "GB", TARGET_GB)
    read, search = timed(lambda: searched(queries, corpus, asked))
    _, of_faiss = timed(lambda: Index(corpus).search(queries, asked.k))
    work = f"search while the corpus is read once, k {asked.k:,}, against faiss"
    yield shown(work, search, of_faiss, "s", of_faiss / search)
    parts, without = timed(
        lambda: density.parts_of_density(
            queries, corpus, BANDWIDTH, approximation=asked, neighbours=read.nearest
        )
    )
    yield shown("algorithm 1, neighbours given: all of it", without, took, "s", took / without)
    error = np.abs(parts.combined / whole - 1)
    yield shown("  relative error, median", np.median(error), np.nan, "", np.nan)
    local = {}
    for index in density.INDEXES:
        one = replace(asked, index=index)
        parts, all_of_it = timed(
            lambda: density.parts_of_density(queries, corpus, BANDWIDTH, approximation=one)  # noqa: B023
        )
        work = f"algorithm 1, {index} index, k {asked.k:,}, m2 {asked.m2:,}: all of it"
        yield shown(work, all_of_it, took, "s", took / all_of_it)
        error = np.abs(parts.combined / whole - 1)
        yield shown("  relative error, median", np.median(error), np.nan, "", np.nan)
        yield shown("  relative error, largest", error.max(), np.nan, "", np.nan)
        local[index] = parts.local
    share = np.median(asked.k / len(corpus) * local[density.EXACT] / whole)
    yield shown("  share of the local part, median", share, np.nan, "", np.nan)
    lost = np.median(1 - local[density.IVF] / local[density.EXACT])
    yield shown("  lost of the local part by ivf, median", lost, np.nan, "", np.nan)


def searched(queries: np.ndarray, corpus: np.ndarray, asked: density.Approximation) -> Reading:
    """One reading of the corpus, which finds the neighbours."""
    return read_once(queries, InMemory(corpus), first_sample(asked, len(corpus)), asked.k)


def peak_of_files(folder: str, queries: np.ndarray, asked: density.Approximation) -> tuple:
    """Peak memory in GB and seconds of algorithm 1 on the files of a folder."""
    before = own_peak_gb()
    _, took = timed(
        lambda: density.parts_of_density(
            queries, density.Shards(folder), BANDWIDTH, approximation=asked
        )
    )
    return own_peak_gb() - before, took


def own_peak_gb() -> float:
    """The most memory of this process so far, without that of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e9


def on_disk(queries: np.ndarray, sizes: list[int], asked: density.Approximation) -> Iterator[Row]:
    """Peak memory at each size of a corpus in files of 100,000 vectors, without the program."""
    width = queries.shape[1]
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            for number, start in enumerate(range(0, n, SHARD)):
                vectors = embeddings(min(SHARD, n - start), width, 10 + number)
                np.save(f"{folder}/{number:05}.npy", vectors)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
                grown, took = alone.submit(peak_of_files, folder, queries, asked).result()
        work = f"algorithm 1 from files, {len(queries):,} x {n:,} x {width}"
        yield shown(work, took, np.nan, "s", np.nan)
        held = n * width * 4 / 1e9
        ratio = held / max(grown, 1e-3)
        yield shown("  peak memory beyond the program's", grown, held, "GB", ratio)


def peak_of_embedding(folder: str) -> tuple:
    """Peak memory in GB and seconds of embedding the segments of a folder, by n-grams."""
    from palimpsest.density.text_embedding import TextJob, embed_text
    from palimpsest.training.attempts import Attempts

    files = f"{folder}/segments.parquet", f"{folder}/embeddings.parquet"
    job = TextJob("text", *files, NGRAMS, None, "", "fp32")
    once = {"micro_batch_size": 1, "evaluation_batch_size": 1}
    before = own_peak_gb()
    _, took = timed(lambda: embed_text(job, Attempts(f"{folder}/attempts.json", once)))
    return own_peak_gb() - before, took


def of_text(sizes: list[int]) -> Iterator[Row]:
    """Peak memory of embedding a corpus of segments of 50 words, against that of its vectors."""
    from palimpsest.density.text_embedding import WIDTH

    for n in sizes:
        chance = np.random.default_rng(n)
        words = chance.zipf(1.3, size=(n, WORDS)) % 50_000
        about = dict.fromkeys(["query_set", "response"], pd.array([pd.NA] * n, dtype="string"))
        segments = pd.DataFrame(
            {
                **dict.fromkeys(["language", "role"], "corpus"),
                **about,
                "segment_id": [f"{place:08x}" for place in range(n)],
                "text": [" ".join(map(str, row)) for row in words],
                "id": [str(place + 1) for place in range(n)],
                **dict.fromkeys(["n_words", "n_characters", "document", "count"], 1),
            }
        )
        with tempfile.TemporaryDirectory() as folder:
            tables.write(f"{folder}/segments.parquet", segments, SEGMENTS)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
                grown, took = alone.submit(peak_of_embedding, folder).result()
        yield shown(f"a corpus embedded, {n:,} segments, n-grams", took, np.nan, "s", np.nan)
        held = n * WIDTH * 4 / 1e9
        ratio = held / max(grown, 1e-3)
        yield shown("  peak memory, and that of the vectors", grown, held, "GB", ratio)


class Costs(NamedTuple):
    """Seconds to build both indexes, and per query; and recall of the approximate index."""

    build: float
    search: float
    build_ivf: float
    search_ivf: float
    random: float
    density: float
    recall: float

    def against_exact_search(self) -> float:
        """Number of queries from which the approximate index takes less time than the exact one."""
        return pays_from(self.build_ivf - self.build, self.search - self.search_ivf)

    def against_exact_density(self) -> float:
        """Number of queries from which algorithm 1, with it, takes less than the exact density."""
        return pays_from(self.build_ivf, self.density - self.search_ivf - self.random)


def pays_from(once: float, saved: float) -> float:
    """Number of queries that make up for an index; infinite if a query saves nothing."""
    return max(once / saved, 1.0) if saved > 0 else np.inf


def costs(queries: np.ndarray, corpus: np.ndarray, asked: density.Approximation) -> Costs:
    """Measure an exact and an approximate index, the random part and the exact density."""
    n = len(queries)
    build, search, rows = of_index(queries, corpus, asked.k, density.EXACT)
    build_ivf, search_ivf, found = of_index(queries, corpus, asked.k, density.IVF)
    recall = np.mean([np.isin(*pair).mean() for pair in zip(rows, found, strict=True)])
    rows_of_sample = first_sample(asked, len(corpus))
    sample = corpus[rows_of_sample]
    settings = [(density.GAUSSIAN, BANDWIDTH)]
    _, random = timed(
        lambda: log_random_parts(queries, found, settings, asked, rows_of_sample, sample)
    )
    _, whole = timed(lambda: density.kernel_density(queries, corpus, BANDWIDTH))
    return Costs(build, search / n, build_ivf, search_ivf / n, random / n, whole / n, recall)


def of_index(
    queries: np.ndarray, corpus: np.ndarray, k: int, kind: str
) -> tuple[float, float, np.ndarray]:
    """Seconds to build an index and to search it, and the rows that it finds."""
    index, build = timed(lambda: Index(corpus, kind))
    (_, rows), search = timed(lambda: index.search(queries, k))
    return build, search, rows


def sweep(
    queries: np.ndarray, corpus: np.ndarray, sizes: list[int], asked: density.Approximation
) -> Iterator[Row]:
    """From how many queries, and from which size of the corpus, an approximate index pays."""
    n = len(queries)
    found = {}
    for size in sizes:
        of_size = found[size] = costs(queries, corpus[:size], asked)
        search, search_ivf = n * of_size.search, n * of_size.search_ivf
        work = f"search, {n:,} queries x {size:,}, k {asked.k:,}, ivf"
        yield shown(work, search_ivf, search, "s", search / search_ivf)
        yield shown("  building the index", of_size.build_ivf, of_size.build, "s", np.nan)
        yield shown("  recall", of_size.recall, 1.0, "", np.nan)
        yield shown("  random part", n * of_size.random, n * of_size.density, "s", np.nan)
        fewest = of_size.against_exact_search()
        yield shown("  pays against the exact search from", fewest, np.nan, "queries", np.nan)
        fewest = of_size.against_exact_density()
        yield shown("  pays against the exact density from", fewest, np.nan, "queries", np.nan)
    for n in (1000, 10_000):
        for name, call in (
            ("search", Costs.against_exact_search),
            ("density", Costs.against_exact_density),
        ):
            paying = [size for size in sizes if call(found[size]) <= n]
            work = f"ivf pays for {n:,} queries, against the exact {name}, from"
            yield shown(work, min(paying, default=np.inf), np.nan, "points", np.nan)


def timed(call: Callable[[], object]) -> tuple:
    """What a call returns, and its seconds."""
    begin = time.perf_counter()
    return call(), time.perf_counter() - begin


def peak_gb() -> float:
    """The most memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    if tiny:
        yield from exact(8, 200, 8)
        queries, corpus = problem(40, 300, 8)
        asked = density.Approximation(20, 200, 50)
        yield from large(queries, corpus, asked)
        yield from on_disk(queries, [300, 600], asked)
        yield from of_text([50, 100])
        yield from sweep(queries, corpus, [200, 300], asked)
        return
    yield from exact(200, 20_000, 384)
    queries, corpus = problem(1000, 1_000_000, 384)
    asked = density.Approximation(1000, 200_000, 10_000)
    yield from large(queries, corpus, asked)
    yield from on_disk(queries, [250_000, 1_000_000], replace(asked, m1=100_000))
    yield from of_text([40_000, 160_000])
    yield from sweep(queries, corpus, [62_500, 125_000, 250_000, 500_000, 1_000_000], asked)


if __name__ == "__main__":
    sys.exit(main(rows))
