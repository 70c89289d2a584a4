"""What must hold of epsilon: of the sweeps over thresholds, and of attackers held out."""

import math
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gaussian_kde

from helpers import plain_epsilon
from helpers.epsilon_samples import samples
from palimpsest import unlearning
from palimpsest.unlearning.attacks import sweeps
from palimpsest.unlearning.attacks.attackers import _masses, held_out_epsilon
from palimpsest.unlearning.attacks.confidence import logit_scaled_confidence
from palimpsest.unlearning.attacks.thresholds import attacks, logs_of_rates

DELTA = 1e-5
CAP = 50.0
# The first call compiles.
UNHURRIED = settings(deadline=None)


def column(*values):
    return np.array(values, dtype=float)[:, None]


def narrow(unlearned, retrained):
    """The rule of 1 % of the released scoring code."""
    spans = np.ptp(unlearned, axis=0), np.ptp(retrained, axis=0)
    return np.minimum(*spans) < 0.01 * np.maximum(*spans)


def each(function, unlearned, retrained, *others):
    """A function of two samples on every example."""
    return np.array(
        [function(*pair, *others) for pair in zip(unlearned.T, retrained.T, strict=True)]
    )


# Exact


@pytest.mark.slow
@given(pair=samples(7), delta=st.sampled_from([0.0, DELTA, 0.3]))
@UNHURRIED
def test_exact_is_every_interval_tried_one_by_one(pair, delta):
    expected = each(plain_epsilon.every_interval, *pair, delta)
    np.testing.assert_allclose(unlearning.epsilon(*pair, delta), expected, rtol=0, atol=1e-12)


def test_losses_in_float32_that_differ_by_rounding_tell_nothing():
    unlearned = np.full((16, 2), np.float32(0.7) - np.float32(0.4))
    retrained = np.full((16, 2), np.float32(0.3))
    assert unlearning.epsilon(unlearned, retrained).tolist() == [0, 0]
    both = unlearned, retrained
    assert held_out_epsilon(*both, *both).tolist() == [0, 0]
    assert (unlearning.epsilon(*(sample.astype(float) for sample in both)) > 0).all()


@given(pair=samples())
@UNHURRIED
def test_exact_is_never_below_the_grid(pair):
    exact = unlearning.epsilon(*pair, thresholds="exact")
    grid = unlearning.epsilon(*pair, thresholds="grid")
    assert (exact >= grid)[~narrow(*pair)].all()
    assert (grid[narrow(*pair)] == CAP).all()


@pytest.mark.parametrize("n_models", [16, 64, 200])
def test_exact_is_never_below_the_grid_on_distributions_as_they_occur(n_models):
    """Equal, shifted, narrower and both, and confidences with ties."""
    generator = np.random.default_rng(n_models)
    shift, scale = np.meshgrid([0, 0.5, 3], [1, 0.2, 0.03])
    unlearned = generator.normal(shift.ravel(), scale.ravel(), (n_models, 9))
    retrained = generator.normal(size=(n_models, 9))
    for digits in (16, 1):
        pair = unlearned.round(digits), retrained.round(digits)
        exact, grid = (unlearning.epsilon(*pair, thresholds=way) for way in ("exact", "grid"))
        assert (exact >= grid).all()
        assert (exact > grid).any()


@given(pair=samples(), data=st.data())
@UNHURRIED
def test_only_the_order_of_values_counts(pair, data):
    """Whole numbers, which cubes and steps map without ties of their own."""
    ranks = np.unique(np.concatenate([x.ravel() for x in pair]), return_inverse=True)[1]
    split = pair[0].size
    unlearned, retrained = (
        ranks[:split].reshape(pair[0].shape),
        ranks[split:].reshape(pair[1].shape),
    )
    steps = data.draw(st.lists(st.integers(1, 10**6), min_size=len(ranks), max_size=len(ranks)))
    growing = np.cumsum(steps)
    epsilon = unlearning.epsilon(*pair)
    for transformed in (growing, growing**3.0, -growing):
        moved = unlearning.epsilon(transformed[unlearned], transformed[retrained])
        np.testing.assert_array_equal(moved, epsilon)


