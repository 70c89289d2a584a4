"""Every estimator and score at values that are equal up to rounding, as at equal values.

A computed spread of such values is about 1e-17 and not 0; what is divided by it, or ordered by it,
is noise that looks like a result.
"""

import numpy as np
import pandas as pd
import pytest
import torch

from palimpsest.density.associations import beyond_rank, spearman, spearman_given
from palimpsest.density.leakage_tables import auc as auc_of_support
from palimpsest.density.mixed_models import fit
from palimpsest.density.regressions import standardised
from palimpsest.information import is_degenerate, mutual_information, neuron_entropy, trends
from palimpsest.memorisation import bayes, contextual, counterfactual, recollection
from palimpsest.memorisation.claims.training_set_statistics import _slope
from palimpsest.memorisation.leave_one_out import rank_correlation
from palimpsest.profiles.correlation import pearson
from palimpsest.profiles.panel import NEVER, Panel
from palimpsest.profiles.profile import pooled
from palimpsest.profiles.summaries import correlation_with_truth
from palimpsest.unlearning import (
    epsilon,
    epsilon_lower_bound,
    forgetting_quality,
    joint_attack,
    permutation_null,
)
from palimpsest.unlearning.attacks.attackers import held_out_epsilon
from palimpsest.unlearning.attacks.joint_attacks import standardised as standardised_models
from palimpsest.unlearning.attacks.kolmogorov import ks_distances, ks_p_value
from palimpsest.unlearning.attacks.membership import auc, membership_accuracy, privleak
from palimpsest.unlearning.attacks.three_samples import relative_test
from palimpsest.unlearning.evaluate.gaps import clear_gaps, per_model_shares, string_shares
from palimpsest.unlearning.evaluate.relearning import Relearned, restricted_mean
from palimpsest.unlearning.evaluate.token_scores import _of_tokens
from palimpsest.unlearning.evaluate.variance import split_variance


def nearly(value, *shape, seed=0):
    """The value with rounding errors, which are not the same everywhere."""
    units = np.random.default_rng(seed).integers(-2, 3, shape)
    found = value + units * np.spacing(value)
    assert np.ptp(found) > 0
    return found


def noise(*shape):
    return np.random.default_rng(7).normal(size=shape)


@pytest.fixture(params=[0.3, 1e-12, 7e8, -0.125])
def value(request):
    return request.param


# Unlearning


def test_attacks_do_not_tell_equal_models_apart(value):
    """The cap of 50 would say that every model is told; KS would be 1."""
    one, other = nearly(value, 16, 3), nearly(value, 16, 3, seed=1)
    for thresholds in ("exact", "grid"):
        assert not epsilon(one, other, thresholds=thresholds).any()
    exact = np.full((16, 3), value)
    assert not epsilon(one, exact).any()
    assert not held_out_epsilon(one, other, one, other).any()
    assert not epsilon_lower_bound(one, other).any()
    assert forgetting_quality(epsilon(one, other), 16) == 1
    assert not ks_distances(one, other).any()
    assert ks_p_value(one, other, 99) == 1
    assert joint_attack(one, other) == joint_attack(exact, exact)
    assert not standardised_models(one).any()


def test_two_constants_that_differ_are_told_apart_without_an_error(value):
    one, other = nearly(value, 16, 3), nearly(2 * value, 16, 3, seed=1)
    assert (epsilon(one, other) == 50).all()
    assert (ks_distances(one, other) == 1).all()


def test_a_sample_without_spread_is_not_smoothed(value):
    """An attack is right about all its models, as about exactly equal ones."""
    far = value + abs(value) * (3 + noise(16, 2) / 10)
    exact = np.full((16, 2), value)
    np.testing.assert_array_equal(
        held_out_epsilon(nearly(value, 16, 2), far, nearly(value, 16, 2, seed=1), far),
        held_out_epsilon(exact, far, exact, far),
    )


def test_a_gap_of_rounding_is_no_gap():
    """A share would be divided by it."""
    before, retrained = np.full((8, 2), 0.3), np.full((9, 2), np.nextafter(0.3, 1))
    after = nearly(0.3, 8, 2)
    assert not clear_gaps(before, retrained).any()
    assert np.isnan(string_shares(before, after, retrained).share).all()
    assert np.isnan(per_model_shares(before, after, retrained)).all()


def test_strings_of_equal_losses_are_not_classified(value):
    forget, test = nearly(value, 4, 20), nearly(value, 4, 30, seed=1)
    assert membership_accuracy(forget, test).tolist() == [0.5] * 4
    assert auc(forget, test).tolist() == [0.5] * 4
    assert auc_of_support(forget[0], test[0]) == 0.5


def test_privleak_is_not_relative_to_rounding():
    certain = np.array([1 - 1e-16, 1, 1 - 1e-16])
    assert np.isnan(privleak(np.full(3, 0.5), certain)).all()


