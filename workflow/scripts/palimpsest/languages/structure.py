"""Properties of a grammar's rules: reachability, loops, and expected totals."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from palimpsest.languages.notation import Symbol

Node = TypeVar("Node", bound=Hashable)
Value = TypeVar("Value")


class Rule(NamedTuple):
    """One expansion of a non-terminal, with its probability among that non-terminal's rules."""

    lhs: str
    rhs: tuple[Symbol, ...]
    probability: float

    def __str__(self) -> str:
        # NLTK reads no exponents.
        probability = f"[{np.format_float_positional(self.probability)}]"
        return " ".join([self.lhs, "->", *map(str, self.rhs), probability])

    @property
    def children(self) -> tuple[str, ...]:
        """The non-terminals of the right-hand side, in order and with repeats."""
        return tuple(symbol.name for symbol in self.rhs if not symbol.terminal)


def is_of_field(nonterminal: str, field: str) -> bool:
    """Whether a non-terminal derives a field: PHONE and PHONE-1 derive the field PHONE.

    So does `PHONE+`, which `Grammar.without_empty_string` makes of a PHONE that may be empty.
    """
    return nonterminal == field or nonterminal.startswith((f"{field}-", f"{field}+"))


def children(rules: Iterable[Rule]) -> dict[str, list[str]]:
    """For every left-hand side, the non-terminals in its rules, without repeats."""
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
    """The strongly connected components below `start`, every component after those it leads to."""
    return strongly_connected(children(rules), [start])