@given(pair=samples())
@UNHURRIED
def test_it_does_not_matter_which_sample_is_called_unlearned(pair):
    np.testing.assert_array_equal(unlearning.epsilon(*pair), unlearning.epsilon(*pair[::-1]))


def test_a_sample_around_another_needs_two_thresholds():
    """A single threshold has both kinds on both sides. Only retrained values are in -2 to 2."""
    unlearned, retrained = column(-5, -4, -3, 3, 4, 5), column(-2, -1, 0, 0.5, 1, 2)
    assert unlearning.epsilon(unlearned, retrained) == [CAP]
    assert unlearning.epsilon(unlearned, retrained, thresholds="grid") == [CAP]
    found = attacks(unlearned, retrained)
    assert (found.family, found.inside) == (["double"], ["retrained"])
    assert (found.lower, found.upper) == ([-2.5], [2.5])


def test_equal_values_cannot_be_told_apart():
    """Half of the values of one sample are also in the other: no threshold is between them."""
    unlearned, retrained = column(0, 0, 1, 1), column(1, 1, 2, 2)
    # Below 0.5 is unlearned: FPR 1/2, FNR 0; below 1.5: FPR 0, FNR 1/2: discarded. Only 1 is
    # unlearned: FPR 1/2, FNR 1/2, no better than guessing: log((1 - delta - 1/2) / (1/2)) < 0.
    assert unlearning.epsilon(unlearned, retrained) == [0]
    assert unlearning.epsilon(unlearned - 1e-9, retrained) == [CAP]


@pytest.mark.parametrize("thresholds", ["exact", "grid"])
def test_where_nothing_differs_there_is_no_attack(thresholds):
    found = attacks(np.ones((5, 2)), np.ones((7, 2)), thresholds=thresholds)
    assert (found.epsilon == 0).all()
    assert (found.family == "none").all()
    assert (found.inside == "").all()
    assert np.isnan([found.lower, found.upper, found.fpr, found.fnr]).all()


# The floor


@pytest.mark.parametrize(("n_models", "least", "most"), [(16, 1.7, 2.0), (64, 2.1, 2.3)])
def test_of_one_distribution_epsilon_is_near_its_floor(n_models, least, most):
    """Not 0: among N + N values that differ by chance alone some run has k of one kind and 1 of the
    other, and gives log(k). Its mean is about 1.8 for 16 models, 2.2 for 64 and 2.5 for 512.
    """
    pair = np.random.default_rng(7).normal(size=(2, n_models, 100))
    epsilon = unlearning.epsilon(*pair)
    assert least < epsilon.mean() < most
    assert (epsilon > 0.5).all()
    few = pair[:, :, :3]
    expected = each(plain_epsilon.every_interval, *few)
    np.testing.assert_allclose(epsilon[:3], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("thresholds", ["exact", "grid"])
def test_of_distributions_apart_epsilon_is_the_cap(thresholds):
    generator = np.random.default_rng(8)
    pair = generator.normal(20, 1, (30, 10)), generator.normal(0, 1, (20, 10))
    assert (unlearning.epsilon(*pair, thresholds=thresholds) == CAP).all()
    assert (unlearning.epsilon(*pair[::-1], thresholds=thresholds) == CAP).all()


# The grid


@pytest.mark.slow
@given(pair=samples(9))
@settings(deadline=None, max_examples=25)
def test_grid_is_every_threshold_tried_one_by_one(pair):
    """No value equals a threshold; otherwise rounding would decide the value's side."""
    pair = tuple(np.round(x * 8) / 8 + np.pi * 1e-3 * (x > 1) for x in pair)
    expected = each(plain_epsilon.grid, *pair)
    np.testing.assert_allclose(
        unlearning.epsilon(*pair, thresholds="grid"), expected, rtol=0, atol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "most"), [(1.0, 9.0), (0.3, 9.0), (3.0, 9.0), (1.0, 1.0)], ids=str
)
def test_grid_is_every_threshold_tried_one_by_one_on_distributions_as_they_occur(scale, most):
    """In the last case both samples are cut off at the same values: their spans are equal."""
    generator = np.random.default_rng(12)
    pair = generator.normal(0.5, scale, (50, 8)), generator.normal(0, 1, (60, 8))
    pair = tuple(x.clip(-most, most) for x in pair)
    expected = each(plain_epsilon.grid, *pair)
    np.testing.assert_allclose(
        unlearning.epsilon(*pair, thresholds="grid"), expected, rtol=0, atol=1e-12
    )


