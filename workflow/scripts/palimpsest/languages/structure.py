"""Properties of a grammar's rules: reachability, loops, and expected totals."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from palimpsest.languages.notation import Symbol


class Rule(NamedTuple):
    """One expansion of a non-terminal, with its probability among that non-terminal's rules."""

    lhs: str
    rhs: tuple[Symbol, ...]
    probability: float

    def __str__(self) -> str:
        rhs = " ".join(map(str, self.rhs))
        # NLTK reads no exponents.
        return f"{self.lhs} -> {rhs} [{np.format_float_positional(self.probability)}]"

    @property
    def children(self) -> tuple[str, ...]:
        """The non-terminals of the right-hand side, in order and as often as they stand there."""
        return tuple(symbol.name for symbol in self.rhs if not symbol.terminal)


def children(rules: Iterable[Rule]) -> dict[str, list[str]]:
    """For every left-hand side, the non-terminals that its rules name, without repeats."""
    result: dict[str, dict[str, None]] = defaultdict(dict)
    for rule in rules:
        result[rule.lhs].update(dict.fromkeys(rule.children))
    return {lhs: list(found) for lhs, found in result.items()}


def reachable(rules: Iterable[Rule], start: str) -> tuple[str, ...]:
    """The non-terminals that occur in derivations from `start`, itself first."""
    below = children(rules)
    found = dict.fromkeys([start])
    waiting = [start]
    while waiting:
        new = [child for child in below.get(waiting.pop(), []) if child not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return tuple(found)


def productive(rules: Sequence[Rule]) -> set[str]:
    """The non-terminals that derive at least one finite string."""
    parents: dict[str, list[int]] = defaultdict(list)
    missing = [len(set(rule.children)) for rule in rules]
    for index, rule in enumerate(rules):
        for child in set(rule.children):
            parents[child].append(index)
    waiting = [rule.lhs for rule, count in zip(rules, missing, strict=True) if not count]
    found = set(waiting)
    while waiting:
        for index in parents[waiting.pop()]:
            missing[index] -= 1
            if not missing[index] and rules[index].lhs not in found:
                found.add(rules[index].lhs)
                waiting.append(rules[index].lhs)
    return found


def components(rules: Iterable[Rule], start: str) -> list[list[str]]:
    """The strongly connected components below `start`, every component after those it leads to.

    Source: Tarjan 1972, with an explicit stack, since a chain of rules may be long.
    """
    below = children(rules)
    order: dict[str, int] = {start: 0}
    low = {start: 0}
    open_symbols, found = [start], []
    walk = [(start, iter(below.get(start, [])))]
    is_open = {start}
    while walk:
        symbol, rest = walk[-1]
        child = next(rest, None)
        if child is None:
            walk.pop()
            if walk:
                parent = walk[-1][0]
                low[parent] = min(low[parent], low[symbol])
            if low[symbol] == order[symbol]:
                cut = open_symbols.index(symbol)
                found.append(open_symbols[cut:])
                is_open.difference_update(open_symbols[cut:])
                del open_symbols[cut:]
        elif child not in order:
            order[child] = low[child] = len(order)
            open_symbols.append(child)
            is_open.add(child)
            walk.append((child, iter(below.get(child, []))))
        elif child in is_open:
            low[symbol] = min(low[symbol], order[child])
    return found


def loops(rules: Sequence[Rule], start: str) -> list[list[str]]:
    """The components whose non-terminals lead back to themselves, in the order of `components`."""
    below = children(rules)
    return [
        component
        for component in components(rules, start)
        if len(component) > 1 or component[0] in below.get(component[0], [])
    ]


def mean_matrix(rules: Iterable[Rule], symbols: Sequence[str]) -> np.ndarray:
    """float[symbols, symbols]: how often one expansion of the first names the second, on average.

    Rules and children outside `symbols` are left out.
    """
    index = {symbol: position for position, symbol in enumerate(symbols)}
    matrix = np.zeros((len(symbols), len(symbols)))
    for rule in rules:
        if rule.lhs not in index:
            continue
        for child in rule.children:
            if child in index:
                matrix[index[rule.lhs], index[child]] += rule.probability
    return matrix


def expected_total(
    rules: Sequence[Rule], symbols: Sequence[str], cost: Mapping[str, float]
) -> float:
    """The expected sum, over a derivation from `symbols[0]`, of a cost per expanded non-terminal.

    It is the first entry of (I - M)^-1 c, M the mean matrix; `symbols` must be closed under M.

    Source: Grenander 1976; Chi 1999, Statistical Properties of PCFGs, section 3.
    """
    matrix = mean_matrix(rules, symbols)
    vector = np.array([cost.get(symbol, 0.0) for symbol in symbols])
    return float(np.linalg.solve(np.eye(len(symbols)) - matrix, vector)[0])


def expected_uses(rules: Sequence[Rule], symbols: Sequence[str]) -> np.ndarray:
    """float64[rules]: how often a derivation from `symbols[0]` uses each rule, on average.

    It is a rule's probability times the entry of its left-hand side in the first row of
    (I - M)^-1, M the mean matrix; 0 for a rule of another non-terminal.
    """
    matrix = mean_matrix(rules, symbols)
    first = np.eye(len(symbols))[0]
    expanded = np.linalg.solve((np.eye(len(symbols)) - matrix).T, first)
    times = dict(zip(symbols, expanded.tolist(), strict=True))
    return np.array([rule.probability * times.get(rule.lhs, 0.0) for rule in rules])


def expected_length(rules: Sequence[Rule], symbols: Sequence[str]) -> float:
    """Expected number of terminals in a string derived from `symbols[0]`."""
    terminals: dict[str, float] = defaultdict(float)
    for rule in rules:
        terminals[rule.lhs] += rule.probability * (len(rule.rhs) - len(rule.children))
    return expected_total(rules, symbols, terminals)


def derivation_entropy(rules: Sequence[Rule], symbols: Sequence[str]) -> float:
    """Entropy of the derivations from `symbols[0]`, in nats."""
    choice: dict[str, float] = defaultdict(float)
    for rule in rules:
        choice[rule.lhs] -= rule.probability * math.log(rule.probability)
    return expected_total(rules, symbols, choice)


def n_derivations(rules: Sequence[Rule], start: str) -> float:
    """Number of derivations from `start`; inf where non-terminals lead back to themselves."""

    def of_rules(of_symbol: list[Rule], count: dict[str, float]) -> float:
        return sum(
            math.prod((count[child] for child in rule.children), start=1.0) for rule in of_symbol
        )

    return _from_the_leaves(rules, start, of_rules)


def longest(rules: Sequence[Rule], start: str) -> float:
    """Most terminals that a derivation from `start` has; inf where non-terminals lead back."""

    def of_rules(of_symbol: list[Rule], length: dict[str, float]) -> float:
        return max(
            len(rule.rhs) - len(rule.children) + sum(length[child] for child in rule.children)
            for rule in of_symbol
        )

    return _from_the_leaves(rules, start, of_rules)


def _from_the_leaves(
    rules: Sequence[Rule], start: str, of_rules: Callable[[list[Rule], dict[str, float]], float]
) -> float:
    """A value of `start`, worked out symbol by symbol from those below; inf if there is a loop.

    `of_rules` gives a symbol's value from its rules and the values of their children.
    """
    if loops(rules, start):
        return math.inf
    by_lhs: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_lhs[rule.lhs].append(rule)
    values: dict[str, float] = {}
    for (symbol,) in components(rules, start):
        values[symbol] = of_rules(by_lhs[symbol], values)
    return values[start]