def strongly_connected(
    below: Mapping[Node, Iterable[Node]], starts: Iterable[Node]
) -> list[list[Node]]:
    """The strongly connected components of a graph, every component after those it leads to.

    Source: Tarjan 1972, with an explicit stack, since a chain of rules may be long.
    """
    order: dict[Node, int] = {}
    low: dict[Node, int] = {}
    open_nodes: list[Node] = []
    is_open: set[Node] = set()
    found: list[list[Node]] = []
    walk: list[tuple[Node, Iterator[Node]]] = []

    def enter(node: Node) -> None:
        order[node] = low[node] = len(order)
        open_nodes.append(node)
        is_open.add(node)
        walk.append((node, iter(below.get(node, ()))))

    for start in starts:
        if start not in order:
            enter(start)
        while walk:
            node, rest = walk[-1]
            child = next(rest, None)
            if child is None:
                walk.pop()
                if walk:
                    parent = walk[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == order[node]:
                    component = [open_nodes.pop()]
                    while component[-1] != node:
                        component.append(open_nodes.pop())
                    is_open.difference_update(component)
                    found.append(component[::-1])
            elif child not in order:
                enter(child)
            elif child in is_open:
                low[node] = min(low[node], order[child])
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


def growth(matrix: np.ndarray) -> float:
    """How often the non-terminals of a mean matrix lead back to themselves, per expansion."""
    return float(np.abs(np.linalg.eigvals(matrix)).max())


def ends(matrix: np.ndarray, within: float) -> bool:
    """Whether derivations have an expected number of expansions that is surely below `within`.

    `matrix` is the mean matrix of non-terminals that all lead to each other. A positive solution
    of x = 1 + M x proves that its growth is at most 1 - 1 / max(x), without eigenvalues, which
    take minutes for thousands of non-terminals.
    """
    try:
        expansions = np.linalg.solve(np.eye(len(matrix)) - matrix, np.ones(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return bool((expansions > 0.5).all() and (expansions < within).all())


def expected_totals(
    rules: Iterable[Rule], start: str, cost: Mapping[str, float]
) -> dict[str, float]:
    """The expected sum, over a derivation from a symbol, of a cost per expanded non-terminal.

    There is an entry for `start` and each non-terminal below.

    Source: Grenander 1976; Chi 1999, Statistical Properties of PCFGs, section 3.
    """
    return solved(_mean_counts(rules), cost, [start])


def expected_uses(rules: Sequence[Rule], start: str) -> np.ndarray:
    """float64[rules]: how often a derivation from `start` uses each rule, on average.

    0 for a rule that is not reachable.
    """
    above: dict[str, dict[str, float]] = defaultdict(dict)
    symbols = reachable(rules, start)
    counts = _mean_counts(rules)
    for symbol in symbols:
        for child, count in counts[symbol].items():
            above[child][symbol] = count
    times = solved(above, {start: 1.0}, symbols)
    return np.array([rule.probability * times.get(rule.lhs, 0.0) for rule in rules])


def _mean_counts(rules: Iterable[Rule]) -> dict[str, dict[str, float]]:
    """How often one expansion of a non-terminal names each of its children, on average."""
    counts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for rule in rules:
        for child in rule.children:
            counts[rule.lhs][child] += rule.probability
    return counts


def solved(
    below: Mapping[str, Mapping[str, float]], constant: Mapping[str, float], starts: Iterable[str]
) -> dict[str, float]:
    """The x with x[a] = constant[a] + the sum of below[a][b] x[b], for all a below the starts.

    Component by component: a grammar may have thousands of non-terminals, but its loops are small.
    """
    values: dict[str, float] = {}
    for component in strongly_connected(below, starts):
        place = {symbol: index for index, symbol in enumerate(component)}
        matrix, vector = np.eye(len(component)), np.zeros(len(component))
        for symbol, index in place.items():
            vector[index] = constant.get(symbol, 0.0)
            for child, weight in below.get(symbol, {}).items():
                if child in place:
                    matrix[index, place[child]] -= weight
                else:
                    vector[index] += weight * values[child]
        values.update(zip(component, np.linalg.solve(matrix, vector).tolist(), strict=True))
    return values


def expected_lengths(rules: Sequence[Rule], start: str) -> dict[str, float]:
    """Expected number of terminals of a string derived from each non-terminal below `start`."""
    terminals: dict[str, float] = defaultdict(float)
    for rule in rules:
        terminals[rule.lhs] += rule.probability * (len(rule.rhs) - len(rule.children))
    return expected_totals(rules, start, terminals)


def length_variance(rules: Sequence[Rule], start: str) -> float:
    """Variance of the number of terminals of a string derived from `start`."""
    mean = expected_lengths(rules, start)
    of_choice: dict[str, float] = defaultdict(float)
    for rule in rules:
        if rule.lhs in mean:
            length = len(rule.rhs) - len(rule.children) + sum(mean[c] for c in rule.children)
            of_choice[rule.lhs] += rule.probability * (length - mean[rule.lhs]) ** 2
    return expected_totals(rules, start, of_choice)[start]


def derivation_entropy(rules: Sequence[Rule], start: str) -> float:
    """Entropy of the derivations from `start`, in nats."""
    choice: dict[str, float] = defaultdict(float)
    for rule in rules:
        choice[rule.lhs] -= rule.probability * math.log(rule.probability)
    return expected_totals(rules, start, choice)[start]


def n_derivations(rules: Sequence[Rule], start: str) -> float:
    """Number of derivations from `start`; inf where non-terminals lead back to themselves."""
    return math.inf if loops(rules, start) else numbers_of_derivations(rules, start)[start]


def numbers_of_derivations(rules: Sequence[Rule], start: str) -> dict[str, float]:
    """Number of derivations from `start` and each symbol below; none leads back to itself."""

    def of_rules(of_symbol: list[Rule], count: dict[str, float]) -> float:
        return sum(math.prod(map(count.get, rule.children), start=1.0) for rule in of_symbol)

    return from_the_leaves(rules, start, of_rules)


def longest(rules: Sequence[Rule], start: str) -> float:
    """Most terminals that a derivation from `start` has; inf where non-terminals lead back."""
    if loops(rules, start):
        return math.inf

    def of_rules(of_symbol: list[Rule], length: dict[str, float]) -> float:
        return max(
            len(rule.rhs) - len(rule.children) + sum(length[child] for child in rule.children)
            for rule in of_symbol
        )

    return from_the_leaves(rules, start, of_rules)[start]


def from_the_leaves(
    rules: Sequence[Rule], start: str, of_rules: Callable[[list[Rule], dict[str, Value]], Value]
) -> dict[str, Value]:
    """A value of `start` and each symbol below, computed from the values of the symbols below it.

    `of_rules` gives a symbol's value from its rules and the values of their children. No symbol may
    lead back to itself.
    """
    by_lhs: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_lhs[rule.lhs].append(rule)
    values: dict[str, Value] = {}
    for (symbol,) in components(rules, start):
        values[symbol] = of_rules(by_lhs[symbol], values)
    return values