def test_grid_by_hand_with_one_threshold():
    """Medians 1.5 and 5: from a threshold on, values are said to be retrained.

    From 3 < t <= 4 on: FPR 1/4 (the 5), FNR 1/4 (the 3), so log((1 - delta - 1/4) / (1/4)). At
    lower ones FNR is 0, above 5 FPR is: discarded. Both rates are the least above 0, so no
    attack is stronger.
    """
    unlearned, retrained = column(0, 1, 2, 5), column(3, 4, 6, 7)
    for thresholds in ("grid", "exact"):
        found = attacks(unlearned, retrained, thresholds=thresholds)
        np.testing.assert_allclose(found.epsilon, math.log(3 - 4 * DELTA), rtol=1e-14)
        assert (found.fpr, found.fnr) == ([0.25], [0.25])
        assert (found.family, found.inside) == (["single"], ["unlearned"])
        assert (found.lower, found.upper) == ([-np.inf], [3.5])


def test_grid_by_hand_does_not_see_what_is_between_its_thresholds():
    """Only a threshold from 3 to 3.004 separates these.

    One threshold: 0 to 6.5 in 650 steps of 6.5 / 649: neighbours are 2.9946 and 3.0046. Two: the
    narrower sample is the unlearned one, to 3, so the upper one goes from 1 to 5 in 400 steps of
    4 / 399: neighbours are 2.9950 and 3.0050. What is left is, from 0.5 to 3.005, 1 of 4
    unlearned values outside and 1 of 4 retrained ones inside: log((1 - delta - 1/4) / (1/4)).
    """
    unlearned, retrained = column(0, 1, 2, 3), column(3.004, 4, 5, 6.5)
    grid = attacks(unlearned, retrained, thresholds="grid")
    np.testing.assert_allclose(grid.epsilon, math.log(3 - 4 * DELTA), rtol=1e-14)
    assert (grid.family, grid.inside) == (["double"], ["unlearned"])
    assert (grid.lower, grid.upper) == ([0.5], [(3.004 + 4) / 2])
    exact = attacks(unlearned, retrained)
    assert (exact.epsilon, exact.family) == ([CAP], ["single"])
    assert (exact.fpr, exact.fnr) == ([0], [0])


def test_grid_by_hand_with_two_thresholds_of_which_one_is_above_all():
    """From 3.004 on there are 1 of 6 unlearned and 3 of 4 retrained values.

    One threshold: 0 to 5.4 in 540 steps of 5.4 / 539: none from 3 to 3.004, as neighbours are
    2.9955 and 3.0056. Two: the narrower sample, retrained, is from 2.5 to 5.4, so lower thresholds
    are in steps of 4 / 399 from 2.5 - 4: the 450th is 3.0013. FPR 1/6, FNR 1/4, and the greater of
    the two logarithms is that of (1 - delta - 1/4) / (1/6). Seen from below, one threshold.
    """
    unlearned, retrained = column(0, 1, 2, 2.7, 3, 4.5), column(2.5, 3.004, 4, 5.4)
    found = attacks(unlearned, retrained, thresholds="grid")
    np.testing.assert_allclose(found.epsilon, math.log(4.5 - 6 * DELTA), rtol=1e-14)
    assert (found.family, found.inside) == (["single"], ["unlearned"])
    assert (found.fpr, found.fnr) == ([1 / 6], [0.25])
    assert (found.lower, found.upper) == ([-np.inf], [(3 + 3.004) / 2])


