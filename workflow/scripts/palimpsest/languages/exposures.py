"""Exposure: how far before the other values of its field a model ranks a value.

Source: Carlini, Liu, Erlingsson, Kos and Song 2019, The Secret Sharer.
"""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import CONFIDENCES, SEEDS, WHOLE, Number, WrongValue, checked_number
from palimpsest.arguments import TEXT, Numbers, takes
from palimpsest.errors import nearest
from palimpsest.languages import structure
from palimpsest.languages.errors import GrammarError
from palimpsest.languages.grammar import GRAMMAR, Grammar
from palimpsest.languages.notation import Symbol
from palimpsest.languages.structure import Rule, is_of_field
from palimpsest.short_repr import short_repr
from palimpsest.statistics import CONFIDENCE, lower_bound, rounding_error, upper_bound

ANY = "any value"  # no name of a grammar file has a space
MOST_LISTED = 100_000  # derivations; the values of more are drawn


class Candidates(NamedTuple):
    """Distinct values of a field, all of them or a random sample, and how many there are."""

    values: list[str]
    n_values: int

    __repr__ = short_repr

    @property
    def are_all(self) -> bool:
        return len(self.values) == self.n_values

    def others(self, value: str) -> list[str]:
        """The values but one, whose losses `exposure` compares with the loss of this one."""
        return [other for other in self.values if other != value]


class Exposure(NamedTuple):
    """Exposure in bits, with the ends of its interval, float64[...]; all equal if it is exact."""

    bits: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    __repr__ = short_repr


@takes(grammar=GRAMMAR, field=TEXT)
def candidates(grammar: Grammar, field: str, n: int, seed: int) -> Candidates:
    """`n` distinct values of a field, or all if there are no more.

    Every value is drawn with the same probability, however rare it is in the language.

    Raises `GrammarError` if the grammar has no such field, if the field has values without end, or
    if it has more than 100,000 derivations, and a value that is drawn has several.
    """
    n = checked_number("n", n, WHOLE)
    checked_number("seed", seed, SEEDS)
    alone = _alone(grammar, field)
    n_derivations = alone.n_derivations()
    if math.isinf(n_derivations):
        raise GrammarError(
            f"{grammar.name}: the field {field} has values without end, because its rules lead "
            "back to themselves; an exposure is a rank among all values"
        )
    if n_derivations > max(MOST_LISTED, 2 * n):
        return Candidates(_drawn(alone, field, n_derivations, n, seed), round(n_derivations))
    values = structure.from_the_leaves(alone.rules, ANY, _texts)[ANY]
    if n >= len(values):
        return Candidates(values, len(values))
    order = np.random.default_rng(seed).permutation(len(values))[:n]
    return Candidates([values[place] for place in order], len(values))


@takes(loss=Numbers(), losses_of_others=Numbers())
def exposure(
    loss: ArrayLike, losses_of_others: ArrayLike, n_values: int, confidence: float = CONFIDENCE
) -> Exposure:
    """Exposure of a value: log2(n_values) - log2(rank), in bits.

    The rank is the number of values with the same loss or a lower one, the value itself included.
    So the exposure is 0 bits under a model to which all values are equal. A loss that is higher by
    a rounding error of its type counts as the same.

    Parameters
    ----------
    loss : float[...], the loss of the value under a model
    losses_of_others : float[..., m]
        Losses of other values in its place: of all others, so that m = n_values - 1 and the
        exposure is exact, or of a random sample of them. The estimate takes the value for one of
        the sample, so it is at most log2(m + 1).
    n_values : the number of values that the field can have
    confidence : float in (0, 1)
        At least so often, the interval has the exposure in it. It is Clopper and Pearson's, for the
        share of the other values with the same loss or a lower one.

    Raises `WrongValue` if a loss is NaN, or if there are no losses of others, or too many.
    """
    loss, others = np.asarray(loss), np.asarray(losses_of_others)
    n_others = others.shape[-1]
    least = Number(least=max(n_others + 1, 2), whole=True)
    n_values = checked_number("n_values", n_values, least, f": there are {n_others:,} other values")
    total = float(n_values)  # a product of large whole numbers would not fit into an array
    checked_number("confidence", confidence, CONFIDENCES)
    if not n_others or np.isnan(loss).any() or np.isnan(others).any():
        raise WrongValue("losses of other values are missing, or NaN; give a number for each value")
    stored = np.result_type(loss, others)
    rounding = rounding_error(np.abs(loss), 1, stored if stored.kind == "f" else float)
    highest = loss + rounding
    n_before = np.count_nonzero(others <= highest[..., None], axis=-1)
    beyond = (1 - confidence) / 2
    n_after = n_others - n_before
    fewest = lower_bound(n_before, n_others, beyond)
    most = upper_bound(n_before, n_others, beyond)
    # Values that were seen on one side are there for sure.
    best = np.maximum(1 + fewest * (total - 1), 1 + n_before)
    worst = np.minimum(1 + most * (total - 1), total - n_after)
    rank = total * (n_before + 1) / (n_others + 1)
    return Exposure(*(math.log2(total) - np.log2(place) for place in (rank, worst, best)))


def _alone(grammar: Grammar, field: str) -> Grammar:
    """The language of the values of a field, in which all derivations are equally probable.

    Symbols are characters. If a symbol leads back to itself, probabilities are what they were.
    """
    if field not in grammar.fields:
        known = ", ".join(grammar.fields) or "none"
        raise GrammarError(
            f"{grammar.name}: {field!r} is not one of its fields: {known}"
            f"{nearest(field, grammar.fields)}; name it in a line %field"
        )
    rules = grammar.of_characters().rules
    outside = [rule for rule in rules if not is_of_field(rule.lhs, field)]
    reached = structure.reachable(outside, grammar.start)
    symbols = [symbol for symbol in reached if is_of_field(symbol, field)]
    if not symbols:
        raise GrammarError(
            f"{grammar.name}: no text has the field {field}; use it in a rule, or delete it"
        )
    first = [Rule(ANY, (Symbol(symbol, False),), 1 / len(symbols)) for symbol in symbols]
    below = set(structure.reachable((*first, *rules), ANY))
    alone = (*first, *(rule for rule in rules if rule.lhs in below))
    if not structure.loops(alone, ANY):
        number = structure.numbers_of_derivations(alone, ANY)
        alone = tuple(
            rule._replace(probability=math.prod(map(number.get, rule.children)) / number[rule.lhs])
            for rule in alone
        )
    return Grammar(grammar.name, ANY, alone, is_text=True)


def _texts(rules: list[Rule], below: dict[str, list[str]]) -> list[str]:
    """The distinct texts of a symbol, from its rules and the texts of the symbols below."""
    found: dict[str, None] = {}
    for rule in rules:
        parts = ([s.name] if s.terminal else below[s.name] for s in rule.rhs)
        found.update(dict.fromkeys(map("".join, product(*parts))))
    return list(found)


def _drawn(alone: Grammar, field: str, n_derivations: float, n: int, seed: int) -> list[str]:
    """`n` distinct texts of a language of equally probable derivations, one for each text."""
    n_drawn, found = n, []
    while len(found) < n:
        found = list(dict.fromkeys(alone.sample(n_drawn, seed)))
        several = alone.log_probability(found) > 1e-6 - math.log(n_derivations)
        if several.any():
            raise GrammarError(
                f"{alone.name}: the field {field} has {n_derivations:,.0f} derivations, and "
                f"several give one value, such as {''.join(found[several.argmax()])!r}, so its "
                "values cannot be counted; write rules that derive each value in one way"
            )
        n_drawn *= 2
    return ["".join(string) for string in found[:n]]
