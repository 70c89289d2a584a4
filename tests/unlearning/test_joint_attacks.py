"""The attack on all strings at once, against the same attack written as a loop."""

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from palimpsest.unlearning import joint_attack
from palimpsest.unlearning.attacks.joint_attacks import joint_p, shrunken_covariance, standardised
from palimpsest.unlearning.attacks.permutation import permutation_null

WORLDS = [(32, 32, 9, 0.0), (32, 32, 9, 0.6), (10, 15, 30, 0.3), (20, 20, 40, 0.4), (3, 3, 2, 1.0)]


def world(n_unlearned, n_retrained, n_strings, shift):
    """Correlated strings, shifted and of other covariance in the unlearned models."""
    chance = np.random.default_rng(n_strings)
    mixed = chance.normal(size=(n_strings, n_strings))
    unlearned = chance.normal(size=(n_unlearned, n_strings)) @ mixed + shift
    return unlearned, chance.normal(size=(n_retrained, n_strings))


def loop(unlearned, retrained):
    """Leave-one-out discriminants one by one, from the covariance within the kinds."""
    values = standardised(np.concatenate([unlearned, retrained]))
    kinds = np.repeat([False, True], [len(unlearned), len(retrained)])
    a, b = shrunken_covariance(values)
    errors = 0
    for i in range(len(values)):
        others, of = np.delete(values, i, axis=0), np.delete(kinds, i)
        means = others[~of].mean(axis=0), others[of].mean(axis=0)
        within = others - np.where(of[:, None], means[1], means[0])
        covariance = a * within.T @ within / len(others) + b * np.eye(values.shape[1])
        direction = np.linalg.solve(covariance, means[1] - means[0])
        errors += ((values[i] - sum(means) / 2) @ direction > 0) != kinds[i]
    return errors


def by_scikit_learn(unlearned, retrained):
    """The same attack with scikit-learn's discriminant analysis."""
    values = standardised(np.concatenate([unlearned, retrained]))
    kinds = np.repeat([0, 1], [len(unlearned), len(retrained)])
    shrinkage = ledoit_wolf_shrinkage(values, assume_centered=True)
    errors = 0
    for i in range(len(values)):
        attack = LinearDiscriminantAnalysis("lsqr", shrinkage=shrinkage, priors=[0.5, 0.5])
        attack.fit(np.delete(values, i, axis=0), np.delete(kinds, i))
        errors += attack.predict(values[i : i + 1])[0] != kinds[i]
    return errors


@pytest.mark.parametrize("sizes", WORLDS, ids=str)
def test_it_is_the_loop_over_models(sizes):
    pair = world(*sizes)
    errors, models = joint_attack(*pair)
    assert models == sizes[0] + sizes[1]
    assert errors == loop(*pair)
    # scikit-learn shrinks towards the variance within the kinds, without the model left out.
    assert abs(errors - by_scikit_learn(*pair)) <= 1


def test_models_that_differ_only_jointly_are_told():
    """The two strings of a model are almost equal; a shift of 0.2 is small for each of them."""
    chance = np.random.default_rng(2)
    common, own = chance.normal(size=(2, 40, 1)), 0.05 * chance.normal(size=(2, 40, 2))
    unlearned, retrained = common + own
    shifted = unlearned + np.array([0.2, -0.2])
    assert joint_attack(shifted, retrained).errors <= 2
    assert joint_p(shifted, retrained, 99) == 0.01
    assert joint_attack(unlearned, retrained).errors > 20


def test_p_is_that_of_few_errors_among_relabelled_models():
    pair = world(12, 14, 4, 0.8)
    expected = permutation_null(*pair, lambda x, y: -joint_attack(x, y).errors, n=60, seed=3)[1]
    assert joint_p(*pair, 60, 3) == expected


def test_where_nothing_differs_every_model_is_an_error():
    assert joint_attack(np.ones((4, 2)), np.ones((5, 2))) == (9, 9)
    assert joint_p(np.ones((4, 2)), np.ones((5, 2)), 20) == 1


def test_scale_and_copies_of_strings_do_not_matter():
    unlearned, retrained = world(20, 20, 5, 0.7)
    found = joint_attack(unlearned, retrained)
    scale = np.array([1, 1e6, 1e-6, 3, 1])
    assert joint_attack(unlearned * scale + 7, retrained * scale + 7) == found
    twice = [np.repeat(x, 2, axis=1) for x in (unlearned, retrained)]
    assert joint_attack(*twice).models == 40


def test_too_few_models_are_told():
    with pytest.raises(ValueError, match="3 or more models of each kind, not 2 and 9"):
        joint_attack(np.zeros((2, 3)), np.zeros((9, 3)))


def test_false_alarms_are_as_rare_as_the_p_values_say():
    """200 null studies: more than 10 % at 5 % has probability 0.001."""
    chance = np.random.default_rng(9)
    p = [
        joint_p(*(chance.normal(size=(2, 16, 9)) + chance.normal(size=(2, 16, 1))), 99, seed)
        for seed in range(200)
    ]
    assert np.mean(np.array(p) <= 0.05) <= 0.10


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_the_unit_of_the_confidences_changes_no_error(unit):
    chance = np.random.default_rng(3)
    unlearned, retrained = chance.normal(size=(10, 4)), chance.normal(0.5, size=(10, 4))
    expected = joint_attack(unlearned, retrained)
    assert 0 < expected.errors < 20
    assert joint_attack(unlearned * unit, retrained * unit) == expected
