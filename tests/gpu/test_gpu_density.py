"""Nearest neighbours on a GPU. Skipped without CUDA and a build of faiss that uses it."""

import faiss
import numpy as np
import pytest

from palimpsest.density.neighbours import MOST_ON_GPU, Index

pytestmark = pytest.mark.skipif(
    faiss.get_num_gpus() == 0, reason="needs a CUDA GPU and faiss for GPUs"
)


@pytest.mark.parametrize("k", [5, MOST_ON_GPU])
def test_a_gpu_finds_what_a_cpu_finds(k):
    """With copies and near copies; the larger k is more than a GPU can find at once."""
    chance = np.random.default_rng(0)
    corpus = chance.normal(size=(20_000, 64)).astype(np.float32)
    corpus[:50] = corpus[0] + 1e-4 * chance.normal(size=(50, 64))
    index = Index(corpus)
    assert index.on_gpu is not None
    found = index.search(corpus[::400], k)
    index.on_gpu = None
    for one, other in zip(found, index.search(corpus[::400], k), strict=True):
        np.testing.assert_array_equal(one, other)
