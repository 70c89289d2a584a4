"""Nearest neighbours: exact ones in every detail, and the properties of an approximate search."""

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from helpers.experiments import message
from palimpsest import density
from palimpsest.density import neighbours


def points(n=500, width=16, seed=0, kind=np.float64):
    """Normalised vectors, as embeddings are."""
    drawn = np.random.default_rng(seed).normal(size=(n, width))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(kind)


def topics(n, seed, n_topics=40, width=16):
    """Vectors around common centres, as embeddings of texts on the same topics are."""
    chance = np.random.default_rng(seed)
    return points(n_topics, width)[chance.integers(n_topics, size=n)] + 0.7 * points(n, width, seed)


def plain(queries, corpus, k):
    """Distances and rows from differences of vectors; of equal ones, the lower rows."""
    apart = queries[:, None].astype(float) - corpus[None].astype(float)
    squares = np.einsum("qnd,qnd->qn", apart, apart)
    rows = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return np.sqrt(np.take_along_axis(squares, rows, axis=1)), rows


@pytest.mark.parametrize("k", [1, 5, 60, 500])
def test_neighbours_are_those_of_scikit_learn(k):
    corpus, queries = points(), points(30, seed=1)
    queries[::2] = corpus[:300:20]
    peer = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(corpus)
    expected, rows = peer.kneighbors(queries)
    found, own = density.nearest(queries, corpus, k)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert (np.sort(own, axis=1) == np.sort(rows, axis=1)).all()
    assert (found[::2, 0] == 0).all()
    np.testing.assert_allclose(density.mean_distance(queries, corpus, k), found.mean(1))


@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 200),
    width=st.integers(1, 5),
    k=st.integers(1, 200),
    shift=st.sampled_from([0, 3, -1000]),
    single=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_of_equally_near_points_the_first_are_taken(seed, n, width, k, shift, single):
    """Whole numbers have many ties, without any rounding in what is expected."""
    chance = np.random.default_rng(seed)
    kind = np.float32 if single else np.float64
    corpus = (chance.integers(0, 4, (n, width)) + shift).astype(kind)
    queries = (chance.integers(0, 4, (5, width)) + shift).astype(kind)
    found, rows = density.nearest(queries, corpus, min(k, n))
    expected, expected_rows = plain(queries, corpus, min(k, n))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(rows, expected_rows)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_points_that_float32_cannot_tell_apart_are_in_order(monkeypatch, kind):
    """At 1e-4 of their norm from each other, faiss alone gives wrong neighbours."""
    # As for many queries, where faiss computes distances from norms and products.
    monkeypatch.setattr(faiss.cvar, "distance_compute_blas_threshold", 0)
    corpus = points(300, 64)
    corpus[:100] = corpus[0] + 1e-4 * points(100, 64, seed=2) * np.linspace(1, 2, 100)[:, None]
    corpus = corpus.astype(kind)
    queries = corpus[:20]
    index = faiss.IndexFlatL2(64)
    index.add(corpus.astype(np.float32))
    expected, expected_rows = plain(queries, corpus, 10)
    of_faiss = index.search(queries.astype(np.float32), 10)[1]
    assert (np.sort(of_faiss, axis=1) != np.sort(expected_rows, axis=1)).any()
    found, rows = density.nearest(queries, corpus, 10)
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert (found[:, 0] == 0).all()


def test_faiss_is_asked_for_more_only_where_the_neighbours_are_uncertain(monkeypatch):
    asked = []
    search = neighbours.Index._candidates

    def spy(index, queries, width):
        asked.append((len(queries), width))
        return search(index, queries, width)

    monkeypatch.setattr(neighbours.Index, "_candidates", spy)
    corpus = points(1000)
    corpus[500:700] = corpus[0]
    queries = np.concatenate([corpus[:1], points(3, seed=1)])
    _, rows = density.nearest(queries, corpus, 2)
    assert rows[0].tolist() == [0, 500]
    np.testing.assert_array_equal(rows, plain(queries, corpus, 2)[1])
    assert asked == [(4, 34), (1, 136), (1, 544)]


