"""Kernel density estimates, exact and approximate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import chisquare
from sklearn.neighbors import KernelDensity

from helpers.experiments import message
from palimpsest import density
from palimpsest.density import algorithm_1, distances, neighbours
from palimpsest.density.algorithm_1 import log_parts_of_densities

KERNELS = ["gaussian", "exponential"]


def points(n=500, width=16, seed=0, kind=np.float64):
    """Normalised vectors, as embeddings are."""
    drawn = np.random.default_rng(seed).normal(size=(n, width))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(kind)


def with_copies(n=30, width=16):
    """Queries; every second one is a point of the corpus."""
    corpus, queries = points(width=width), points(n, width, seed=1)
    queries[::2] = corpus[:: len(corpus) // len(queries[::2])][: len(queries[::2])]
    return queries, corpus


def plain(queries, corpus, bandwidth, kernel):
    """The log density from differences of vectors, without any matrix product."""
    apart = np.linalg.norm(queries[:, None].astype(float) - corpus[None].astype(float), axis=2)
    log_kernel = -(apart**2) / (2 * bandwidth**2) if kernel == "gaussian" else -apart / bandwidth
    return logsumexp(log_kernel, axis=1) - np.log(len(corpus))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", [0.01, 0.1, 0.5, 3.0])
def test_the_exact_density_is_the_mean_of_the_kernel(kernel, bandwidth):
    """With copies, where a difference of squares would lose everything."""
    queries, corpus = with_copies()
    expected = plain(queries, corpus, bandwidth, kernel)
    found = density.log_kernel_density(queries, corpus, bandwidth, kernel)
    np.testing.assert_allclose(found, expected, atol=1e-9, rtol=0)
    np.testing.assert_allclose(
        density.kernel_density(queries, corpus, bandwidth, kernel), np.exp(expected), rtol=1e-9
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_it_is_that_of_scikit_learn_without_the_constant(kernel):
    queries, corpus = with_copies()
    peer = KernelDensity(bandwidth=0.3, kernel=kernel).fit(corpus).score_samples(queries)
    constant = KernelDensity(bandwidth=0.3, kernel=kernel).fit(np.zeros((1, 16)))
    expected = peer - constant.score_samples(np.zeros((1, 16)))
    found = density.log_kernel_density(queries, corpus, 0.3, kernel)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_float32_is_near(kernel):
    queries, corpus = with_copies()
    single = density.kernel_density(*(v.astype(np.float32) for v in (queries, corpus)), 0.2, kernel)
    double = density.kernel_density(queries, corpus, 0.2, kernel)
    np.testing.assert_allclose(single, double, rtol=1e-3)


def test_a_density_that_is_too_small_has_a_log():
    queries, corpus = points(5, seed=1), points()
    assert (density.kernel_density(queries, corpus, 0.001) == 0).all()
    found = density.log_kernel_density(queries, corpus, 0.001)
    np.testing.assert_allclose(found, plain(queries, corpus, 0.001, "gaussian"), rtol=1e-9)


@given(
    seed=st.integers(0, 1000),
    shift=st.floats(-100, 100),
    bandwidth=st.floats(0.05, 5),
    kernel=st.sampled_from(KERNELS),
)
@settings(max_examples=30)
def test_only_distances_matter(seed, shift, bandwidth, kernel):
    """All vectors may be moved, and the corpus may be in any order."""
    queries, corpus = points(4, 6, seed), points(40, 6, seed + 1)
    found = density.log_kernel_density(queries, corpus, bandwidth, kernel)
    order = np.random.default_rng(seed).permutation(len(corpus))
    moved = density.log_kernel_density(queries + shift, corpus[order] + shift, bandwidth, kernel)
    np.testing.assert_allclose(found, moved, atol=1e-7)
    assert (found <= 1e-12).all()


@pytest.mark.parametrize("size", [(1, 1), (3, 7), (64, 500)])
def test_blocks_change_nothing(monkeypatch, size):
    """Their size decides the memory, and not the result."""
    queries, corpus = with_copies()
    expected = density.log_kernel_density(queries, corpus, 0.2)
    monkeypatch.setattr(distances, "QUERIES_AT_ONCE", size[0])
    monkeypatch.setattr(distances, "POINTS_AT_ONCE", size[1])
    np.testing.assert_allclose(
        density.log_kernel_density(queries, corpus, 0.2), expected, atol=1e-12
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("index", density.INDEXES)
def test_the_approximation_is_unbiased(monkeypatch, kernel, index):
    """The mean over many samples is the exact density; a single one is off.

    It is so also with an index that misses most neighbours, and is another one for each seed.
    """
    monkeypatch.setattr(neighbours, "LISTS_SEARCHED", 1)
    queries, corpus = with_copies(6)
    if index == density.IVF:
        missed = (
            density.nearest(queries, corpus, 20, index)[0] > density.nearest(queries, corpus, 20)[0]
        )
        assert missed.mean() > 0.5
    exact = density.kernel_density(queries, corpus, 0.5, kernel)
    drawn = np.array(
        [
            density.kernel_density(
                queries, corpus, 0.5, kernel, density.Approximation(20, 200, 40, seed, index)
            )
            for seed in range(300)
        ]
    )
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert (error > 0).all()
    assert (np.abs(drawn.mean(axis=0) - exact) < 4 * error).all()


def test_the_printed_algorithm_by_hand():
    """Points at 0, 1, 2 and 4, and the query at 0, with a bandwidth of 1.

    Of the two points that are no neighbours, every first sample of three holds at least one. So the
    random part is the kernel at 2 or at 4, each for half of the seeds.
    """
    corpus, query = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([[0.0]])
    at = {"gaussian": np.exp([0, -0.5, -2, -8]), "exponential": np.exp([0.0, -1, -2, -4])}
    for kernel, values in at.items():
        drawn = []
        for seed in range(200):
            asked = density.Approximation(k=2, m1=3, m2=1, seed=seed)
            local, random, combined = density.parts_of_density(query, corpus, 1.0, kernel, asked)
            np.testing.assert_allclose(local, values[:2].mean(), rtol=1e-12)
            np.testing.assert_allclose(combined, 2 / 4 * local + (4 - 2) / 4 * random, rtol=1e-12)
            drawn.append(random[0])
        is_near = np.isclose(drawn, values[2], rtol=1e-12)
        assert (is_near | np.isclose(drawn, values[3], rtol=1e-12)).all()
        assert 70 < is_near.sum() < 130


def test_queries_are_dealt_to_all_windows_of_the_first_sample():
    """Of one first sample, which has 100 of the 500 points: five samples of 20."""
    _, corpus = with_copies()
    queries = np.repeat(corpus[:1], 50, axis=0)
    asked = density.Approximation(k=20, m1=100, m2=20)
    local, random, _ = density.parts_of_density(queries, corpus, 0.5, "gaussian", asked)
    assert len(np.unique(local)) == 1
    assert len(np.unique(random)) == 5


def sampled(queries, n, asked) -> np.ndarray:
    """The points int[Q, m2] in the samples of queries; the points are the numbers 0 to n - 1."""
    found = []

    def spy(squares, *_):
        found.append(np.rint(np.sqrt(squares)).astype(int))
        return squares

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(algorithm_1, "log_kernel_at", spy)
        corpus = np.arange(n, dtype=float)[:, None]
        read = algorithm_1.read_once(
            queries,
            algorithm_1.InMemory(corpus),
            rows := algorithm_1.first_sample(asked, n),
            asked.k,
        )
        algorithm_1.log_random_parts(
            queries, read.nearest.rows, [("gaussian", 1.0)], asked, rows, read.sample
        )
    return np.concatenate(found)


@given(n=st.integers(5, 60), seed=st.integers(0, 1000), data=st.data())
def test_a_sample_has_no_point_twice_and_no_neighbour(n, seed, data):
    """All queries are at 0, so that their neighbours are the points 0 to k - 1."""
    k = data.draw(st.integers(1, n - 2))
    m1 = data.draw(st.integers(k + 1, n))
    m2 = data.draw(st.integers(1, m1 - k))
    drawn = sampled(np.zeros((7, 1)), n, density.Approximation(k, m1, m2, seed))
    assert drawn.shape == (7, m2)
    assert all(len(set(row)) == m2 for row in drawn)
    assert drawn.min() >= k
    assert drawn.max() < n


def test_a_sample_has_each_other_point_equally_often():
    drawn = [
        sampled(np.zeros((1, 1)), 10, density.Approximation(3, 8, 4, seed)) for seed in range(2000)
    ]
    counts = np.bincount(np.concatenate(drawn).ravel(), minlength=10)
    assert (counts[:3] == 0).all()
    assert chisquare(counts[3:]).pvalue > 0.001


def test_the_parts_are_added_up_by_their_sizes():
    """With everything in the sample, the combination is exact, and local above random."""
    queries, corpus = with_copies()
    asked = density.Approximation(k=20, m1=500, m2=480)
    local, random, combined = density.parts_of_density(queries, corpus, 0.3, "gaussian", asked)
    np.testing.assert_allclose(combined, (20 * local + 480 * random) / 500, rtol=1e-12)
    np.testing.assert_allclose(combined, density.kernel_density(queries, corpus, 0.3), rtol=1e-9)
    assert (local > random).all()


def test_the_parts_of_a_density_that_is_too_small_for_a_number_have_logs():
    """Far from all points, they are those of the exact density."""
    queries, corpus = with_copies()
    asked = density.Approximation(k=20, m1=500, m2=480)
    settings = [("gaussian", 0.02), ("exponential", 0.0005)]
    for (kernel, bandwidth), found in zip(
        settings, log_parts_of_densities(queries + 9, corpus, settings, asked), strict=True
    ):
        exact = density.log_kernel_density(queries + 9, corpus, bandwidth, kernel)
        assert (exact < -10000).all()
        np.testing.assert_allclose(found.combined, exact, rtol=1e-9)
        # The nearest neighbour decides alone.
        np.testing.assert_allclose(found.local, exact + np.log(500 / 20), rtol=1e-9)
        assert (found.random < found.local).all()
        assert np.isfinite(found.random).all()


QUERIES, POINTS = points(3), points(10)
TABLES = {
    "an empty corpus": (QUERIES, POINTS[:0], "corpus: is empty; there is nothing to compare"),
    "an empty list": (QUERIES, [], "corpus: is empty"),
    "no queries": (QUERIES[:0], POINTS, "queries: is empty"),
    "no dimensions": (QUERIES[:, :0], POINTS[:, :0], "queries: have 0 dimensions"),
    "a vector without numbers": ([[]], POINTS, "queries: have 0 dimensions"),
    "one vector": (QUERIES[0], POINTS, "queries: has 1 axes and must have two axes"),
    "None": (None, POINTS, "queries: is of type NoneType and must have two axes"),
    "a generator": (QUERIES, iter(POINTS), "corpus: is of type "),
    "two widths": (
        points(3, 8),
        POINTS,
        "queries: have 8 dimensions, and the corpus 16; embed both with one model",
    ),
    "two widths in a list": (
        [[1.0, 2.0], [1.0, 2.0], [1.0]],
        POINTS,
        "queries: row 2 has 1 dimensions, and row 1 2; embed all texts with one model",
    ),
    "None for a vector": (
        QUERIES,
        [[1.0, 2.0], None],
        "corpus: row 1 is None, which is no vector; embed it again",
    ),
    "None in a vector": (
        QUERIES,
        [[1.0, 2.0], [1.0, None]],
        "corpus: row 1 has None, which is no number; embed it again",
    ),
    "text in a vector": ([["1.0", "2"]], POINTS, "queries: row 0 has '1.0', which is no number"),
    "complex numbers": (QUERIES + 1j, POINTS, "queries: row 0 has ("),
    "NaN": (
        QUERIES,
        np.where(np.arange(10)[:, None] == 4, np.nan, POINTS),
        "corpus: row 4 has a number that is not finite; embed it again",
    ),
    "infinity": (-np.inf * QUERIES, POINTS, "queries: row 0 has a number that is not finite"),
    "too large": (
        QUERIES,
        np.where(np.arange(10)[:, None] == 4, -1e200, POINTS),
        "corpus: row 4 has -1e+200, and numbers are at most 1e+100 in float64; divide all vectors",
    ),
    "too large for float32": (
        np.full((1, 16), 1e30, np.float32),
        POINTS.astype(np.float32),
        "queries: row 0 has 1e+30, and numbers are at most 1e+06 in float32; divide all vectors",
    ),
}
WIDTHS = "and must be a number at least 1e-09 and at most 1e+100"
BANDWIDTHS = (0, -1.0, np.nan, np.inf, 1e308, 1e-200, 10**400, "0.5", True, None, [0.5], 1j)
KERNELS_ALIKE = (None, "box", "Gaussian", ["gaussian"], np.array(["gaussian", "box"]))
SIZES = {
    "k of a half": ({"k": 2.5}, "k: is 2.5 and must be a whole number at least 1"),
    "k of True": ({"k": True}, "k: is True and must be a whole number at least 1"),
    "k of None": ({"k": None}, "k: is None and must be a whole number at least 1"),
    "k of 0": ({"k": 0}, "k: is 0 and must be a whole number at least 1"),
    "k below 0": ({"k": -1}, "k: is -1 and must be a whole number at least 1"),
    "m1 of text": ({"m1": "8"}, "m1: is '8' and must be a whole number at least 1"),
    "m2 of a half": ({"m2": 2.5}, "m2: is 2.5 and must be a whole number at least 1"),
    "m2 of 0": ({"m2": 0}, "m2: is 0 and must be a whole number at least 1"),
    "a seed below 0": ({"seed": -1}, "seed: is -1 and must be a whole number at least 0"),
    "no seed": ({"seed": None}, "seed: is None and must be a whole number at least 0"),
    "an unknown index": ({"index": "hnsw"}, "index: 'hnsw' is unknown; choose from exact, ivf"),
    "as many neighbours as points": (
        {"k": 10},
        "k: is 10 and must be below 10, the size of the corpus",
    ),
    "a sample that is too large": (
        {"m2": 6},
        "m2: is 6 and must be at most 5: the sample of a query is drawn from the first sample of "
        "8 points, without 3 neighbours; lower it",
    ),
}
FUNCTIONS = {
    "exact": density.kernel_density,
    "log": density.log_kernel_density,
    "parts": lambda *given: density.parts_of_density(*given, "gaussian", small()),
    "nearest": lambda queries, corpus, _: density.nearest(queries, corpus, 1),
    "others": lambda queries, corpus, h: density.log_density_of_others(corpus, h),
}


def small(**changes):
    """Sizes that ten points have, with changes."""
    return density.Approximation(**{"k": 3, "m1": 8, "m2": 2, **changes})


@pytest.mark.parametrize("function", ["exact", "log", "parts", "nearest"])
@pytest.mark.parametrize("mistake", TABLES)
def test_what_is_no_table_is_refused(mistake, function):
    *given, expected = TABLES[mistake]
    assert message(lambda: FUNCTIONS[function](*given, 1.0)).startswith(expected)


@pytest.mark.parametrize("function", ["exact", "log", "parts", "others"])
@pytest.mark.parametrize("bandwidth", BANDWIDTHS, ids=lambda value: repr(value)[:8])
def test_a_bandwidth_that_is_none_is_refused(bandwidth, function):
    said = message(lambda: FUNCTIONS[function](QUERIES, POINTS, bandwidth))
    assert said.startswith("bandwidth: is ")
    assert said.endswith(WIDTHS)


@pytest.mark.parametrize("kernel", KERNELS_ALIKE, ids=repr)
def test_an_unknown_kernel_is_refused(kernel):
    said = message(lambda: density.kernel_density(QUERIES, POINTS, 1.0, kernel))
    assert said.startswith("kernel: ")
    assert said.endswith(" is unknown; choose from gaussian, exponential")


@pytest.mark.parametrize("mistake", SIZES)
def test_sizes_that_are_none_are_refused(mistake):
    changes, expected = SIZES[mistake]
    said = message(
        lambda: density.kernel_density(QUERIES, POINTS, 1.0, approximation=small(**changes))
    )
    assert said == expected


@pytest.mark.parametrize("asked", [{"k": 3}, 3, 0, "n_copies"])
def test_an_approximation_of_another_type_is_refused(asked):
    said = message(lambda: density.kernel_density(QUERIES, POINTS, 1.0, approximation=asked))
    assert said.startswith(f"approximation: is {asked!r} and must be an Approximation")


@pytest.mark.parametrize(
    ("points_of_one", "expected"),
    [([], "points: is empty"), (POINTS[:1], "points: has one point only")],
)
def test_a_point_without_others_is_refused(points_of_one, expected):
    assert message(lambda: density.log_density_of_others(points_of_one, 1.0)).startswith(expected)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("kind", "largest"), [(np.float32, 1e6), (np.float64, 1e100)])
def test_the_largest_numbers_have_densities(kernel, kind, largest):
    """At the narrowest and the widest bandwidth, without NaN and without a warning."""
    ends = largest * np.array([[1.0] * 16, [-1.0] * 16])
    queries, corpus = ends.astype(kind), np.concatenate([ends, 0.5 * ends]).astype(kind)
    for bandwidth in (1e-9, 1.0, 1e100):
        found = density.log_kernel_density(queries, corpus, bandwidth, kernel)
        assert np.isfinite(found).all()
        others = density.log_density_of_others(corpus, bandwidth, kernel)
        assert np.isfinite(others).all()
    np.testing.assert_allclose(found, 0, atol=10)
    found, rows = density.nearest(queries, corpus, 2)
    assert rows.tolist() == [[0, 2], [1, 3]]
    assert (found[:, 0] == 0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("of", [np.float16, np.float32, np.int64, bool, object])
def test_other_types_of_numbers_are_taken(of):
    """Also numbers of NumPy in the place of Python's own."""
    queries, corpus = (np.arange(12).reshape(3, 4) % n == 0 for n in (2, 3))
    expected = density.kernel_density(queries.astype(float), corpus.astype(float), 0.5)
    found = density.kernel_density(queries.astype(of), corpus.astype(of), np.float32(0.5))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert density.mean_distance(queries.astype(of), corpus.astype(of), np.int64(2)).shape == (3,)
