"""Algorithm 1 without the sum over the corpus, from arrays and from files."""

import tracemalloc

import numpy as np
import pytest

from helpers.experiments import message
from palimpsest import density
from palimpsest.density import algorithm_1, distances
from palimpsest.density.vectors_on_disk import InMemory, Kept, Shards

ASKED = density.Approximation(k=20, m1=150, m2=30)


def vectors(n: int, width: int = 8, seed: int = 0) -> np.ndarray:
    found = np.random.default_rng(seed).normal(size=(n, width))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def shards_of(folder, corpus: np.ndarray, *ends: int) -> Shards:
    """The corpus in files that end at these rows, and at its last one."""
    for number, part in enumerate(np.split(corpus, ends)):
        np.save(folder / f"part-{number}.npy", part)
    return Shards(folder)


@pytest.fixture
def corpus() -> np.ndarray:
    return vectors(3000)


@pytest.fixture
def queries(corpus) -> np.ndarray:
    """Half of them are copies of points."""
    return np.concatenate([corpus[:2000:200], vectors(10, seed=1)])


def test_files_are_one_corpus_in_the_order_of_their_names(tmp_path, corpus):
    found = shards_of(tmp_path, corpus, 700, 701, 2500)
    assert (found.n, found.width) == corpus.shape
    for size in (1, 64, 5000):
        parts = [block.copy() for block in found.blocks(size)]
        assert max(map(len, parts)) <= size
        np.testing.assert_array_equal(np.concatenate(parts), corpus)


def test_rows_are_kept_in_the_order_in_which_they_are_asked_for(corpus):
    rows = np.array([5, 2999, 0, 5, 1024])
    kept = Kept(InMemory(corpus), rows)
    assert sum(len(block) for block in kept.blocks(100)) == len(corpus)
    np.testing.assert_array_equal(kept.vectors, corpus[rows])


def test_the_nearest_points_are_those_of_a_search_of_all(tmp_path, corpus, queries):
    """Also in the last block, and with a k that is larger than a block."""
    squares = ((queries[:, None] - corpus).astype(float) ** 2).sum(axis=2)
    for k in (1, 20, 1500, 3000):
        read = algorithm_1.read_once(queries, shards_of(tmp_path, corpus, 1100), np.arange(3), k)
        rows = np.sort(read.nearest.rows, axis=1)
        assert all(len(set(row)) == k for row in rows)
        own = np.take_along_axis(squares, read.nearest.rows, axis=1)
        np.testing.assert_allclose(read.nearest.distances**2, own, atol=2e-6)
        np.testing.assert_allclose(
            np.sqrt(np.sort(squares, axis=1)[:, :k]), read.nearest.distances, atol=2e-3
        )
        assert (read.nearest.distances[:10, 0] == 0).all()


@pytest.mark.parametrize("kernel", density.KERNELS)
def test_files_give_what_an_array_gives(tmp_path, corpus, queries, kernel):
    on_disk = shards_of(tmp_path, corpus, 700, 2500)
    for bandwidth in (0.1, 0.5):
        found = density.parts_of_density(queries, on_disk, bandwidth, kernel, ASKED)
        expected = density.parts_of_density(queries, corpus, bandwidth, kernel, ASKED)
        np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_the_kernel_is_never_summed_over_the_corpus(monkeypatch, corpus, queries):
    """The exact density would be right in place of an estimate that is off."""

    def fail(*_):
        raise AssertionError("a sum over the corpus")

    monkeypatch.setattr(algorithm_1.LogSums, "add", fail)
    found = density.parts_of_density(queries, corpus, 0.5, approximation=ASKED)
    assert (found.combined != density.Parts(*found).local).all()
    with pytest.raises(AssertionError):
        algorithm_1.read_once(queries, InMemory(corpus), np.arange(3), 0, [("gaussian", 0.5)])


def test_one_reading_gives_the_exact_densities_as_well(corpus, queries):
    settings = [("gaussian", 0.1), ("exponential", 0.5), ("gaussian", 1.0)]
    read = algorithm_1.read_once(queries, InMemory(corpus), np.arange(3), 20, settings)
    for (kernel, bandwidth), found in zip(settings, read.log_densities, strict=True):
        exact = density.log_kernel_density(queries, corpus, bandwidth, kernel)
        np.testing.assert_allclose(found, exact, rtol=1e-4)
    alone = algorithm_1.read_once(queries, InMemory(corpus), np.arange(3), 20)
    np.testing.assert_array_equal(read.nearest.rows, alone.nearest.rows)


def test_given_neighbours_take_the_place_of_the_search(monkeypatch, tmp_path, corpus, queries):
    """More than k are cut off. No distance to the corpus is computed."""
    more = density.nearest(queries, corpus, 30)
    searched = density.parts_of_density(queries, corpus, 0.3, approximation=ASKED)
    monkeypatch.setattr(algorithm_1, "Nearest", None)
    for given in (corpus, shards_of(tmp_path, corpus, 100)):
        found = density.parts_of_density(queries, given, 0.3, approximation=ASKED, neighbours=more)
        np.testing.assert_allclose(found, searched, rtol=1e-4)


