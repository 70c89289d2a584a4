"""Extraction of forget strings, by hand and against a plain search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.unlearning.evaluate.extraction import (
    extracted_from_half,
    extraction_strength,
    leak_at,
)


@pytest.mark.parametrize(
    ("n_tokens", "last", "extracted"),
    [(10, 5, True), (10, 4, False), (7, 4, True), (7, 3, False), (1, 1, True), (1, 0, False)],
)
def test_extraction_from_the_first_half_by_hand(n_tokens, last, extracted):
    """Carlini et al. 2023, definition 3.1: of 7 tokens, 3 are the prefix and 4 must follow."""
    found = extracted_from_half(np.array([[last]]), np.array([n_tokens]))
    assert found.tolist() == [[extracted]]


@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_extraction_strength_is_its_definition(right):
    """1 - min{k : all tokens after the first k follow} / T, with k = T if none does."""
    n = len(right)
    shortest = next(k for k in range(n + 1) if all(right[k:]))
    last = n - shortest
    found = extraction_strength(np.array([last]), np.array([n]))
    assert found == pytest.approx(1 - shortest / n)


def test_leak_by_hand():
    """Strings of probability 1/2 and 1/4: among 2 samples with 3/4 and 7/16."""
    nll = np.log([[2.0, 4.0]])
    assert leak_at(1, nll) == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert leak_at(2, nll) == pytest.approx((3 / 4 + 7 / 16) / 2)


def test_leak_of_certain_and_of_rare_strings():
    assert leak_at(1, np.array([[0.0, -1e-16]])) == 1
    # About k p where 1 - p is 1 in floating point.
    assert leak_at(100, np.array([[90.0]])) == pytest.approx(100 * np.exp(-90), rel=1e-12)


def test_leak_is_what_samples_give():
    chance = np.random.default_rng(0)
    p = np.array([0.02, 0.01])
    drawn = chance.random((20_000, 100, 2)) < p
    assert leak_at(100, -np.log(p)[None]) == pytest.approx(drawn.any(1).mean(), abs=0.01)
