"""Compiled sweeps over the thresholds of attacks, for one example at a time.

An attack says that every value inside an interval comes from one kind of model, and every value
outside from the other kind. Its errors on two samples depend only on how many values of each sample
are inside. So the two samples are merged into their distinct values, with *cuts* before, between
and after the values: an interval is a pair of cuts, and the rest is counting. Epsilon is computed
from tables of logarithms of these counts.

One thread handles a whole example, so results do not depend on the number of threads.
"""

import math

import numpy as np
from numba import njit

# The kind of model that an attack says of the values inside.
UNLEARNED, RETRAINED = 0, 1
# An attack that Algorithm 2 discards.
DISCARDED = -math.inf
# From the released scoring code: the number of thresholds per unit, and the distance around the
# narrower sample in which the thresholds of intervals lie.
PER_UNIT, BUFFER = 100, 2.0
# Largest number of thresholds that float64 can count; realistic values need fewer.
MOST = 2.0**53


@njit(cache=True, nogil=True)
def _merge(unlearned, retrained, values, of_unlearned, of_retrained):
    """Merge two sorted samples; the number of distinct values.

    Fills `values`, and the number of values of each sample below every cut.
    """
    n_values = i = j = 0
    of_unlearned[0] = of_retrained[0] = 0
    while i < unlearned.size or j < retrained.size:
        if j == retrained.size or (i < unlearned.size and unlearned[i] <= retrained[j]):
            value = unlearned[i]
        else:
            value = retrained[j]
        while i < unlearned.size and unlearned[i] == value:
            i += 1
        while j < retrained.size and retrained[j] == value:
            j += 1
        values[n_values] = value
        n_values += 1
        of_unlearned[n_values], of_retrained[n_values] = i, j
    return n_values


@njit(cache=True, nogil=True)
def _of_errors(false_positives, false_negatives, logs):
    """Algorithm 2 for one attack: epsilon from the attack's numbers of errors."""
    if false_positives == 0 and false_negatives == 0:
        return math.inf
    if false_positives == 0 or false_negatives == 0:
        return DISCARDED
    fpr, left_of_fpr, fnr, left_of_fnr = logs
    return max(
        left_of_fpr[false_positives] - fnr[false_negatives],
        left_of_fnr[false_negatives] - fpr[false_positives],
    )


@njit(cache=True, nogil=True)
def _errors(first, last, inside, of_unlearned, of_retrained, n_values):
    """False positives and false negatives of an attack that says `inside` of values between cuts.

    Positive means: said to be retrained.
    """
    unlearned = of_unlearned[last] - of_unlearned[first]
    retrained = of_retrained[last] - of_retrained[first]
    if inside == UNLEARNED:
        return of_unlearned[n_values] - unlearned, retrained
    return unlearned, of_retrained[n_values] - retrained


@njit(cache=True, nogil=True)
def _strongest_single(of_unlearned, of_retrained, n_values, logs):
    """Epsilon, cuts and the kind said inside, for the best single threshold (first if equal)."""
    best, last, inside = DISCARDED, 0, UNLEARNED
    for cut in range(1, n_values):
        for said in (UNLEARNED, RETRAINED):
            errors = _errors(0, cut, said, of_unlearned, of_retrained, n_values)
            epsilon = _of_errors(errors[0], errors[1], logs)
            if epsilon > best:
                best, last, inside = epsilon, cut, said
    return best, 0, last, inside


@njit(cache=True, nogil=True)
def _fewest_false_negatives(of_unlearned, of_retrained, n_values, fewest):
    """Fill `fewest[false positives]` with the fewest false negatives of any interval, minus 1.

    The intervals have two thresholds, with values below and above the interval. Attacks without
    false negatives must not count. For these, 0 - 1 as an unsigned number is the largest number of
    all, so `min` ignores them without a branch.
    """
    n_unlearned, n_retrained = of_unlearned[n_values], of_retrained[n_values]
    fewest[:] = np.uint32(0xFFFFFFFF)
    for first in range(1, n_values):
        before_unlearned, before_retrained = of_unlearned[first], of_retrained[first]
        for last in range(first + 1, n_values):
            unlearned = of_unlearned[last] - before_unlearned
            retrained = of_retrained[last] - before_retrained
            outside = n_unlearned - unlearned
            fewest[outside] = min(fewest[outside], np.uint32(retrained - 1))
            fewest[unlearned] = min(fewest[unlearned], np.uint32(n_retrained - retrained - 1))


