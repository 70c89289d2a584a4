"""Compiled sweeps over thresholds that only count: epsilons of relabelled models, in microseconds.

A relabelling keeps the values of the models and exchanges their kinds. So the values are sorted
once, and each relabelling only counts the models of each kind below every cut (see `sweeps`).

Epsilon falls with both numbers of errors. So for each number b of values of the kind inside, only
the interval with the fewest values of the other kind matters. An interval is a pair of cuts, *left*
and *right*. Let the left cut have s values of the kind inside below it, and the right cut t, with
b = t - s. Among the cuts with the same s, the highest is best; among the cuts with the same t, the
lowest. So for every t there is one loop over s, without branches, which the compiler vectorises.

The thresholds of the grid fit into the same scheme. Right thresholds are in steps of 4 / 399, and
the left thresholds of right threshold i are the points i to i + 399 of one common grid with the
same steps. So only nearby cuts form pairs: right i and left k, with i <= k <= i + 399.
"""

import math

import numpy as np
from numba import njit

from palimpsest.unlearning.attacks.sweeps import (
    BUFFER,
    DISCARDED,
    PER_UNIT,
    RETRAINED,
    UNLEARNED,
    _grid_double,
    _of_errors,
    _point,
    reachable_cuts,
)

# Stands for "no such cut". Real counts are far smaller, and the number fits into int32 and uint32.
NOTHING = 2**30
STEPS = 400  # thresholds on each side: 100 per unit, within 2 units on either side
LAST_STEP = STEPS - 1
N_LEFT = 2 * STEPS - 1  # points of the common grid of left thresholds
# A value nearer to a point of the common grid than this share of the numbers involved: rounding may
# put it on either side, so each pair with this point is computed as the plain sweep computes it.
ROUNDING = 1e-13


@njit(cache=True, nogil=True)
def _summarise_lefts(lefts, usable, n_left, total, work):
    """Best left cut for every number s of inside values below it, stored at total - s.

    Fills `work`: values of the other kind below the best cut, the place of this cut, and the same
    for the next best cut. Without a cut, the place is that of the best cut with a smaller s.
    """
    outside, place, next_outside, next_place = work
    outside[: total + 1] = next_outside[: total + 1] = -NOTHING
    place[: total + 1] = next_place[: total + 1] = -1
    for k in range(n_left):
        if not usable[k]:
            continue
        at = total - lefts[0][k]
        if outside[at] < lefts[1][k]:
            next_outside[at], next_place[at] = outside[at], place[at]
            outside[at] = lefts[1][k]
        place[at] = k
    for at in range(total - 1, -1, -1):
        if outside[at] == -NOTHING:
            place[at] = place[at + 1]


@njit(cache=True, nogil=True)
def _count_pair(rights, lefts, i, k, least, fewest):
    """Enter one pair of cuts into `fewest`; the numbers of values of both kinds in between."""
    inside, other = rights[0][i] - lefts[0][k], rights[1][i] - lefts[1][k]
    if inside >= 1 and other >= least:
        fewest[inside] = min(fewest[inside], np.uint32(other - least))
    return inside, other


@njit(cache=True, nogil=True)
def _count_farthest(rights, n_right, lefts, usable, back, reach, i, total, least, fewest):
    """Enter right cut i with its farthest left cut, which may not be the best one with its s.

    If there are no others in between, also enter the next pairs with the same values inside. True
    if the pair has all `total` values of the kind inside and no others.
    """
    k = i + reach
    while k >= max(i - back, 0) and not usable[k]:
        k -= 1
    if k < max(i - back, 0):
        return False
    inside, other = _count_pair(rights, lefts, i, k, least, fewest)
    if inside < 1 or other >= least:
        return False
    nearer, farther = k, i
    while other < least and nearer > max(i - back, 0):
        nearer -= 1
        if usable[nearer]:
            if lefts[0][nearer] != lefts[0][k]:
                break
            other = _count_pair(rights, lefts, i, nearer, least, fewest)[1]
    other = 0
    while other < least and farther + 1 < min(n_right, k + back + 1):
        farther += 1
        if rights[0][farther] != rights[0][i]:
            break
        other = _count_pair(rights, lefts, farther, k, least, fewest)[1]
    return inside == total


