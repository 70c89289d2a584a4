"""Compiled cross-fitted attacks: their errors on models that they were not fitted on."""

import math

import numpy as np
from numba import njit

from palimpsest.unlearning.attacks.relabelled_sweeps import _fewest_others
from palimpsest.unlearning.attacks.sweeps import (
    RETRAINED,
    UNLEARNED,
    _errors,
    _interval_with,
    _merge,
    _threshold,
)


@njit(cache=True, nogil=True)
def _bound(false_positives, false_negatives, logs):
    """Equation 1 at upper bounds of the rates; -inf if a bound leaves nothing."""
    high_fpr, left_of_fpr, high_fnr, left_of_fnr = logs
    return max(
        left_of_fpr[false_positives] - high_fnr[false_negatives],
        left_of_fnr[false_negatives] - high_fpr[false_positives],
    )


@njit(cache=True, nogil=True)
def _best_single(of_unlearned, of_retrained, n_values, logs):
    """Bound, right cut and the kind said below it, for the best single threshold."""
    best, last, inside = -math.inf, 1, UNLEARNED
    for cut in range(1, n_values):
        for said in (UNLEARNED, RETRAINED):
            wrong = _errors(0, cut, said, of_unlearned, of_retrained, n_values)
            bound = _bound(wrong[0], wrong[1], logs)
            if bound > best:
                best, last, inside = bound, cut, said
    return best, last, inside


@njit(cache=True, nogil=True)
def _best_interval(of_unlearned, of_retrained, n_values, logs, usable, work, fewest):
    """Bound, cuts and the kind said inside, for the best interval."""
    best, held, others, inside = -math.inf, 0, 0, UNLEARNED
    for said in (UNLEARNED, RETRAINED):
        cuts = (of_unlearned, of_retrained) if said == UNLEARNED else (of_retrained, of_unlearned)
        total, n_cuts = cuts[0][n_values], n_values + 1
        _fewest_others(cuts, n_cuts, cuts, usable, n_cuts, n_cuts, n_cuts, total, 0, work, fewest)
        for b in range(1, total + 1):
            if fewest[b] <= cuts[1][n_values]:
                missed, caught = np.int64(total - b), np.int64(fewest[b])
                if said == UNLEARNED:
                    bound = _bound(missed, caught, logs)
                else:
                    bound = _bound(caught, missed, logs)
                if bound > best:
                    best, held, others, inside = bound, b, caught, said
    if inside == UNLEARNED:
        first, last = _interval_with(held, others, of_unlearned, of_retrained, n_values)
    else:
        first, last = _interval_with(others, held, of_unlearned, of_retrained, n_values)
    return best, first, last, inside


@njit(cache=True, nogil=True)
def held_out_errors(unlearned, retrained, fold_unlearned, fold_retrained, n_folds, margin, logs):
    """Errors of attacks that are fitted on all folds but one and judged on this one, all folds.

    Parameters
    ----------
    unlearned, retrained : float64[examples, models], the values of each example sorted
    fold_unlearned, fold_retrained : int64[examples, models], the fold of each value's model
    margin : float
        An interval is chosen if its bound on the fitting folds exceeds that of the best single
        threshold by more than this.
    logs : four float64[folds, models + 1], by the number of errors on the fitting folds
        log(high FPR), log(1 - delta - high FPR), and the same for FNR; -inf where undefined. High
        is the upper bound of a rate.

    Returns
    -------
    int64[examples, 2], false positives and false negatives, summed over the folds
    """
    n_examples, room = len(unlearned), unlearned.shape[1] + retrained.shape[1] + 2
    errors = np.zeros((n_examples, 2), np.int64)
    values, of_unlearned = np.empty(room), np.empty(room, np.int32)
    of_retrained, fewest = np.empty(room, np.int32), np.empty(room, np.uint32)
    usable = np.ones(room, np.bool_)
    work = np.empty(room, np.int32), np.empty(room, np.int32)
    work = (*work, np.empty(room, np.int32), np.empty(room, np.int32))
    for example in range(n_examples):
        for fold in range(n_folds):
            held_unlearned = fold_unlearned[example] == fold
            held_retrained = fold_retrained[example] == fold
            fit = unlearned[example][~held_unlearned], retrained[example][~held_retrained]
            n_values = _merge(*fit, values, of_unlearned, of_retrained)
            of_fold = logs[0][fold], logs[1][fold], logs[2][fold], logs[3][fold]
            best, last, inside = _best_single(of_unlearned, of_retrained, n_values, of_fold)
            first = 0
            if margin < math.inf:
                double = _best_interval(
                    of_unlearned, of_retrained, n_values, of_fold, usable, work, fewest
                )
                if double[0] > best + margin:
                    best, first, last, inside = double
            lower, upper = _threshold(first, values, n_values), _threshold(last, values, n_values)
            for value in unlearned[example][held_unlearned]:
                errors[example, 0] += (lower < value <= upper) == (inside == RETRAINED)
            for value in retrained[example][held_retrained]:
                errors[example, 1] += (lower < value <= upper) == (inside == UNLEARNED)
    return errors