@njit(cache=True, nogil=True)
def _interval_with(unlearned, retrained, of_unlearned, of_retrained, n_values):
    """First two cuts with `unlearned` and `retrained` values between them; -1, -1 if none exist."""
    last = 0
    for first in range(n_values):
        wanted = of_unlearned[first] + of_retrained[first] + unlearned + retrained
        while last < n_values and of_unlearned[last] + of_retrained[last] < wanted:
            last += 1
        if (
            of_unlearned[last] - of_unlearned[first] == unlearned
            and of_retrained[last] - of_retrained[first] == retrained
        ):
            return first, last
    return -1, -1


@njit(cache=True, nogil=True)
def _located(false_positives, false_negatives, of_unlearned, of_retrained, n_values):
    """Cuts and the kind said inside, for the first attack with these numbers of errors."""
    n_unlearned, n_retrained = of_unlearned[n_values], of_retrained[n_values]
    first, last = _interval_with(
        n_unlearned - false_positives, false_negatives, of_unlearned, of_retrained, n_values
    )
    if first >= 0:
        return first, last, UNLEARNED
    first, last = _interval_with(
        false_positives, n_retrained - false_negatives, of_unlearned, of_retrained, n_values
    )
    return first, last, RETRAINED


@njit(cache=True, nogil=True)
def _strongest_exact(of_unlearned, of_retrained, n_values, logs, fewest):
    """Epsilon, cuts and the kind said inside, for the best attack; a single threshold if equal.

    Epsilon falls as false negatives grow. So among all attacks with the same number of false
    positives, only the attack with the fewest false negatives matters.
    """
    single = _strongest_single(of_unlearned, of_retrained, n_values, logs)
    first, last, inside = _located(0, 0, of_unlearned, of_retrained, n_values)
    if first >= 0:
        return math.inf, first, last, inside
    _fewest_false_negatives(of_unlearned, of_retrained, n_values, fewest)
    best, errors = single[0], 0
    for false_positives in range(1, fewest.size):
        if fewest[false_positives] != np.uint32(0xFFFFFFFF):
            epsilon = _of_errors(false_positives, np.int64(fewest[false_positives]) + 1, logs)
            if epsilon > best:
                best, errors = epsilon, false_positives
    if errors == 0:
        return single
    false_negatives = np.int64(fewest[errors]) + 1
    first, last, inside = _located(errors, false_negatives, of_unlearned, of_retrained, n_values)
    return best, first, last, inside


@njit(cache=True, nogil=True)
def _point(start, stop, number, i):
    """Threshold `i` of `number` evenly spaced thresholds; the last is exactly `stop`."""
    if i == number - 1 and number > 1:
        return stop
    return start + i * ((stop - start) / max(number - 1, 1))


@njit(cache=True, nogil=True)
def reachable_cuts(values, n_values):
    """bool[cuts]: whether a single threshold of the grid is between the values next to the cut."""
    reachable = np.zeros(n_values + 1, np.bool_)
    start, stop = values[0], values[n_values - 1]
    number = np.int64(min(np.ceil((stop - start) * PER_UNIT), MOST))
    for cut in range(1, n_values):
        # The first threshold above the value before the cut.
        i = np.int64((values[cut - 1] - start) / ((stop - start) / max(number - 1, 1)))
        while i > 0 and _point(start, stop, number, i - 1) > values[cut - 1]:
            i -= 1
        while i < number and _point(start, stop, number, i) <= values[cut - 1]:
            i += 1
        reachable[cut] = i < number and _point(start, stop, number, i) <= values[cut]
    return reachable


@njit(cache=True, nogil=True)
def _grid_single(values, of_unlearned, of_retrained, n_values, upper, logs):
    """The best threshold of the grid; values at or above it are said to be of the kind `upper`."""
    best, last, inside = DISCARDED, 0, 1 - upper
    reachable = reachable_cuts(values, n_values)
    for cut in range(1, n_values):
        if reachable[cut]:
            errors = _errors(0, cut, inside, of_unlearned, of_retrained, n_values)
            epsilon = _of_errors(errors[0], errors[1], logs)
            if epsilon > best:
                best, last = epsilon, cut
    return best, 0, last, inside


