"""An attacker who sees all forget strings of a model at once.

Two kinds of models may differ more clearly over all strings together than on any single string. The
definition of unlearning compares distributions of models, so this attack is stated next to the
forgetting quality, which looks at one string at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.statistics import is_constant, power_of_two
from palimpsest.unlearning.attacks.permutation import N_RELABELLINGS, relabellings, share_as_large
from palimpsest.unlearning.attacks.thresholds import check_independent

# Smallest weight of the identity, so that a covariance can be inverted if examples are copies.
LEAST = 1e-6
FEWEST = 3  # models of each kind: without one of them, a kind still has two


class JointAttack(NamedTuple):
    """Number of models whose kind the attack tells wrongly, and number of models."""

    errors: int
    models: int


def joint_attack(unlearned: ArrayLike, retrained: ArrayLike) -> JointAttack:
    """Tell each model's kind from all its values at once, by the other models; count the errors.

    The attack is linear discriminant analysis with a shrunken covariance and equal priors. The kind
    of each model is told by the discriminant of all other models (leave-one-out). Each example is
    scaled by its standard deviation over all models, and the shrinkage is Ledoit's and Wolf's, of
    all models together; neither knows the kinds. A model on the boundary counts as an error.

    Half of the models are told wrongly if both kinds have the same distribution, or a little more:
    the others' means move away from the model that is left out. Errors of different models depend
    on each other, so binomial p-values are wrong; see `joint_p`.

    Parameters
    ----------
    unlearned, retrained : float[models, examples], 3 models or more of each kind

    Returns
    -------
    JointAttack
        (errors, models), for example (0, 64) if 32 + 32 models are told without an error.

    Raises
    ------
    ValueError
        For arrays as in `epsilon`, or if there are too few models.

    Source: Ledoit and Wolf, A well-conditioned estimator for large-dimensional covariance matrices,
    Journal of Multivariate Analysis 88 (2004); definition 2.1 of Are we making progress in
    unlearning?
    """
    products, is_retrained = _prepared(unlearned, retrained)
    return JointAttack(int(_errors(products, is_retrained[None])[0]), len(is_retrained))


def joint_p(
    unlearned: ArrayLike, retrained: ArrayLike, n: int = N_RELABELLINGS, seed: int = 0
) -> float:
    """Permutation p-value of as few errors of `joint_attack`; see `permutation_null`."""
    products, is_retrained = _prepared(unlearned, retrained)
    labels = relabellings((~is_retrained).sum(), is_retrained.sum(), n, seed)
    null = _errors(products, labels)
    return share_as_large(-null, -_errors(products, is_retrained[None])[0])


class _Products(NamedTuple):
    """Inner products float64[models, models], and the weight of one model in the covariance."""

    of: np.ndarray
    weight: float


def _prepared(unlearned: ArrayLike, retrained: ArrayLike) -> tuple[_Products, np.ndarray]:
    """Inner products of all models, and bool[models]: which of them are retrained."""
    unlearned, retrained = check_independent(unlearned, retrained)
    if min(len(unlearned), len(retrained)) < FEWEST:
        raise ValueError(
            f"a joint attack needs {FEWEST} or more models of each kind, not "
            f"{len(unlearned)} and {len(retrained)}"
        )
    values = standardised(np.concatenate([unlearned, retrained]))
    return _inner_products(values), np.repeat([False, True], [len(unlearned), len(retrained)])


def standardised(models: np.ndarray) -> np.ndarray:
    """Values with mean 0 and standard deviation 1 over the models; 0 if there is no spread."""
    scaled = models / power_of_two(models, axis=0)
    centred = scaled - scaled.mean(axis=0)
    return centred / np.where(is_constant(models), np.inf, centred.std(axis=0))


def shrunken_covariance(values: np.ndarray) -> tuple[float, float]:
    """Weights (a, b) of the covariance a S + b I; S is the covariance without the left-out model.

    `values` is float64[models, examples], standardised. The weights come from all models together.
    """
    from sklearn.covariance import ledoit_wolf_shrinkage

    shrinkage = ledoit_wolf_shrinkage(values, assume_centered=True)
    # The average variance is 1, or less if an example has no spread.
    return 1 - shrinkage, max(shrinkage * np.square(values).mean(), LEAST)


def _inner_products(values: np.ndarray) -> _Products:
    """Inner products of standardised models by the inverse of n / (n - 1) a S + b I.

    `values` is float64[models, examples]. The covariance S is that of all models. The covariance
    within the kinds differs from it by a multiple of the outer product of the difference of their
    means, and this difference changes the length of the discriminant but not its direction.
    """
    n = len(values)
    a, b = shrunken_covariance(values)
    scatter = values.T @ values
    matrix = a / (n - 1) * scatter + b * np.eye(values.shape[1])
    products = values @ np.linalg.solve(matrix, values.T)
    # Without model i with values z, the covariance is n / (n - 1) S - n / (n - 1)^2 z z^T. The
    # weight of z z^T is kept for the update of the inverse (Sherman and Morrison).
    return _Products(products, a * n / (n - 1) ** 2)


def _errors(products: _Products, labels: np.ndarray) -> np.ndarray:
    """Leave-one-out errors int[labellings] of all models, for labels bool[labellings, models].

    Everything the discriminant needs without a model is a sum of inner products, so labellings cost
    one matrix product together.
    """
    kinds = np.stack([~labels, labels]).astype(float)  # [2, labellings, models]
    sizes = kinds.sum(axis=2, keepdims=True)
    with_means = kinds @ products.of / sizes  # of every model with the mean of either kind
    of_means = (with_means * kinds).sum(axis=2, keepdims=True) / sizes  # each with itself
    itself = np.diag(products.of)
    # Without the model, the mean of its own kind is (size * mean - model) / (size - 1).
    left = (sizes * with_means - itself) / (sizes - 1)
    mean_left = (sizes**2 * of_means - 2 * sizes * with_means + itself) / (sizes - 1) ** 2
    own = kinds.astype(bool)
    with_means, of_means = np.where(own, left, with_means), np.where(own, mean_left, of_means)
    # The score (z - middle) M^-1 (difference of means); M without the model adds one outer product.
    difference = with_means[1] - with_means[0]
    middle = (with_means[1] + with_means[0]) / 2
    score = difference - (of_means[1] - of_means[0]) / 2
    update = products.weight / (1 - products.weight * itself)
    score += update * (itself - middle) * difference
    return np.where(labels, score <= 0, score >= 0).sum(axis=1)
