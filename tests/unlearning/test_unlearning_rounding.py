"""Rounding of weights to 4 bits, against values worked out by hand."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.unlearning.run.rounding import GROUP, rounded_to_4_bits


def test_a_group_is_rounded_to_the_nearest_of_15_levels():
    """The largest is 7, so the levels are the whole numbers from -7 to 7; halves become even."""
    weight = torch.tensor([[7.0, -3.2, 0.4, 0.5, 1.5, -6.9]])
    assert rounded_to_4_bits(weight).tolist() == [[7.0, -3.0, 0.0, 0.0, 2.0, -7.0]]


def test_rows_and_groups_of_64_have_their_own_scales():
    """A small value is lost beside a large one, and kept in another row or group."""
    weight = torch.zeros(2, GROUP + 2)
    weight[0, 0], weight[0, 1], weight[0, GROUP], weight[1, 1] = 14.0, 0.5, 0.5, 0.5
    found = rounded_to_4_bits(weight)
    assert found[0, 0] == 14
    assert found[0, 1] == 0
    assert found[0, GROUP] == found[1, 1] == 0.5
    assert found[0, GROUP + 1] == 0


def test_models_are_rounded_one_by_one():
    weights = torch.randn(3, 8, 100, generator=torch.Generator().manual_seed(0))
    found = rounded_to_4_bits(weights)
    for one, rounded in zip(weights, found, strict=True):
        assert torch.equal(rounded_to_4_bits(one), rounded)
    assert not torch.equal(found, weights)


def test_zeros_stay():
    assert rounded_to_4_bits(torch.zeros(2, 3)).tolist() == [[0.0] * 3] * 2


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=150))
def test_no_value_moves_by_more_than_half_a_level(values):
    weight = torch.tensor([values], dtype=torch.float64) / 1000
    found = rounded_to_4_bits(weight)
    for part, rounded in zip(weight.split(GROUP, 1), found.split(GROUP, 1), strict=True):
        level = part.abs().max() / 7
        assert (part - rounded).abs().max() <= level / 2 * (1 + 1e-9)
        assert len(np.unique(rounded)) <= 15