@njit(cache=True, nogil=True)
def _fewest_others(rights, n_right, lefts, usable, n_left, back, reach, total, least, work, fewest):
    """Fewest values of the other kind in any interval with b values of the kind inside.

    Fills `fewest[b]` with this number minus `least`; intervals with fewer than `least` do not
    count. True if an interval has all `total` values of the kind inside and no others.

    rights, lefts : two int32[cuts], values of the kind inside, and others, below every cut
    usable : bool[n_left]
    back, reach : right cut i and left cut k form a pair if i - back <= k <= i + reach
    """
    _summarise_lefts(lefts, usable, n_left, total, work)
    outside, place, next_outside, next_place = work
    fewest[: total + 1] = NOTHING
    lowest = highest = 0
    stop = 0
    while stop < n_right:
        i, t, below = stop, rights[0][stop], rights[1][stop]
        following = -1  # the next right cut with the same t and more of the others below
        while stop < n_right and rights[0][stop] == t:
            if following < 0 and rights[1][stop] > below:
                following = stop
            if (
                stop + reach < n_left
                and t > 0
                and _count_farthest(
                    rights, n_right, lefts, usable, back, reach, stop, total, least, fewest
                )
            ):
                return True
            stop += 1
        while lowest <= total and place[total - lowest] < i - back:
            lowest += 1
        while highest < total and place[total - highest - 1] <= i + reach:
            highest += 1
        high = min(highest, t - 1)
        if lowest > high or place[total - high] > i + reach:
            continue
        into = fewest[t - high : t - lowest + 1]
        best = outside[total - high : total - lowest + 1]
        less = np.int32(below - least)
        for j in range(into.size):
            into[j] = min(into[j], np.uint32(np.int32(less - best[j])))
        if least == 0:
            continue
        # Intervals without others do not count, so the next best cut on either side does.
        for s in range(high, lowest - 1, -1):
            at = total - s
            if outside[at] == -NOTHING:
                continue
            if outside[at] != below:
                break
            b = t - s
            if b == total:
                return True
            if following >= 0 and place[at] >= following - back:
                fewest[b] = min(fewest[b], np.uint32(rights[1][following] - below - 1))
            if next_outside[at] != -NOTHING and next_place[at] >= i - back:
                fewest[b] = min(fewest[b], np.uint32(below - next_outside[at] - 1))
    return False


@njit(cache=True, nogil=True)
def _best_epsilon(fewest, inside, n_inside, n_other, logs):
    """Epsilon of the best attack by the fewest others; -inf if all attacks are discarded."""
    best = DISCARDED
    for b in range(1, n_inside):
        if fewest[b] < NOTHING - n_other:
            others = np.int64(fewest[b]) + 1
            missed = n_inside - b
            if inside == UNLEARNED:
                epsilon = _of_errors(missed, others, logs)
            else:
                epsilon = _of_errors(others, missed, logs)
            best = max(best, epsilon)
    return best


@njit(cache=True, nogil=True)
def _exact(below, n_values, logs, usable, work, fewest):
    """Epsilon of the best interval, for both kinds inside. `below` has the counts by kind."""
    best = DISCARDED
    for inside in (UNLEARNED, RETRAINED):
        cuts = (below[inside], below[1 - inside])
        n_cuts, total, other = n_values + 1, cuts[0][n_values], cuts[1][n_values]
        perfect = _fewest_others(
            cuts, n_cuts, cuts, usable, n_cuts, n_cuts, n_cuts, total, 1, work, fewest
        )
        if perfect:
            return math.inf
        best = max(best, _best_epsilon(fewest, inside, total, other, logs))
    return best


@njit(cache=True, nogil=True)
def _exact_without_ties(labels, order, logs, others_below, fewest):
    """The same as `_exact` if no two values are equal, and several times faster.

    An interval from one value of the kind inside to another is best, so only the number of others
    below each of these values is needed. If some interval has b of the kind inside and no others,
    another one has b and one other: at an end of its run of values of one kind.
    """
    counts = np.zeros(2, np.int32)
    for place in range(order.size):
        kind = labels[order[place]]
        others_below[kind, counts[kind]] = counts[1 - kind]
        counts[kind] += 1
    best = DISCARDED
    for inside in (UNLEARNED, RETRAINED):
        total, below = counts[inside], others_below[inside]
        if below[total - 1] == below[0]:
            return math.inf
        for b in range(1, total):
            first, last = below[: total - b + 1], below[b - 1 : total]
            least = np.int32(NOTHING)
            for j in range(first.size):
                others = np.int32(last[j] - first[j])
                least = others if others < least else least
            fewest[b] = max(least, 1) - 1
        best = max(best, _best_epsilon(fewest, inside, total, counts[1 - inside], logs))
    return best