def test_equal_models_are_as_far_as_innocent_ones(value):
    one, other, third = (nearly(value, 16, 3, seed=seed) for seed in range(3))
    assert relative_test(one, other, third, 99) == (0, 0, 1)
    # Constants at different distances differ without an error.
    size = abs(value)
    assert relative_test(one + 5 * size, other + size, third, 99).p < 0.05
    assert relative_test(one + size, other + 5 * size, third, 99).p > 0.9


def test_the_unit_of_a_statistic_changes_no_p_value():
    """An absolute tolerance would make all statistics of a small unit equal."""
    one, other = noise(9, 1) + 1, noise(9, 1)[::-1]

    def p_value(unit):
        return permutation_null(one, other, lambda a, b: unit * (a.mean() - b.mean()), 99)[1]

    assert p_value(1e-20) == p_value(1.0) == p_value(1e20)
    assert p_value(1.0) < 0.2


def test_shares_that_are_equal_have_no_variance_to_split(value):
    found = split_variance(nearly(value, 5, 4))
    assert found[:2] == (0, 0)
    assert np.isnan(found[2:]).all()
    of_training = np.arange(5.0)[:, None] * abs(value) + nearly(value, 5, 4)
    assert split_variance(of_training)[1:] == (0, 0, 0, 0)


def test_models_that_relearn_equally_fast_have_no_interval():
    steps = nearly(0.3, 6)
    assert np.isnan(restricted_mean(Relearned(steps, np.full(6, 1.0)))[1:]).all()


def test_an_even_prediction_has_no_standardised_value():
    logits = torch.tensor(nearly(0.3, 4, 1000))
    assert not _of_tokens(logits, torch.zeros(4, dtype=int))[1].any()


# Information


def test_a_neuron_without_spread_is_degenerate(value):
    neurons = np.column_stack([nearly(value, 50), noise(50, 2)])
    for dtype in (np.float32, np.float64):
        activations = neurons.astype(dtype)
        activations[:, 0] = dtype(value) + np.arange(50) % 3 * np.spacing(dtype(value))
        assert is_degenerate(activations).tolist() == [True, False, False]
        assert neuron_entropy(activations)[0] == 0
        assert np.isnan(mutual_information(activations)[0]).all()


def test_trends_over_one_share_are_unknown():
    frame = pd.DataFrame({"model": "m", "size": 4, "seed": 0, "share": nearly(0.3, 9)})
    assert trends.slopes(frame.assign(y=noise(9)), "y").isna().all()
    for association in (trends.pearson, trends.kendall, pearson):
        assert np.isnan(association(nearly(0.3, 9), noise(9)))
        assert np.isnan(association(noise(9), nearly(0.3, 9)))


# Density


def test_ranks_of_equal_values_are_equal(value):
    x, y, z = nearly(value, 20), noise(20), noise(2, 20)[1]
    assert np.isnan(spearman(x, y))
    assert np.isnan(spearman_given(x, y, z))
    assert np.isnan(spearman_given(y, z, x))
    assert not beyond_rank(x, z).any()
    assert np.isnan(rank_correlation(nearly(0.1000000005, 2, 20), noise(2, 20))).all()


def test_regressions_on_or_of_a_constant_are_not_fitted(value):
    groups = {"group": np.arange(40) % 5}
    terms = noise(40, 2)
    constant = np.column_stack([nearly(value, 40), terms[:, 0]])
    assert not standardised(nearly(value, 40)).any()
    for intercepts in ({}, groups):
        assert not fit(terms[:, 0], constant, intercepts).converged
        assert not fit(nearly(value, 40), terms, intercepts).converged
        # An exact line leaves nothing to tell errors from.
        exact = fit(value + 3 * abs(value) * terms[:, 0], terms, intercepts)
        assert not exact.converged
        assert np.isnan(exact.p_values).all()


# Memorisation


def test_a_loss_that_is_below_by_rounding_is_not_below(value):
    loss, without = nearly(abs(value), 5, 9), nearly(abs(value), 5, 9, seed=1)
    assert (loss < without).any()
    for found in (
        counterfactual(loss, without),
        contextual(loss, without),
        bayes(loss, without[0]),
        recollection(loss, abs(value)),
    ):
        assert np.isnan(found.start).all()
        assert not found.score.any()
        assert not found.is_below.any()


def test_a_slope_over_equal_sizes_is_unknown():
    assert np.isnan(_slope(pd.Series(nearly(0.3, 5)), pd.Series(noise(5))))


# Profiles


def test_runs_whose_outcomes_are_equal_do_not_differ():
    """The means of 30 equal outcomes are rounded, each run's in another way."""
    cohorts = np.repeat([2.0, NEVER], [17, 30])
    panels = [Panel(np.arange(4.0), cohorts, np.full((47, 4), k / 72)) for k in (5, 7, 11, 13)]
    assert not pooled(panels).outcome.any()


def test_a_notion_that_is_the_same_for_all_cohorts_has_no_correlation():
    rows = pd.DataFrame({"seed": 0, "model": "m", "specific": noise(9)})
    assert correlation_with_truth(rows.assign(minus_placebo=nearly(0.3, 9))).isna().all()
    assert correlation_with_truth(rows.assign(minus_placebo=rows["specific"])).tolist() == [1]
