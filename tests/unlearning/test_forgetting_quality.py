"""What must hold of forgetting quality and of the final score."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from palimpsest import unlearning
from palimpsest.unlearning.attacks.quality import final_score, points

EPSILONS = arrays.arrays(float, st.integers(1, 20), elements=st.floats(0, 60))


def test_points_halve_from_bin_to_bin():
    """2 / 2^n with n from 1; 512 models score up to ceil(ln 511) = ceil(6.24) = 7."""
    epsilons = [0, 0.49, 0.5, 0.99, 1, 3.25, 6.5, 6.99, 7, 50, np.inf]
    expected = [1, 1, 1 / 2, 1 / 2, 1 / 4, 1 / 64, 1 / 2**13, 1 / 2**13, 0, 0, 0]
    np.testing.assert_array_equal(points(epsilons, 512), expected)


@pytest.mark.parametrize(
    ("n_models", "most"),
    # ln 1 = 0, ln 2 = 0.69, ln 15 = 2.71, ln 20 = 2.996, ln 21 = 3.04, ln 1023 = 6.93
    [(2, 0), (3, 1), (16, 3), (21, 3), (22, 4), (1024, 7)],
)
def test_there_are_no_points_from_the_logarithm_of_the_number_of_models_up(n_models, most):
    steps = np.arange(0, 10, 0.25)
    got = points(steps, n_models)
    assert (got[steps < most] > 0).all()
    assert (got[steps >= most] == 0).all()


def test_forgetting_quality_by_hand():
    """Four examples give 1, 1/2, 1/8 and 0; their mean is 13/32."""
    assert unlearning.forgetting_quality([0.1, 0.7, 1.9, 50], 64) == 13 / 32
    # Bins of 1: 1, 1, 1/2 and none.
    assert unlearning.forgetting_quality([0.1, 0.7, 1.9, 50], 64, 1.0) == 2.5 / 4
    # ceil(ln 3) = 2: no points for 2.4.
    assert unlearning.forgetting_quality([0.0, 2.4], 4) == 0.5
    assert unlearning.forgetting_quality([0.0, 2.4], 64) == (1 + 1 / 16) / 2


@given(epsilons=EPSILONS, more=st.floats(0, 5), n_models=st.integers(2, 2000))
def test_more_epsilon_is_never_more_quality(epsilons, more, n_models):
    quality = unlearning.forgetting_quality(epsilons, n_models)
    assert 0 <= unlearning.forgetting_quality(epsilons + more, n_models) <= quality <= 1
    assert quality <= unlearning.forgetting_quality(epsilons, n_models + 1)


def test_quality_is_1_where_no_attack_works_and_0_where_all_do():
    assert unlearning.forgetting_quality(np.zeros(5), 64) == 1
    assert unlearning.forgetting_quality(np.full(5, 50.0), 64) == 0


def test_final_score_by_probability_sees_what_accuracy_does_not():
    """Equation 2 with TOFU's probabilities: all tokens are right, at half of the probability."""
    assert final_score(0.5, 1, 1, 1, 1) == 0.5
    assert final_score(0.5, 0.4, 0.8, 0.3, 0.6) == pytest.approx(0.125)


def test_final_score_by_hand():
    assert final_score(0.5, 0.9, 1.0, 0.4, 0.8) == pytest.approx(0.5 * 0.9 * 0.5)
    # More accurate than retrained models: above the forgetting quality, as in equation 2.
    assert final_score(0.5, 1.0, 0.8, 0.8, 0.8) == pytest.approx(0.625)
    assert final_score(1, 0, 1, 1, 1) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: points([-0.1], 64), "0 or more"),
        (lambda: points([np.nan], 64), "NaN"),
        (lambda: points([0.1], 1), "n_models: is 1 .* at least 2, the models of each kind"),
        (lambda: points([0.1], 64, 0), "bin_width"),
        (lambda: points([0.1], 64, np.nan), "bin_width"),
        (lambda: unlearning.forgetting_quality([], 64), "at least one example"),
        (lambda: final_score(1.1, 1, 1, 1, 1), "quality must be 0 or more"),
        (lambda: final_score(1, -0.1, 1, 1, 1), "^retain_accuracy must be 0 or more"),
        (lambda: final_score(1, 1, 0, 1, 1), "retain_accuracy_retrained must be above 0"),
        (lambda: final_score(1, 1, 1, np.nan, 1), "^test_accuracy must be"),
        (lambda: final_score(1, 1, 1, 1, 0), "test_accuracy_retrained must be above 0"),
    ],
)
def test_errors_say_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_last_bit_of_an_epsilon_at_the_edge_of_a_bin_decides_nothing():
    """The edge belongs to the upper bin."""
    for edge, width in ((1.5, 0.5), (0.3, 0.1), (0.6, 0.1), (0.7, 0.1)):
        near = [np.nextafter(edge, 0), edge, np.nextafter(edge, 1e3), width * round(edge / width)]
        expected = 2.0 ** -round(edge / width)
        np.testing.assert_array_equal(points(near, 10_000, width), expected)
    assert points([1.4999], 10_000, 0.5) == 0.25
