"""The exact distribution of the length of strings, compiled.

The chart is that of `inside` for a string with known length and unknown symbols: all places are
equal, so that an entry depends on its length only. The probability that a string is longer than `n`
is that of a prefix of `n + 1` symbols. All terms are positive, so that small probabilities have as
many correct digits as large ones.
"""

import numpy as np
from numba import njit

from palimpsest.allowed import COUNTS, checked_number
from palimpsest.languages.inside import InsideTables


def lengths(tables: InsideTables, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Probability of each length, and of more symbols, float64[limit + 1], from 0 to `limit`.

    The time is in proportion to the square of `limit`, times the number of rules.
    """
    limit = checked_number("limit", limit, COUNTS)
    of_length, at_least = _lengths(
        limit + 1,
        tables.n_terminals,
        tables.n_symbols,
        tables.closure_first,
        tables.closure["symbol"].copy(),
        _weights(tables.closure),
        tables.rules_first,
        tables.rules["node"].copy(),
        tables.rules["symbol"].copy(),
        tables.begins_first,
        tables.begins["symbol"].copy(),
        _weights(tables.begins),
        tables.corners_first,
        tables.corners["symbol"].copy(),
        _weights(tables.corners),
    )
    exact = of_length[tables.start, :-1].copy()
    exact[0] = np.exp(tables.log_empty)
    # Rounding may carry a sum of probabilities past 1 by a few units in the last place.
    return np.minimum(exact, 1.0), np.minimum(at_least[tables.start, 1:], 1.0)


def _weights(steps: np.ndarray) -> np.ndarray:
    return np.ldexp(steps["weight"], 64 * steps["exponent"])


@njit(cache=True)
def _lengths(
    longest,
    n_terminals,
    n_symbols,
    closure_first,
    closure_symbol,
    closure_weight,
    rules_first,
    rules_node,
    rules_symbol,
    begins_first,
    begins_symbol,
    begins_weight,
    corners_first,
    corners_symbol,
    corners_weight,
):
    """For each symbol: probability of a length, and of at least this length, [symbol, length]."""
    of_length = np.zeros((n_symbols, longest + 1))
    at_least = np.zeros((n_symbols, longest + 1))
    shortest = np.full(n_symbols, longest + 1)
    furthest = np.zeros(n_symbols, np.int64)
    for length in range(1, longest + 1):
        own = np.zeros(n_symbols)
        part = np.zeros(n_symbols)
        if length == 1:
            own[:n_terminals] = 1.0
            part[:n_terminals] = 1.0
            at_least[:n_terminals, 1] = 1.0
        for left in range(n_symbols):
            last = min(furthest[left], length - 1)
            for rule in range(rules_first[left], rules_first[left + 1]):
                node, right = rules_node[rule], rules_symbol[rule]
                for cut in range(shortest[left], last + 1):
                    own[node] += of_length[left, cut] * of_length[right, length - cut]
                    part[node] += of_length[left, cut] * at_least[right, length - cut]
        begun = np.zeros(n_symbols)
        for symbol in range(n_symbols):
            if own[symbol] > 0:
                for step in range(closure_first[symbol], closure_first[symbol + 1]):
                    target = closure_symbol[step]
                    of_length[target, length] += own[symbol] * closure_weight[step]
                    shortest[target] = min(shortest[target], length)
                    furthest[target] = length
            if part[symbol] > 0:
                for step in range(begins_first[symbol], begins_first[symbol + 1]):
                    begun[begins_symbol[step]] += part[symbol] * begins_weight[step]
        for symbol in range(n_symbols):
            if begun[symbol] > 0:
                for step in range(corners_first[symbol], corners_first[symbol + 1]):
                    at_least[corners_symbol[step], length] += begun[symbol] * corners_weight[step]
    return of_length, at_least