def test_a_query_far_from_the_corpus_has_exact_neighbours():
    """All points are equally near in float32; at 1e25, float32 overflows, and float64 has ties."""
    corpus, queries = points(200), points(3, seed=1)
    for far in (1e6, 1e25):
        found, rows = density.nearest(far * queries, corpus, 5)
        expected, expected_rows = plain(far * queries, corpus, 5)
        np.testing.assert_array_equal(rows, expected_rows)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert rows.tolist() == [[0, 1, 2, 3, 4]] * 3


def test_few_queries_at_once_change_nothing(monkeypatch):
    queries, corpus = topics(30, 2), topics(2000, 1)
    expected = density.nearest(queries, corpus, 50)
    monkeypatch.setattr(neighbours, "FOUND_AT_ONCE", 200)
    monkeypatch.setattr(neighbours, "ROWS_AT_ONCE", 7)
    for one, other in zip(density.nearest(queries, corpus, 50), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_approximate_index_misses_few_and_invents_none(monkeypatch):
    """It finds copies, and its distances are exact; fewer lists find less."""
    queries, corpus = topics(50, 2), topics(4000, 1)
    queries[:10] = corpus[:10]
    expected, rows = density.nearest(queries, corpus, 40)
    shares = []
    for lists in (1, 4, 16):
        monkeypatch.setattr(neighbours, "LISTS_SEARCHED", lists)
        found, own = density.nearest(queries, corpus, 40, density.IVF, seed=3)
        shares.append(np.mean([np.isin(*pair).mean() for pair in zip(rows, own, strict=True)]))
        apart = np.linalg.norm(queries[:, None] - corpus[own], axis=2)
        np.testing.assert_allclose(found, apart, atol=1e-12)
        assert (found >= expected).all()
        assert (found[:10, 0] == 0).all()
        assert (np.diff(found, axis=1) >= 0).all()
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.9


def test_an_approximate_index_follows_its_seed(monkeypatch):
    monkeypatch.setattr(neighbours, "LISTS_SEARCHED", 2)
    queries, corpus = topics(50, 2), topics(4000, 1)
    first, again, other = (
        density.nearest(queries, corpus, 40, density.IVF, seed)[1] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_an_approximate_index_finds_enough(monkeypatch):
    """Where the lists that are searched hold too few points, all lists are."""
    monkeypatch.setattr(neighbours, "LISTS_SEARCHED", 1)
    queries, corpus = topics(20, 2), topics(300, 1)
    found, rows = density.nearest(queries, corpus, 250, density.IVF)
    np.testing.assert_array_equal(rows, plain(queries, corpus, 250)[1])
    assert np.isfinite(found).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [1e18, 1e25, 1e39, 1e90])
@pytest.mark.parametrize("index", density.INDEXES)
def test_a_query_beyond_float32_has_neighbours(far, index):
    """Each point is found once, although the distances that faiss computes are infinite."""
    corpus, queries = points(400), far * points(3, seed=1)
    found, rows = density.nearest(queries, corpus, 5, index)
    assert all(len(set(own)) == 5 and min(own) >= 0 for own in rows.tolist())
    np.testing.assert_allclose(found, far, rtol=1e-9)


@pytest.mark.parametrize("k", [0, -1, 11, 2.5, 2.0, True, None, "3", [1], 10**400], ids=repr)
@pytest.mark.parametrize("function", [density.nearest, density.mean_distance])
def test_a_wrong_number_of_neighbours_is_refused(k, function):
    said = message(lambda: function(points(3), points(10), k))
    assert said.startswith("k: is ")
    expected = "must be a whole number at least 1 and at most 10, the size of the corpus"
    assert said.endswith(expected)


@pytest.mark.parametrize("seed", [-1, None, 1.5, "0", True])
@pytest.mark.parametrize("index", density.INDEXES)
def test_a_wrong_seed_is_refused(seed, index):
    said = message(lambda: density.nearest(points(3), points(10), 1, index, seed))
    assert said == f"seed: is {seed!r} and must be a whole number at least 0"


@pytest.mark.parametrize("index", ["hnsw", None, ["n_copies"]])
def test_an_unknown_index_is_refused(index):
    said = message(lambda: density.nearest(points(3), points(10), 1, index))
    assert said == f"index: {index!r} is unknown; choose from exact, ivf"
