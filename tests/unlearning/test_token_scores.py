"""Scores from single tokens: by hand, and against a plain loop."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from palimpsest.training.batches import IGNORED
from palimpsest.unlearning.evaluate import token_scores as module
from palimpsest.unlearning.evaluate.token_scores import token_scores


def logits_of(probabilities):
    """Logits [1, 1, T, V] of predictions given as probabilities [T, V]."""
    return torch.tensor(probabilities, dtype=torch.float64).log()[None, None]


def scores_of(probabilities, targets):
    found = token_scores(logits_of(probabilities), torch.tensor([[targets]]))
    return [float(values[0, 0]) for values in found]


def test_min_k_by_hand():
    """Shi et al. 2024, section 3: of ten tokens, the mean over the two least probable ones."""
    p = [0.9, 0.8, 0.1, 0.7, 0.6, 0.2, 0.9, 0.9, 0.5, 0.3]
    min_k, _, _ = scores_of([[x, 1 - x] for x in p], [0] * 10)
    assert min_k == pytest.approx((math.log(0.1) + math.log(0.2)) / 2)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 1), (5, 1), (9, 1), (10, 2), (14, 2), (15, 3)])
def test_min_k_takes_a_fifth_rounded_down_and_at_least_one(n, k):
    p = np.linspace(0.1, 0.9, n)
    min_k, _, _ = scores_of([[x, 1 - x] for x in p], [0] * n)
    assert min_k == pytest.approx(np.log(p[:k]).mean())


def test_min_k_plus_by_hand():
    """Zhang et al. 2025, section 4: (log p - mu) / sigma, with mu and sigma under p itself.

    p = (3/4, 1/4): mu = log 3/4 - (log 3) / 4 and sigma = (sqrt 3 / 4) log 3, so the probable
    token has (1/4) / (sqrt 3 / 4) = 1 / sqrt 3, and the other one has -sqrt 3.
    """
    assert scores_of([[0.75, 0.25]], [0])[1] == pytest.approx(1 / math.sqrt(3))
    assert scores_of([[0.75, 0.25]], [1])[1] == pytest.approx(-math.sqrt(3))
    # Five tokens: the mean over one, the least.
    assert scores_of([[0.75, 0.25]] * 5, [0, 0, 1, 0, 0])[1] == pytest.approx(-math.sqrt(3))


def test_min_k_plus_of_a_prediction_without_spread_is_0():
    assert scores_of([[0.25] * 4], [2])[1] == 0
    min_k, min_k_plus, last = scores_of([[0.5, 0.5, 0]], [0])
    assert (min_k, min_k_plus, last) == pytest.approx((math.log(0.5), 0, 1))


@pytest.mark.parametrize(
    ("right", "last"), [("1111", 4), ("0111", 3), ("1101", 1), ("1110", 0), ("0000", 0)]
)
def test_right_tokens_at_the_end(right, last):
    targets = [0 if sign == "1" else 1 for sign in right]
    assert scores_of([[0.9, 0.1]] * 4, targets)[2] == last


def plain(logits, targets):
    """The three scores of one string, token by token."""
    log_p, standardised, right = [], [], []
    for row, target in zip(logits, targets, strict=True):
        if target == IGNORED:
            continue
        row = row.astype(float)
        logs = row - (row.max() + math.log(np.exp(row - row.max()).sum()))
        p = np.exp(logs)
        mean = (p * logs).sum()
        log_p.append(logs[target])
        standardised.append((logs[target] - mean) / math.sqrt((p * (logs - mean) ** 2).sum()))
        right.append(logs.argmax() == target)
    if not log_p:
        return 0, 0, 0
    k = max(1, len(log_p) // 5)
    last = 0
    while last < len(right) and right[-1 - last]:
        last += 1
    return np.mean(sorted(log_p)[:k]), np.mean(sorted(standardised)[:k]), last


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 17]), st.sampled_from([1, 7, 2**22]))
def test_scores_are_those_of_a_plain_loop(seed, length, chunk):
    """Padding may be anywhere; the size of the chunks does not matter."""
    chance = np.random.default_rng(seed)
    logits = chance.normal(0, 3, (2, 3, length, 4)).astype(np.float32)
    targets = np.where(chance.random((2, 3, length)) < 0.6, logits.argmax(-1), 1)
    targets[chance.random(targets.shape) < 0.2] = IGNORED
    before, module.CHUNK = module.CHUNK, chunk
    try:
        found = token_scores(torch.from_numpy(logits), torch.from_numpy(targets))
    finally:
        module.CHUNK = before
    assert [values.dtype for values in found] == [torch.float64, torch.float64, torch.int64]
    for m, b in np.ndindex(2, 3):
        expected = plain(logits[m, b], targets[m, b])
        np.testing.assert_allclose([float(v[m, b]) for v in found], expected, atol=1e-12)


def test_padding_and_other_strings_change_nothing():
    chance = np.random.default_rng(0)
    logits = torch.from_numpy(chance.normal(size=(1, 2, 6, 5)))
    targets = torch.from_numpy(chance.integers(0, 5, (1, 2, 6)))
    targets[0, 0, 4:] = IGNORED
    together = token_scores(logits, targets)
    alone = token_scores(logits[:, :1, :4], targets[:, :1, :4])
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one[0, 0], other[0, 0])


def test_a_string_without_tokens_has_zeros():
    found = token_scores(torch.zeros(1, 1, 3, 2), torch.full((1, 1, 3), IGNORED))
    assert [float(values) for values in found] == [0, 0, 0]