@njit(cache=True, nogil=True)
def _ranked(values, below, rank):
    """The value with this rank in a sample, from 0; `below` has the sample's counts at the cuts."""
    low, high = 0, below.size - 1
    while low < high:
        middle = (low + high) // 2
        if below[middle] > rank:
            high = middle
        else:
            low = middle + 1
    return values[low - 1]


@njit(cache=True, nogil=True)
def _median(values, below, n):
    """The median of a sample, with NumPy's arithmetic."""
    upper = _ranked(values, below, n // 2)
    return upper if n % 2 else (_ranked(values, below, n // 2 - 1) + upper) / 2


@njit(cache=True, nogil=True)
def _single(below, reachable, n_values, upper, logs):
    """Epsilon of the best single threshold of the grid."""
    best = DISCARDED
    n_unlearned, n_retrained = below[UNLEARNED][n_values], below[RETRAINED][n_values]
    for cut in range(1, n_values):
        if reachable[cut]:
            unlearned, retrained = below[UNLEARNED][cut], below[RETRAINED][cut]
            if upper == RETRAINED:
                epsilon = _of_errors(n_unlearned - unlearned, retrained, logs)
            else:
                epsilon = _of_errors(unlearned, n_retrained - retrained, logs)
            best = max(best, epsilon)
    return best


@njit(cache=True, nogil=True)
def _right_thresholds(values, n_values, most, points, cuts, inside, other, rights):
    """Fill the right thresholds of the grid, their cuts, and the counts below these cuts."""
    last = 0
    for i in range(STEPS):
        points[i] = _point(most - BUFFER, most + BUFFER, STEPS, i)
        while last < n_values and values[last] <= points[i]:
            last += 1
        cuts[i], rights[0][i], rights[1][i] = last, inside[last], other[last]


@njit(cache=True, nogil=True)
def _left_thresholds(values, n_values, most, width, cuts, inside, other, lefts, usable):
    """Fill the common grid of left thresholds; a point is not usable if rounding may decide."""
    begin, step = most - width - 2 * BUFFER, 2 * BUFFER / LAST_STEP
    near = ROUNDING * (abs(most) + width + 4 * BUFFER)
    first = 0
    for k in range(N_LEFT):
        point = begin + k * step
        while first < n_values and values[first] < point:
            first += 1
        cuts[k], lefts[0][k], lefts[1][k] = first, inside[first], other[first]
        above = first == n_values or values[first] - point > near
        usable[k] = above and (first == 0 or point - values[first - 1] > near)


@njit(cache=True, nogil=True)
def _count_near_values(values, n_values, width, points, grid, below, total, fewest):
    """Enter all pairs with the left thresholds that are not usable, as the plain sweep has them.

    True if an interval has all values of the kind inside and no others.
    """
    right_cuts, left_cuts, usable = grid
    inside, other = below
    for k in range(N_LEFT):
        if usable[k]:
            continue
        first = left_cuts[k]
        for i in range(max(0, k - LAST_STEP), min(k, LAST_STEP) + 1):
            start, stop = points[i] - width - BUFFER, points[i] - width + BUFFER
            left = _point(start, stop, STEPS, k - i)
            while first > 0 and values[first - 1] >= left:
                first -= 1
            while first < n_values and values[first] < left:
                first += 1
            last = right_cuts[i]
            held, others = inside[last] - inside[first], other[last] - other[first]
            if held < 1:
                continue
            if held == total and others == 0:
                return True
            if others >= 1:
                fewest[held] = min(fewest[held], np.uint32(others - 1))
    return False


@njit(cache=True, nogil=True)
def _double(values, below, n_values, narrower, width, most, logs, room):
    """Epsilon of the best interval of the grid; values inside are said to be of `narrower`."""
    n_right = np.int64(math.ceil(((most + BUFFER) - (most - BUFFER)) * PER_UNIT))
    if n_right != STEPS:  # by rounding; then the left thresholds have no common grid
        return _grid_double(
            values, below[UNLEARNED], below[RETRAINED], n_values, narrower, width, most, logs
        )[0]
    work, fewest, points, right_cuts, rights, left_cuts, lefts, usable = room
    inside, other = below[narrower], below[1 - narrower]
    total = inside[n_values]
    _right_thresholds(values, n_values, most, points, right_cuts, inside, other, rights)
    _left_thresholds(values, n_values, most, width, left_cuts, inside, other, lefts, usable)
    if _fewest_others(
        rights, STEPS, lefts, usable, N_LEFT, 0, LAST_STEP, total, 1, work, fewest
    ) or _count_near_values(
        values,
        n_values,
        width,
        points,
        (right_cuts, left_cuts, usable),
        (inside, other),
        total,
        fewest,
    ):
        return math.inf
    return _best_epsilon(fewest, narrower, total, other[n_values], logs)


@njit(cache=True, nogil=True)
def _on_grid(values, below, n_values, reachable, narrow, logs, room):
    """Epsilon of the best attack of the grid, infinity if one sample is far narrower."""
    n = below[UNLEARNED][n_values], below[RETRAINED][n_values]
    most = _ranked(values, below[0], n[0] - 1), _ranked(values, below[1], n[1] - 1)
    span = most[0] - _ranked(values, below[0], 0)
    other = most[1] - _ranked(values, below[1], 0)
    if min(span, other) < narrow * max(span, other):
        return math.inf
    larger = _median(values, below[1], n[1]) > _median(values, below[0], n[0])
    upper = RETRAINED if larger else UNLEARNED
    narrower = UNLEARNED if span < other or (span == other and upper == RETRAINED) else RETRAINED
    single = _single(below, reachable, n_values, upper, logs)
    width = min(span, other)
    double = _double(values, below, n_values, narrower, width, most[narrower], logs, room)
    return max(single, double)


@njit(cache=True, nogil=True)
def _distinct(pooled, values, ends):
    """Fill the distinct values of a sorted sample, and the values below every cut; their number."""
    n_values = 0
    ends[0] = 0
    for place in range(pooled.size):
        if place == 0 or pooled[place] != pooled[place - 1]:
            values[n_values] = pooled[place]
            n_values += 1
        ends[n_values] = place + 1
    return n_values


@njit(cache=True, nogil=True)
def _count_below(labels, order, ends, n_values, below):
    """Fill the numbers of values of each kind below every cut, under these labels."""
    retrained = place = 0
    below[0][0] = below[1][0] = 0
    for cut in range(1, n_values + 1):
        while place < ends[cut]:
            retrained += labels[order[place]]
            place += 1
        below[RETRAINED][cut], below[UNLEARNED][cut] = retrained, place - retrained


@njit(cache=True, nogil=True)
def epsilons(pooled, order, labels, exact, narrow, logs):
    """Epsilon of every example under every labelling of the models.

    Parameters
    ----------
    pooled : float64[examples, models], the values of each example sorted
    order : int64[examples, models], the models in the order of these values
    labels : uint8[labellings, models]
        1 for retrained; equally many in every labelling, and 2 or more of each kind.
    exact : bool
        Whether to try all thresholds between values, or only those of the grid.
    narrow : float
        On the grid, a sample with less than this share of the other's span counts as separated.
    logs : see `sweeps.strongest_attacks`

    Returns
    -------
    float64[labellings, examples]
        Infinity if an attack makes no error, -inf if all attacks are discarded.
    """
    n_examples, n_models = pooled.shape
    found = np.empty((len(labels), n_examples))
    values, ends = np.empty(n_models), np.empty(n_models + 1, np.int32)
    counts = np.empty((2, n_models + 1), np.int32)
    size = n_models + 2
    work = np.empty(size, np.int32), np.empty(size, np.int32)
    work = (*work, np.empty(size, np.int32), np.empty(size, np.int32))
    fewest, all_usable = np.empty(size, np.uint32), np.ones(size, np.bool_)
    right = np.empty(STEPS, np.int32), np.empty(STEPS, np.int32)
    left = np.empty(N_LEFT, np.int32), np.empty(N_LEFT, np.int32)
    room = (
        work,
        fewest,
        np.empty(STEPS),
        np.empty(STEPS, np.int32),
        right,
        np.empty(N_LEFT, np.int32),
        left,
        np.empty(N_LEFT, np.bool_),
    )
    for example in range(n_examples):
        n_values = _distinct(pooled[example], values, ends)
        below = counts[0, : n_values + 1], counts[1, : n_values + 1]
        reachable = reachable_cuts(values, n_values)
        for labelling in range(len(labels)):
            kinds = labels[labelling]
            if exact and n_values == n_models:
                epsilon = _exact_without_ties(kinds, order[example], logs, counts, fewest)
                found[labelling, example] = epsilon
                continue
            _count_below(kinds, order[example], ends, n_values, below)
            if exact:
                epsilon = _exact(below, n_values, logs, all_usable, work, fewest)
            else:
                epsilon = _on_grid(values, below, n_values, reachable, narrow, logs, room)
            found[labelling, example] = epsilon
    return found
