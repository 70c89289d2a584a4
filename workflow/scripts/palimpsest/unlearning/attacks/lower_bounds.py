"""Lower bounds of epsilon: at least this much, with a stated confidence.

The largest estimate over many attacks is too large by chance. Here an attack is fitted on some
models and judged on others, and its rates count with their upper confidence bounds. So the result
is a statement that an auditor can sign.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import CONFIDENCES, SEEDS, checked_number
from palimpsest.statistics import upper_bound
from palimpsest.unlearning.attacks.thresholds import (
    DELTA,
    check_independent,
    check_rules,
    epsilon_of_rates,
    logs_of,
)

CONFIDENCE = 0.95
# More folds fit better attacks, but the folds' errors depend on each other more. With 5 folds and
# 512 models, at most 4 % of simulated bounds were above the true epsilon, with 10 folds 4.7 %.
FOLDS = 5
# Two thresholds fit chance better than one. They are chosen if their bound on the fitting models is
# better by more than this; without the margin, shifts are found less often.
MARGIN = 0.3


def epsilon_lower_bound(
    unlearned: ArrayLike,
    retrained: ArrayLike,
    delta: float = DELTA,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> np.ndarray:
    """Lower confidence bound of every example's epsilon: at least this, with 95 % confidence.

    The models of each kind are dealt into 5 folds. For every fold, an attack with one or two
    thresholds is fitted on the other folds: the attack with the best bound there, not the best
    epsilon, because a bound needs few errors of both kinds and not a rate near 0. The attack is
    judged on the fold. The errors of all folds are added up and give two rates. Each rate counts
    with its Clopper-Pearson upper bound at half of the error probability (Bonferroni), and epsilon
    is the larger of the two formulas of equation 1, at least 0.

    The bound holds for each example by itself. Summed errors of several folds are not exactly
    binomial, so the confidence was checked by simulation for 32 to 512 models: the bound exceeds
    the true epsilon in less than 5 % of the examples (`tests/benchmarks`,
    bench_unlearning_inference). Without any error the bound is 2.1 for 32 + 32 models and 3.5 for
    128 + 128; no attack shows more with so few models.

    Parameters
    ----------
    unlearned, retrained : float[models, examples], independent models
        A warning says how many have exactly the values of another one.
    delta : float in [0, 1)
    confidence : float in (0, 1)
    seed : int, of the folds, which are the same for all examples

    Returns
    -------
    float64[examples], 0 or more

    Raises
    ------
    ValueError
        See `epsilon`; also if the confidence is not in (0, 1), or the seed is not 0 or more.

    Source: Clopper and Pearson, Biometrika 26 (1934); Jagielski, Ullman and Oprea, Auditing
    differentially private machine learning, arXiv 2006.07709, section 4; Are we making progress in
    unlearning?, equation 1.
    """
    # Imported here: compiled code is slow to import.
    from palimpsest.unlearning.attacks import bound_sweeps

    unlearned, retrained = check_independent(unlearned, retrained)
    check_rules(delta)
    checked_number("confidence", confidence, CONFIDENCES)
    checked_number("seed", seed, SEEDS)
    n_folds = min(FOLDS, len(unlearned), len(retrained))
    chance = np.random.default_rng(seed)
    folds = [chance.permutation(np.arange(len(x)) % n_folds) for x in (unlearned, retrained)]
    logs = [_logs_of_bounds(of, n_folds, delta) for of in folds]
    values, fold_of_values = zip(
        *(_sorted(x, of) for x, of in zip((unlearned, retrained), folds, strict=True)), strict=True
    )
    errors = bound_sweeps.held_out_errors(
        *values, *fold_of_values, n_folds, MARGIN, (*logs[0], *logs[1])
    )
    n_models = len(unlearned), len(retrained)
    return bound_of_errors(errors[:, 0], errors[:, 1], *n_models, delta, confidence)


def bound_of_errors(
    false_positives: ArrayLike,
    false_negatives: ArrayLike,
    n_unlearned: int,
    n_retrained: int,
    delta: float = DELTA,
    confidence: float = CONFIDENCE,
) -> np.ndarray:
    """Lower bound of epsilon float64[...] from the errors of an attack that was fixed before.

    For example, 1 of 32 false positives and 3 of 32 false negatives give at least 1.53. The numbers
    of models are those of each kind that judged the attack.

    Raises `ValueError` if the confidence is not in (0, 1). Source: see `epsilon_lower_bound`.
    """
    checked_number("confidence", confidence, CONFIDENCES)
    high_fpr = upper_bound(false_positives, n_unlearned, (1 - confidence) / 2)
    high_fnr = upper_bound(false_negatives, n_retrained, (1 - confidence) / 2)
    return epsilon_of_rates(high_fpr, high_fnr, delta)


def _sorted(models: np.ndarray, folds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [examples, models] of every example sorted, and the fold of each value."""
    order = np.argsort(models.T, axis=1)
    return np.take_along_axis(models.T, order, axis=1), folds[order]


def _logs_of_bounds(folds: np.ndarray, n_folds: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """The logarithms of `bound_sweeps.held_out_errors` of one kind, float64[folds, models + 1].

    Attacks are always fitted for 95 % confidence, so that more confidence never gives a larger
    bound.
    """
    n_fit = len(folds) - np.bincount(folds, minlength=n_folds)[:, None]
    errors = np.minimum(np.arange(len(folds) + 1), n_fit)
    return logs_of(upper_bound(errors, n_fit, (1 - CONFIDENCE) / 2), delta)