def test_grid_by_hand_includes_values_on_its_thresholds():
    """Only a threshold from 2 to 2.005 leaves 3 unlearned values and 1 retrained one inside.

    One threshold: -5 to 4 in 900 steps of 9 / 899: neighbours are 1.9978 and 2.0078. Two: the
    narrower sample, unlearned, is from 0 to 4, so the least upper threshold is 4 - 2 = 2, with
    lower ones from -4 to 0. FPR 1/4, FNR 1/5: log((1 - delta - 1/4) / (1/5)).
    """
    unlearned, retrained = column(0, 1, 2, 4), column(-5, 0.5, 2.005, 2.005, 2.005)
    found = attacks(unlearned, retrained, thresholds="grid")
    np.testing.assert_allclose(found.epsilon, math.log(3.75 - 5 * DELTA), rtol=1e-14)
    assert (found.fpr, found.fnr) == ([0.25], [0.2])
    assert (found.lower, found.upper) == ([-2.5], [(2 + 2.005) / 2])


def test_grid_by_hand_caps_a_sample_of_less_than_one_per_cent_of_the_other():
    """0.002 of 10. Exact has no such rule: 0 to 0.001 leaves 1 of 3 outside and 1 of 3 inside."""
    unlearned, retrained = column(0, 0.001, 0.002), column(0.001, 5, 10)
    grid = attacks(unlearned, retrained, thresholds="grid")
    assert (grid.epsilon, grid.family) == ([CAP], ["narrow"])
    expected = math.log((1 - DELTA - 1 / 3) / (1 / 3))
    np.testing.assert_allclose(unlearning.epsilon(unlearned, retrained), expected, rtol=1e-14)
    # One per cent is enough to be looked at.
    wide = attacks(column(0, 0.05, 0.1), column(0.05, 5, 10), thresholds="grid")
    np.testing.assert_allclose(wide.epsilon, expected, rtol=1e-14)


# Attacks


@given(pair=samples(), thresholds=st.sampled_from(["exact", "grid"]))
@UNHURRIED
def test_the_attack_that_is_told_makes_the_errors_that_are_told(pair, thresholds):
    unlearned, retrained = pair
    found = attacks(unlearned, retrained, thresholds=thresholds)
    rule = np.isin(found.family, ["single", "double"])
    inside = [(found.lower < x) & (x <= found.upper) for x in pair]
    said_retrained = [x == (found.inside == "retrained") for x in inside]
    np.testing.assert_array_equal(said_retrained[0].mean(axis=0)[rule], found.fpr[rule])
    np.testing.assert_allclose(1 - said_retrained[1].mean(axis=0)[rule], found.fnr[rule])
    from_rates = plain_epsilon.of_rates(found.fpr, found.fnr)[rule]
    np.testing.assert_allclose(np.clip(from_rates, 0, CAP), found.epsilon[rule], atol=1e-12)
    assert (np.isneginf(found.lower) == (found.family == "single"))[rule].all()
    assert np.isfinite(found.upper[rule]).all()


@pytest.mark.parametrize("thresholds", ["exact", "grid"])
def test_neither_the_order_of_models_nor_the_other_examples_matter(thresholds):
    generator = np.random.default_rng(3)
    pair = generator.normal(0.5, 1, (40, 6)), generator.normal(0, 1, (30, 6)).round(1)
    whole = attacks(*pair, thresholds=thresholds)
    again = attacks(*(x[generator.permutation(len(x))] for x in pair), thresholds=thresholds)
    some = attacks(*(x[:, 2:4] for x in pair), thresholds=thresholds)
    for name, values in vars(whole).items():
        np.testing.assert_array_equal(getattr(again, name), values)
        np.testing.assert_array_equal(getattr(some, name), values[2:4])


def test_a_threshold_between_neighbouring_floats_is_the_lower_one():
    """Their mean is rounded to the lower or to the upper one. The sweep tells them apart."""
    one = np.nextafter(1.0, 2)
    two = np.nextafter(one, 2)
    logs = logs_of_rates(2, DELTA)
    for below, above in ((1.0, one), (one, two)):
        pair = np.full((1, 2), below), np.full((1, 2), above)
        epsilon, _, upper, _, _ = sweeps.strongest_attacks(
            *pair, np.array([1]), True, (*logs, *logs)
        )
        assert (epsilon, upper) == ([np.inf], [below])