@njit(cache=True, nogil=True)
def _grid_double(values, of_unlearned, of_retrained, n_values, narrower, width, most, logs):
    """The best interval of the grid; values inside are said to be of the kind `narrower`.

    The sample of the kind `narrower` spans `width`, and `most` is its largest value.
    """
    best, best_first, best_last = DISCARDED, 0, 0
    start, stop = most - BUFFER, most + BUFFER
    n_right = np.int64(math.ceil((stop - start) * PER_UNIT))
    n_left = np.int64(math.ceil(2 * BUFFER * PER_UNIT))
    last = 0
    for i in range(n_right):
        right = _point(start, stop, n_right, i)
        while last < n_values and values[last] <= right:
            last += 1
        first = 0
        for j in range(n_left):
            left = _point(right - width - BUFFER, right - width + BUFFER, n_left, j)
            while first < n_values and values[first] < left:
                first += 1
            if first >= last:
                break
            errors = _errors(first, last, narrower, of_unlearned, of_retrained, n_values)
            epsilon = _of_errors(errors[0], errors[1], logs)
            if epsilon > best:
                best, best_first, best_last = epsilon, first, last
    return best, best_first, best_last, narrower


@njit(cache=True, nogil=True)
def _strongest_on_grid(
    values, of_unlearned, of_retrained, n_values, unlearned, retrained, upper, logs
):
    """Epsilon, cuts and the kind said inside, for the best attack of the grid."""
    span, other = unlearned[-1] - unlearned[0], retrained[-1] - retrained[0]
    # If both are equally wide, the sample with the smaller median counts as narrower.
    narrower = UNLEARNED if span < other or (span == other and upper == RETRAINED) else RETRAINED
    sample = unlearned if narrower == UNLEARNED else retrained
    single = _grid_single(values, of_unlearned, of_retrained, n_values, upper, logs)
    width = min(span, other)
    double = _grid_double(
        values, of_unlearned, of_retrained, n_values, narrower, width, sample[-1], logs
    )
    return double if double[0] > single[0] else single


@njit(cache=True, nogil=True)
def _midpoint(below, above):
    """A number in [below, above), in the middle if possible."""
    middle = below / 2 + above / 2
    return middle if below <= middle < above else below


@njit(cache=True, nogil=True)
def _threshold(cut, values, n_values):
    if cut == 0:
        return -math.inf
    return math.inf if cut == n_values else _midpoint(values[cut - 1], values[cut])


@njit(cache=True, nogil=True)
def strongest_attacks(unlearned, retrained, upper, exact, logs):
    """The strongest attack on every example.

    Parameters
    ----------
    unlearned, retrained : float64[examples, models], the values of each example sorted
    upper : int64[examples]
        The kind that a single threshold of the grid says of the larger values.
    exact : bool
        Whether to try all thresholds between values, or only those of the grid.
    logs : four float64[models + 1], by number of errors
        log(FPR), log(1 - delta - FPR), log(FNR), log(1 - delta - FNR), -inf where undefined.

    Returns
    -------
    epsilon, lower, upper : float64[examples]
        Infinity if an attack makes no error, -inf if all attacks are discarded.
    inside : int64[examples]
    errors : int64[examples, 2], false positives and false negatives
    """
    n_examples, room = len(unlearned), unlearned.shape[1] + retrained.shape[1] + 1
    epsilon, thresholds = np.empty(n_examples), np.empty((n_examples, 2))
    insides, errors = np.empty(n_examples, np.int64), np.zeros((n_examples, 2), np.int64)
    values, of_unlearned = np.empty(room), np.empty(room, np.int32)
    of_retrained = np.empty(room, np.int32)
    fewest = np.empty(unlearned.shape[1] + 1, np.uint32)
    for example in range(n_examples):
        samples = unlearned[example], retrained[example]
        n_values = _merge(*samples, values, of_unlearned, of_retrained)
        if exact:
            strongest = _strongest_exact(of_unlearned, of_retrained, n_values, logs, fewest)
        else:
            strongest = _strongest_on_grid(
                values, of_unlearned, of_retrained, n_values, *samples, upper[example], logs
            )
        epsilon[example], first, last, inside = strongest
        # An interval up to the largest value is a single threshold: say the other kind below it.
        if last == n_values:
            first, last, inside = 0, first, 1 - inside
        insides[example] = inside
        # The numbers are assigned one at a time: the assignment of a row takes seconds to compile,
        # because of its error message for different sizes.
        thresholds[example, 0] = _threshold(first, values, n_values)
        thresholds[example, 1] = _threshold(last, values, n_values)
        made = _errors(first, last, inside, of_unlearned, of_retrained, n_values)
        errors[example, 0], errors[example, 1] = made
    return epsilon, thresholds[:, 0], thresholds[:, 1], insides, errors