WRONG = {
    "another number of queries": (lambda d, r: (d[1:], r[1:]), "both must be [20, k]"),
    "two shapes": (lambda d, r: (d[:, 1:], r), "both must be [20, k]"),
    "too few": (lambda d, r: (d[:, :19], r[:, :19]), "are 19 for each query, and k is 20; lower k"),
    "of another corpus": (lambda d, r: (d, r + 3000), "whole numbers from 0 to 2999"),
    "no rows": (lambda d, r: (d, r.astype(float)), "whole numbers from 0 to 2999"),
    "a negative distance": (lambda d, r: (d - 1, r), "finite numbers from 0 on"),
    "not a number": (lambda d, r: (d * np.nan, r), "finite numbers from 0 on"),
    "a point twice": (lambda d, r: (d, np.repeat(r[:, :1], 20, axis=1)), "twice; give each point"),
    "distances of other vectors": (lambda d, r: (d / 10, r), "as given, and at 0"),
    "not sorted": (lambda d, r: (d[:, ::-1], r), "must ascend; sort them"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_neighbours_that_cannot_be_are_refused(corpus, queries, wrong):
    change, said = WRONG[wrong]
    given = change(*density.nearest(queries, corpus, 20))
    found = message(
        lambda: density.parts_of_density(
            queries, corpus, 0.3, approximation=ASKED, neighbours=given
        )
    )
    assert found.startswith("neighbours: ")
    assert said in found


def spoilt(folder, wrong: str) -> None:
    """Files of vectors of which the second is wrong."""
    np.save(folder / "a.npy", vectors(10))
    path, good = folder / "b.npy", vectors(10)
    if wrong == "double":
        np.save(path, good.astype(float))
    elif wrong == "flat":
        np.save(path, good.ravel())
    elif wrong == "fortran":
        np.save(path, np.asfortranarray(good))
    elif wrong == "wider":
        np.save(path, vectors(10, 9))
    elif wrong == "text":
        path.write_text("0.1 0.2")
    elif wrong == "short":
        np.save(path, good)
        path.write_bytes(path.read_bytes()[:-40])
    elif wrong == "infinite":
        good[3, 2] = np.inf
        np.save(path, good)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("double", "b.npy: is float64[10, 8] and must be float32[n, D]"),
        ("flat", "b.npy: is float32[80] and must be"),
        ("fortran", "b.npy: is float32[10, 8] in the order of Fortran and must be"),
        ("wider", "b.npy: has vectors of 9 dimensions, and"),
        ("text", "b.npy: is no .npy file"),
        ("short", "b.npy: ends early; write it again"),
        ("infinite", "b.npy: row 3 has a number that is not finite"),
    ],
)
def test_a_file_that_is_no_shard_is_named(tmp_path, wrong, said):
    spoilt(tmp_path, wrong)
    asked = density.Approximation(k=2, m1=10, m2=2)
    found = message(
        lambda: density.parts_of_density(vectors(3), Shards(tmp_path), 0.5, approximation=asked)
    )
    assert said in found


def test_places_without_vectors_are_named(tmp_path):
    assert "has no .npy files" in message(lambda: Shards(tmp_path))
    assert "a.npy: no such file" in message(lambda: Shards([tmp_path / "a.npy"]))
    np.save(tmp_path / "a.npy", vectors(10)[:0])
    assert "is empty" in message(lambda: Shards(tmp_path))
    shards = shards_of(tmp_path, vectors(10))
    ivf = density.Approximation(k=2, m1=10, m2=2, index="ivf")
    for queries, asked, said in (
        (vectors(3), ivf, "ivf needs a corpus in memory"),
        (vectors(3, 9), density.Approximation(k=2, m1=10, m2=2), "have 9 dimensions, and the"),
    ):
        found = message(
            lambda: density.parts_of_density(queries, shards, 0.5, approximation=asked)  # noqa: B023
        )
        assert said in found


def test_memory_does_not_grow_with_the_corpus(monkeypatch, tmp_path):
    """A corpus of four times the size takes no more; either is larger than the peak."""
    monkeypatch.setattr(distances, "POINTS_AT_ONCE", 256)
    monkeypatch.setattr(algorithm_1, "POINTS_AT_ONCE", 256)
    asked, queries, peaks = density.Approximation(k=10, m1=500, m2=100), vectors(5, 64), []
    for n in (20_000, 80_000):
        folder = tmp_path / str(n)
        folder.mkdir()
        np.save(folder / "a.npy", vectors(n, 64))
        tracemalloc.start()
        density.parts_of_density(queries, Shards(folder), 0.5, approximation=asked)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[0] < 20_000 * 64 * 4 / 2
