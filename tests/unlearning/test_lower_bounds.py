"""Lower bounds of epsilon, against public auditing code and in simulated worlds."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from palimpsest.errors import Notice
from palimpsest.statistics import upper_bound
from palimpsest.unlearning import epsilon_lower_bound
from palimpsest.unlearning.attacks.lower_bounds import bound_of_errors

DELTA = 1e-5
WRONG = 0.05

# False positives of n, false negatives of n, delta, and the bound that jax_privacy 2.0.0 gives:
# CanaryScoreAuditor.epsilon_clopper_pearson(0.05, delta, one_sided=False) at a fixed threshold.
BY_JAX_PRIVACY = [
    (0, 32, 0, 32, 1e-5, 2.102209555673507),
    (0, 128, 0, 128, 1e-5, 3.5322529388832304),
    (1, 32, 3, 32, 1e-5, 1.5311059241653864),
    (5, 128, 2, 100, 1e-5, 2.5607815744671183),
    (10, 512, 40, 512, 1e-3, 3.222817826610854),
    (12, 32, 9, 32, 1e-5, 0.0),
    (0, 64, 20, 64, 0.0, 2.30136086272114),
]


@pytest.mark.parametrize(("fp", "n", "fn", "m", "delta", "expected"), BY_JAX_PRIVACY)
def test_the_bound_of_a_fixed_attack_is_that_of_public_auditing_code(fp, n, fn, m, delta, expected):
    assert bound_of_errors(fp, fn, n, m, delta) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("errors", "n"), [(0, 7), (3, 7), (6, 7), (7, 7)])
def test_the_bound_of_a_rate_is_scipys(errors, n):
    interval = binomtest(errors, n).proportion_ci(0.95, "exact")
    assert upper_bound(errors, n, 0.025) == pytest.approx(interval.high)


# Samples whose true epsilon is known


def steps(chance, n_models, n_examples, share):
    """Values in [0, 2]: unlearned above 1 with probability `share`, retrained below 1.

    Inside [0, 1] and [1, 2] values are uniform, so no attack is better than the threshold 1.
    """
    high = chance.random((2, n_models, n_examples)) < np.array([share, 1 - share])[:, None, None]
    return tuple(high + chance.random((2, n_models, n_examples)))


def epsilon_of_gaussians(shift, scale):
    """Epsilon of normal values against standard normal ones, over many intervals."""
    ends = np.concatenate([[-np.inf], np.linspace(-8, 8, 400), [np.inf]])
    masses = [np.diff(norm.cdf((ends - at) / by)) for at, by in ((shift, scale), (0, 1))]
    below = [np.concatenate([[0], np.cumsum(mass)]) for mass in masses]
    one, other = (np.abs(x[:, None] - x) for x in below)
    best = 0.0
    for x, y in ((one, other), (other, one), (1 - one, 1 - other), (1 - other, 1 - one)):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log((x - DELTA) / y)
        best = max(best, np.nanmax(ratios[(x > DELTA) & (y > 1e-12)]))
    return best


def gaussians(chance, n_models, n_examples, shift, scale):
    one, other = chance.normal(size=(2, n_models, n_examples))
    return shift + scale * one, other


def heavy_tails(chance, n_models, n_examples):
    return tuple(chance.standard_t(2, size=(2, n_models, n_examples)))


WORLDS = {
    "equal": (lambda *of: gaussians(*of, 0, 1), 0.0),
    "heavy tails, equal": (heavy_tails, 0.0),
    "steps of 60 %": (lambda *of: steps(*of, 0.6), np.log((0.6 - DELTA) / 0.4)),
    "steps of 75 %": (lambda *of: steps(*of, 0.75), np.log((0.75 - DELTA) / 0.25)),
    "shifted": (lambda *of: gaussians(*of, 1, 1), epsilon_of_gaussians(1, 1)),
    "narrower": (lambda *of: gaussians(*of, 0, 0.3), epsilon_of_gaussians(0, 0.3)),
    "both": (lambda *of: gaussians(*of, 1, 0.4), epsilon_of_gaussians(1, 0.4)),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("n_models", "n_examples"), [(32, 800), (128, 300)])
def test_the_bound_is_seldom_above_the_true_epsilon(world, n_models, n_examples):
    """Measured shares are 0 to 2 %; the confidence promises no more than 5 %."""
    sample, true = WORLDS[world]
    bounds = epsilon_lower_bound(*sample(np.random.default_rng(3), n_models, n_examples))
    assert np.mean(bounds > true) <= WRONG


@pytest.mark.parametrize(("n_models", "least"), [(32, 2.1), (128, 3.5)])
def test_without_errors_it_is_the_most_that_the_models_can_show(n_models, least):
    unlearned, retrained = gaussians(np.random.default_rng(0), n_models, 5, 30, 1)
    np.testing.assert_allclose(epsilon_lower_bound(unlearned, retrained), least, atol=0.04)
    around = retrained + np.where(np.arange(n_models) % 2, 30, -30)[:, None]
    np.testing.assert_allclose(epsilon_lower_bound(around, retrained), least, atol=0.04)


def test_it_finds_shifts_and_narrower_samples():
    """Shares measured by simulation: 97 % and 84 % at 32 models."""
    chance = np.random.default_rng(4)
    for shift, scale, least in ((2, 1, 0.9), (0, 0.3, 0.7)):
        bounds = epsilon_lower_bound(*gaussians(chance, 32, 200, shift, scale))
        assert np.mean(bounds > 0) >= least


def test_more_confidence_gives_less_epsilon():
    pair = gaussians(np.random.default_rng(5), 40, 20, 2, 1)
    less, more = (epsilon_lower_bound(*pair, confidence=level) for level in (0.8, 0.99))
    assert (more <= less).all()
    assert (more < less).any()


def test_it_depends_on_the_order_of_values_only_and_on_no_other_example():
    unlearned, retrained = gaussians(np.random.default_rng(6), 30, 6, 1.5, 0.7)
    bounds = epsilon_lower_bound(unlearned, retrained)
    np.testing.assert_array_equal(epsilon_lower_bound(unlearned**3, retrained**3), bounds)
    alone = epsilon_lower_bound(unlearned[:, 2:3], retrained[:, 2:3])
    np.testing.assert_array_equal(alone, bounds[2:3])


def test_few_equal_or_uneven_models_give_no_evidence():
    assert (epsilon_lower_bound(np.ones((2, 3)), np.ones((9, 3))) == 0).all()
    assert (epsilon_lower_bound(np.zeros((2, 3)), np.ones((2, 3))) == 0).all()


def test_copies_of_a_model_are_said(recwarn):
    """As independent models, they would show a difference that is not there."""
    chance = np.random.default_rng(0)
    unlearned, retrained = chance.normal(size=(2, 64, 3))
    epsilon_lower_bound(unlearned, retrained)
    assert not recwarn.list
    copied = np.tile(unlearned[:4], (16, 1))
    for first, second, name in ((copied, retrained, "unlearned"), (retrained, copied, "retrained")):
        with pytest.warns(Notice, match=f"^{name}: 60 of 64 models have the values of another one"):
            epsilon_lower_bound(first, second)


def test_mistakes_are_told():
    with pytest.raises(ValueError, match=r"confidence: is .* above 0 and below 1"):
        epsilon_lower_bound(np.zeros((4, 1)), np.ones((4, 1)), confidence=95)
    with pytest.raises(ValueError, match=r"delta: is .* below 1"):
        epsilon_lower_bound(np.zeros((4, 1)), np.ones((4, 1)), delta=1)