def test_neighbouring_floats_are_not_told_apart():
    """They are one value with rounding errors, which no model has learned."""
    one = np.nextafter(1.0, 2)
    assert attacks(column(1.0, 1.0), column(one, one)).epsilon == [0]
    assert attacks(column(1.0, 1.0), column(1.001, 1.001)).epsilon == [CAP]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: unlearning.epsilon(np.ones(3), np.ones(3)), r"\[models, examples\]"),
        (lambda: unlearning.epsilon(np.ones((1, 3)), np.ones((2, 3))), "2 models or more"),
        (lambda: unlearning.epsilon(np.ones((2, 3)), np.ones((2, 4))), "same examples"),
        (lambda: unlearning.epsilon(np.ones((2, 3)), np.full((2, 3), np.nan)), "retrained must be"),
        (lambda: unlearning.epsilon(np.full((2, 3), np.inf), np.ones((2, 3))), "unlearned must be"),
        (
            lambda: unlearning.epsilon(np.ones((2, 3)), np.ones((2, 3)), 1.0),
            "delta: is .* at least 0 and below 1",
        ),
        (
            lambda: unlearning.epsilon(np.ones((2, 3)), np.ones((2, 3)), -1e-9),
            "delta: is .* at least 0 and below 1",
        ),
        (
            lambda: unlearning.epsilon(np.ones((2, 3)), np.ones((2, 3)), np.nan),
            "delta: is .* at least 0 and below 1",
        ),
        (
            lambda: unlearning.epsilon(np.ones((2, 3)), np.ones((2, 3)), thresholds="fine"),
            "known: exact, grid",
        ),
        (
            lambda: held_out_epsilon(*[np.ones((2, 3))] * 2, *[np.ones((2, 4))] * 2),
            "fitting and evaluation",
        ),
        (lambda: held_out_epsilon(*[np.ones((2, 3))] * 3, np.ones((2, 4))), "same examples"),
    ],
)
def test_errors_say_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Attackers held out


def test_masses_are_those_of_the_density_estimates_of_scipy():
    generator = np.random.default_rng(5)
    values = generator.normal(2, 3, (40, 4))
    lower, upper = np.array([-1, -np.inf, 2, 30]), np.array([4, 1, 2.1, 31])
    within, beyond = _masses(values, lower, upper)
    densities = [gaussian_kde(sample) for sample in values.T]
    expected = [d.integrate_box_1d(*ends) for d, *ends in zip(densities, lower, upper, strict=True)]
    np.testing.assert_allclose(within[:3], expected[:3], rtol=1e-12)
    np.testing.assert_allclose(within + beyond, 1, rtol=1e-14)
    # Where scipy has no digits left.
    assert 0 < within[3] < 1e-16


def test_an_attacker_held_out_finds_less_than_one_that_has_seen_the_models():
    pair, fresh = np.random.default_rng(9).normal(size=(2, 2, 64, 50))
    held_out, seen = held_out_epsilon(*pair, *fresh), unlearning.epsilon(*pair)
    assert (held_out < seen).all()
    assert held_out.mean() < 0.3 < 2 < seen.mean()


def test_an_attacker_held_out_finds_what_is_there():
    """At 3 standard deviations between means, both rates are 0.067 in the middle: epsilon 2.6."""
    generator = np.random.default_rng(10)
    unlearned, retrained = (
        generator.normal(3, 1, (2, 500, 10)),
        generator.normal(0, 1, (2, 500, 10)),
    )
    held_out = held_out_epsilon(unlearned[0], retrained[0], unlearned[1], retrained[1])
    assert (held_out > 2.6).all()
    assert (held_out < 6).all()
    far = held_out_epsilon(unlearned[0] + 90, retrained[0], unlearned[1] + 90, retrained[1])
    assert (far == CAP).all()


def test_the_models_for_evaluation_may_be_fewer():
    generator = np.random.default_rng(11)
    fitting = generator.normal(1, 1, (60, 4)), generator.normal(0, 1, (50, 4))
    some = generator.normal(1, 1, (7, 4)), generator.normal(0, 1, (9, 4))
    assert held_out_epsilon(*fitting, *some).shape == (4,)


