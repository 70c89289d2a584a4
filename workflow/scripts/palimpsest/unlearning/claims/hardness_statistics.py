"""The statistics that test whether strings are hard to forget, for all methods or for some.

`claim_statistics.py` explains the intervals.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from palimpsest.estimates import Estimate
from palimpsest.statistics import pair_order
from palimpsest.unlearning.claims.claim_statistics import (
    Values,
    over_problems,
    per_problem,
    statistic,
)
from palimpsest.unlearning.evaluate.samples import PROBLEM_KEYS
from palimpsest.unlearning.run.setups import ENDS, FULL, RETRAIN

FEWEST_UNTIED = 0.5  # at least this share of the comparisons of two strings must not be ties
TIE = 9  # decimals: means of equal epsilons differ by rounding

Pairs = Sequence[tuple[int, int]]


def has_full(epsilons: pd.DataFrame) -> bool:
    return bool((epsilons["setup"] == FULL).any())


class StringOrders:
    """The order of the forget strings by epsilon, for each method and repetition of a set-up.

    The set-up is `full` where it is run, because only its repetitions share no models, and the
    first one otherwise.

    `orders` is int[methods, repetitions, strings, strings], the signs of `pair_order`; the last
    method is `retrain`. Two methods are compared in different repetitions only, because two methods
    in the same repetition can share models, and so agree by chance.
    """

    def __init__(self, epsilons: pd.DataFrame):
        setups = epsilons["setup"]
        wide = (
            epsilons[setups == (FULL if has_full(epsilons) else setups.iloc[0])]
            .pivot(index=["method", "repetition"], columns="string_id", values="epsilon")
            .round(TIE)
        )
        repetitions = wide.index.unique("repetition")
        names = [name for name in wide.index.unique("method") if name not in ENDS]
        self.n_methods = len(names)
        self.has_retrain = RETRAIN in wide.index.unique("method")
        chosen = [*names, *([RETRAIN] if self.has_retrain else [])]
        index = pd.MultiIndex.from_product([chosen, repetitions], names=wide.index.names)
        values = wide.reindex(index).to_numpy()
        n_strings = values.shape[1]
        orders = np.array([pair_order(row) for row in values], dtype=int)
        self.orders = orders.reshape(len(chosen), len(repetitions), n_strings, n_strings)

    def agreement(self, pairs: Pairs) -> float:
        """Rank agreement of some pairs of methods: Goodman and Kruskal's gamma.

        Gamma is over all pairs together: the number of concordant minus the number of discordant
        comparisons of two strings, divided by the number of comparisons without a tie. NaN if there
        are no comparisons, or if more than half of them are ties.
        """
        if not pairs or self.orders.shape[1] < 2:
            return np.nan
        signed, untied = (self._products(of, pairs) for of in (self.orders, abs(self.orders)))
        n_strings, n_repetitions = self.orders.shape[-1], self.orders.shape[1]
        possible = len(pairs) * n_repetitions * (n_repetitions - 1) * n_strings * (n_strings - 1)
        return signed / untied if untied >= FEWEST_UNTIED * possible > 0 else np.nan

    @staticmethod
    def _products(orders: np.ndarray, pairs: Pairs) -> int:
        """Sum, over pairs of methods and of strings, of the products of the methods' orders.

        A product takes the two methods' orders from two different repetitions.
        """
        total = orders.sum(axis=1)
        return sum(
            (total[one] * total[other]).sum() - (orders[one] * orders[other]).sum()
            for one, other in pairs
        )

    @property
    def between(self) -> Pairs:
        return list(itertools.combinations(range(self.n_methods), 2))

    @property
    def within(self) -> Pairs:
        return [(method, method) for method in range(self.n_methods)]

    @property
    def with_retrain(self) -> Pairs:
        return [(method, self.n_methods) for method in range(self.n_methods) if self.has_retrain]


def under_full(of_problems: Values, arguments: Mapping, epsilons: pd.DataFrame) -> Estimate:
    """`over_problems` of epsilons; no interval if a problem lacks the set-up full."""
    found = over_problems(of_problems, arguments, epsilons)
    if not found.values or all(has_full(rows) for _, rows in epsilons.groupby(PROBLEM_KEYS)):
        return found
    return found.without_interval(
        "the methods start from the same original models; a verdict needs the set-up full"
    )


@statistic(
    "epsilons",
    "rank agreement (gamma) over the forget strings between the epsilons of two methods in "
    "different repetitions, minus that between a method and further retrained models; there is an "
    "interval under the set-up full only",
    limits=(-2, 2),
    estimator=under_full,
)
@per_problem
def hard_for_all(epsilons: pd.DataFrame) -> float:
    """Agreement of methods on which strings are hard, minus their agreement with `retrain`.

    No string is hard for `retrain`, so `retrain` agrees with methods by chance only. There is such
    chance, because all methods are compared with the same retrained models.

    Under other set-ups than full, all methods start from the same original models, and `retrain`
    does not. A string that is hard only by chance in the training of these models then counts as
    hard for all methods.
    """
    orders = StringOrders(epsilons)
    return orders.agreement(orders.between) - orders.agreement(orders.with_retrain)


@statistic(
    "epsilons",
    "rank agreement (gamma) of a method's epsilons in two repetitions, minus "
    "that of two methods in different repetitions",
    limits=(-2, 2),
)
@per_problem
def hard_for_some(epsilons: pd.DataFrame) -> float:
    """Agreement of a method with itself in another repetition, minus agreement with other methods.

    The expected value is 0 if all methods find the same strings hard, whatever the noise in the
    epsilons. Under other set-ups than full, the repetitions of a method start from the same
    original models. So a string that is hard for one method only by chance in their training counts
    as hard for this method.
    """
    orders = StringOrders(epsilons)
    return orders.agreement(orders.within) - orders.agreement(orders.between)
