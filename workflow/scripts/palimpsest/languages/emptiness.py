"""The probabilities with which non-terminals derive the empty string.

They are the least solution of polynomial equations: a non-terminal is empty if it takes a rule
whose symbols are all empty. Newton's method works on the logarithms, so that no probability is too
small. From below, its steps never pass the solution.

Source: Etessami and Yannakakis 2009, Recursive Markov Chains, Stochastic Grammars, and Monotone
Systems of Nonlinear Equations.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from palimpsest.languages import structure
from palimpsest.languages.structure import Rule

MOST_STEPS = 100
ROUNDING = 1e-15


def log_empty(rules: Sequence[Rule]) -> dict[str, float]:
    """Log probability of the empty string, for each non-terminal that can derive it.

    Derivations must end with probability 1, with a finite expected number of rules.
    """
    silent = [rule for rule in rules if len(rule.children) == len(rule.rhs)]
    nullable = structure.productive(silent)
    by_lhs: dict[str, list[Rule]] = defaultdict(list)
    for rule in silent:
        if nullable.issuperset(rule.children):
            by_lhs[rule.lhs].append(rule)
    below = structure.children(rule for found in by_lhs.values() for rule in found)
    known: dict[str, float] = {}
    for component in structure.strongly_connected(below, by_lhs):
        own = [rule for symbol in component for rule in by_lhs[symbol]]
        known.update(zip(component, _least_solution(component, own, known), strict=True))
    return known


def _least_solution(
    symbols: Sequence[str], rules: Sequence[Rule], known: Mapping[str, float]
) -> list[float]:
    """Log probabilities of the symbols of one component, from those of the symbols below."""
    place = {symbol: index for index, symbol in enumerate(symbols)}
    owner = np.array([place[rule.lhs] for rule in rules])
    constant = np.array([math.log(rule.probability) for rule in rules])
    times = np.zeros((len(rules), len(symbols)))
    for index, rule in enumerate(rules):
        for child in rule.children:
            if child in place:
                times[index, place[child]] += 1
            else:
                constant[index] += known[child]

    def sums(log_empty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The log probability that each rule, and each symbol, becomes empty."""
        of_rules = constant + np.where(times, times * log_empty, 0.0).sum(axis=1)
        of_symbols = np.full(len(symbols), -np.inf)
        np.logaddexp.at(of_symbols, owner, of_rules)
        return of_rules, of_symbols

    with np.errstate(invalid="ignore"):  # 0 times -inf is not taken
        found = np.full(len(symbols), -np.inf)
        while not np.isfinite(found).all():
            found = sums(found)[1]
    for _ in range(MOST_STEPS):
        of_rules, of_symbols = sums(found)
        share = np.exp(of_rules - of_symbols[owner])
        slope = np.zeros((len(symbols), len(symbols)))
        np.add.at(slope, owner, share[:, None] * times)
        step = np.linalg.solve(np.eye(len(symbols)) - slope, of_symbols - found)
        found = np.minimum(found + step, 0.0)
        if (np.abs(step) <= ROUNDING * np.maximum(1.0, np.abs(found))).all():
            break
    return found.tolist()


def nonempty(rules: Sequence[Rule], start: str, log_empty: Mapping[str, float]) -> dict[str, float]:
    """Probability of a string with at least one symbol, for `start` and non-terminals below.

    The probability is a sum over the first symbol that is not empty, because 1 - P(empty) would
    lose digits.
    """
    first: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    terminal: dict[str, float] = defaultdict(float)
    for rule in rules:
        weight = rule.probability
        for symbol in rule.rhs:
            if symbol.terminal:
                terminal[rule.lhs] += weight
                break
            first[rule.lhs][symbol.name] += weight
            weight *= math.exp(log_empty.get(symbol.name, -math.inf))
            if not weight:
                break
    return structure.solved(first, terminal, [start])


def without_empty_string(rules: Sequence[Rule], start: str) -> tuple[str, tuple[Rule, ...]]:
    """A new start symbol and rules for the strings of `start` that are not empty.

    Probabilities are divided by the probability of a string that is not empty. A new non-terminal
    `A+` stands for an `A` that is not empty. A rule of `A` whose symbols can all be empty becomes
    one rule for each of them: the symbols before are empty, this symbol is not, and those after
    are free.
    """
    empty = log_empty(rules)
    of_not_empty = nonempty(rules, start, empty)
    names = {rule.lhs for rule in rules}
    suffix = "+"
    while any(name + suffix in names for name in empty):
        suffix += "+"
    by_lhs: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_lhs[rule.lhs].append(rule)
    waiting, made = [start], {start}
    added: dict[tuple, float] = defaultdict(float)
    while waiting:
        lhs = waiting.pop()
        for rule in by_lhs[lhs]:
            weight = rule.probability / of_not_empty[lhs]
            if any(symbol.terminal or symbol.name not in empty for symbol in rule.rhs):
                added[lhs + suffix, rule.rhs] += weight
                continue
            for place, symbol in enumerate(rule.rhs):
                if of_not_empty.get(symbol.name):
                    if symbol.name not in made:
                        made.add(symbol.name)
                        waiting.append(symbol.name)
                    first = symbol._replace(name=symbol.name + suffix)
                    own = weight * of_not_empty[symbol.name]
                    added[lhs + suffix, (first, *rule.rhs[place + 1 :])] += own
                weight *= math.exp(empty[symbol.name])
    totals: dict[str, float] = defaultdict(float)  # 1 up to rounding
    for (lhs, _), weight in added.items():
        totals[lhs] += weight
    new = tuple(Rule(*sides, p / totals[sides[0]]) for sides, p in added.items() if p)
    kept = set(structure.reachable((*new, *rules), start + suffix))
    return start + suffix, (*new, *(rule for rule in rules if rule.lhs in kept))
