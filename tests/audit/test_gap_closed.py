"""The share of the gap closed, from one model of each kind on: by hand, and in simulated worlds."""

import numpy as np
import pytest

from helpers.gap_worlds import SHARE, gap_world
from palimpsest.audit.checkpoints.closed import share_closed
from palimpsest.audit.checkpoints.grouped import grouped_mean
from palimpsest.statistics import student
from palimpsest.unlearning import pooled_share
from palimpsest.unlearning.evaluate.gaps import Losses

N = 40
ALL = np.ones(N, dtype=bool)
ALONE = np.arange(N).astype(str)
WORLDS = 400


def test_a_share_is_a_ratio_of_means():
    model, original, retrained = np.full(N, 1.5), np.full((1, N), 1.0), np.full((1, N), 3.0)
    model[0], retrained[0, 0] = 5.0, 9.0
    share = share_closed(model, original, retrained, ALL, ALL, ALONE)
    assert share.mean == pytest.approx((39 * 0.5 + 4) / (39 * 2 + 8))
    assert share.lower < share.mean < share.upper


def test_controls_are_0_and_1_by_construction():
    chance = np.random.default_rng(0)
    _, original, retrained, group = gap_world(chance)
    assert share_closed(original[0], original, retrained, ALL, ALL, group) == (0, 0, 0)
    found = share_closed(retrained[0], original, retrained, ALL, ALL, group)
    np.testing.assert_allclose(found, (1, 1, 1))


def test_other_records_are_put_over_the_gap_of_the_forget_records():
    chance = np.random.default_rng(1)
    forget = np.arange(N) < N // 2
    model, original, retrained, group = gap_world(chance)
    found = share_closed(model, original, retrained, forget, ~forget, group)
    rise = (model - original[0])[~forget].mean()
    assert found.mean == pytest.approx(rise / (retrained[0] - original[0])[forget].mean())


def test_without_a_clear_gap_there_is_no_share():
    chance = np.random.default_rng(2)
    model, original, _, group = gap_world(chance)
    same = original + chance.normal(0, 0.1, original.shape)
    assert np.isnan(share_closed(model, original, same, ALL, ALL, group)).all()
    assert np.isnan(share_closed(model, original, original - 1, ALL, ALL, group)).all()
    one_group = np.zeros(N)
    assert np.isnan(share_closed(model, original, original + 1, ALL, ALL, one_group)).all()


@pytest.mark.parametrize(("n_original", "n_retrained"), [(1, 1), (1, 4), (4, 4)])
@pytest.mark.parametrize("same", [True, False], ids=["forget records", "other records"])
def test_intervals_hold_the_truth_in_95_of_100_worlds(n_original, n_retrained, same):
    """Over groups of records, and over originals and retrained models where there are several."""
    chance = np.random.default_rng(3)
    forget = ALL if same else np.arange(N) % 20 < 10
    missed = 0
    for _ in range(WORLDS):
        model, originals, retrained, group = gap_world(chance, n_original, n_retrained)
        share = share_closed(model, originals, retrained, forget, ALL if same else ~forget, group)
        missed += not share.lower <= SHARE <= share.upper
    assert 0.02 <= missed / WORLDS <= 0.08


def test_two_models_of_each_kind_agree_with_the_pooled_share():
    """Where every gap is clear, both are the same ratio."""
    chance = np.random.default_rng(4)
    unlearned = np.stack([gap_world(chance)[0] for _ in range(3)])
    _, originals, retrained, group = gap_world(chance, 3, 3)
    retrained = retrained - retrained.mean(axis=0) + 4
    shares = [share_closed(one, originals, retrained, ALL, ALL, group)[0] for one in unlearned]
    pooled = pooled_share([Losses(originals, unlearned, retrained)])
    assert np.mean(shares) == pytest.approx(pooled.mean)


def test_a_mean_over_groups_of_one_record_is_students():
    values = np.random.default_rng(5).normal(size=N)
    np.testing.assert_allclose(grouped_mean(values, ALONE), student(values))
    assert np.isnan(grouped_mean(values, np.zeros(N))[1:]).all()
    assert np.isnan(grouped_mean(np.ones(N), ALONE)[1:]).all()