def test_held_out_samples_without_spread():
    """The attack says: up to 0.5 unlearned, above retrained."""
    fitting = column(0, 0, 0), column(1, 1, 1)
    spread = column(-1, 0, 1, 2)
    # Right about all: both rates as small as can be.
    assert held_out_epsilon(*fitting, column(0, 0), column(1, 1)) == [CAP]
    # Right about the one that has no spread, and about half of the other.
    assert held_out_epsilon(*fitting, column(0, 0), spread) == [CAP]
    # Wrong about it.
    assert held_out_epsilon(*fitting, column(1, 1), column(1, 1)) == [0]
    # On the threshold, half of it is on either side: FPR 1/2, FNR as small as can be.
    assert held_out_epsilon(*fitting, column(0.5, 0.5), column(1, 1)) == [CAP]
    assert held_out_epsilon(*fitting, column(0.5, 0.5), column(0.5, 0.5)) == [0]
    # Nothing to choose from.
    assert held_out_epsilon(column(0, 0), column(0, 0), column(0, 0), column(1, 1)) == [0]


# Confidence


def test_confidence_is_the_logit_of_the_mean_probability():
    p = np.array([0.2, 0.5, 0.9])
    confidence = logit_scaled_confidence(-4 * np.log(p), [4, 4, 4])
    np.testing.assert_allclose(confidence, np.log(p / (1 - p)), atol=1e-14)
    whole = logit_scaled_confidence(-4 * np.log(p), 4, of="sequence")
    np.testing.assert_allclose(whole, np.log(p**4 / (1 - p**4)), atol=1e-14)


@pytest.mark.filterwarnings("error")
def test_confidence_has_no_lack_of_digits_at_either_end():
    """1 - p is x near p = 1, and p is exp(-x): log(1 / x) and -x."""
    np.testing.assert_allclose(logit_scaled_confidence([1e-30], [1]), [30 * math.log(10)])
    np.testing.assert_allclose(logit_scaled_confidence([1e4], [1]), [-1e4])
    losses = np.concatenate([[0], np.geomspace(1e-40, 1e6, 300)])
    confidence = logit_scaled_confidence(losses, np.ones(301))
    assert np.isfinite(confidence).all()
    assert (np.diff(confidence) < 0).all()


def test_confidence_takes_tokens_per_string():
    nll = np.array([[1.0, 2.0], [3.0, 4.0]])
    both = logit_scaled_confidence(nll, [1, 2])
    np.testing.assert_array_equal(both[:, 1], logit_scaled_confidence(nll[:, 1], 2))


@pytest.mark.parametrize(
    ("nll", "n_tokens", "of", "message"),
    [
        ([1.0], [1], "mean", "known: geometric_mean"),
        ([-1e-9], [1], "sequence", "not negative"),
        ([np.nan], [1], "sequence", "finite"),
        ([np.inf], [1], "sequence", "finite"),
        ([1.0], [0], "sequence", "1 or more"),
        ([1.0], [np.nan], "sequence", "1 or more"),
        ([1.0, 2.0], [1, 1, 1], "sequence", "fit the shape"),
        (1.0, [1, 1], "sequence", "fit the shape"),
    ],
)
def test_confidence_refuses(nll, n_tokens, of, message):
    with pytest.raises(ValueError, match=message):
        logit_scaled_confidence(nll, n_tokens, of)


# Public names


def test_no_module_has_the_name_of_a_function():
    """Importing such a module would replace the function."""
    modules = {module.name for module in pkgutil.iter_modules(unlearning.__path__)}
    assert not modules & set(unlearning.__all__)
    assert {"epsilon", "forgetting_quality"} <= set(unlearning.__all__)


def test_epsilon_is_a_function_after_every_import_and_numba_waits_until_it_is_called():
    script = (
        "import sys\n"
        "import palimpsest.unlearning.attacks.attackers, palimpsest.unlearning.attacks.thresholds\n"
        "import palimpsest.unlearning as u\n"
        "assert 'numba' not in sys.modules\n"
        "import palimpsest.unlearning.attacks.sweeps\n"
        "print(u.epsilon([[0.0], [1.0]], [[2.0], [3.0]], 1e-5, 'exact').tolist())\n"
    )
    folder = unlearning.__path__[0].rsplit("palimpsest", 1)[0]
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=folder, check=True
    )
    assert done.stdout == "[50.0]\n"
