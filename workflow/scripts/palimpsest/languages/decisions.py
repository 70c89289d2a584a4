"""Which rules of a grammar decide each symbol of a string, and how hard each symbol is to predict.

The loss of a symbol under the language is -log P(symbol | the symbols before it). A derivation of
the string is a list of choices of rules, from the top down and from left to right. A learner of
these choices, one after another, predicts the symbol better and better, and is certain in the end:

    gain of choice k = log P(symbol | symbols before it, choices 1 to k)
                     - log P(symbol | symbols before it, choices 1 to k - 1)

The gains of all choices sum to the loss of the symbol. By Bayes' theorem, a gain is also what the
symbol tells about the choice; over all symbols of a string with one derivation and a known end, the
gains of a choice therefore sum to minus the log probability of its rule. A symbol is shared among
the rules of its choices in proportion to the positive part of their gains. Where a string has
several derivations, the shares are averaged over draws from their posterior distribution.

The probabilities are inside and prefix sums over charts (see `inside`), where each symbol is
divided by its own probability, so that numbers of long strings stay within a float64. Memory grows
with the square of a string's length, times the number of rules and the depth of the derivation.
"""

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit

from palimpsest.languages import structure
from palimpsest.languages.closures import log_geometric_sum
from palimpsest.languages.emptiness import log_empty
from palimpsest.languages.errors import GrammarError
from palimpsest.languages.grammar import Grammar
from palimpsest.languages.structure import Rule

DRAWS = 16  # derivations of each string that has several
CERTAIN = 1e-9  # nats; a symbol with a smaller loss is determined by the symbols before it
LARGEST_LOSS = 600.0  # nats; a float64 holds the inverse of the symbol's probability up to 700


@dataclass(frozen=True)
class Decisions:
    """The symbols of some strings, end to end, with their losses and the rules that decide them.

    `loss` float64[symbols] is in nats, under the language. `share` float64[symbols, rules + 1] sums
    to 1 for every symbol: the columns are `rules`, which are the reachable rules of non-terminals
    with a choice, and last the share of no rule, 1 for a symbol that the symbols before it
    determine. `lengths` int[strings] is the number of symbols of each string, with the end if that
    is predicted.
    """

    rules: tuple[Rule, ...]
    lengths: np.ndarray
    loss: np.ndarray
    share: np.ndarray


def decisions(grammar: Grammar, strings: Sequence[Sequence[str]], predict_end: bool) -> Decisions:
    """The losses of the symbols of some strings, and the rules that decide them.

    With `predict_end`, the end of a string is a symbol too. The draws of derivations depend on the
    string only.

    Raises `ValueError` if a string is not in the language, or if a symbol of it is less probable
    than exp(-600).
    """
    asked = _Asked(grammar, predict_end)
    lengths = np.array([len(string) + predict_end for string in strings], dtype=int)
    losses = [np.zeros(0), *(asked.losses(string) for string in strings)]
    shares = [np.zeros((0, len(asked.rules) + 1))]
    for string, loss in zip(strings, losses[1:], strict=True):
        shares.append(asked.shares(string, loss))
    return Decisions(asked.rules, lengths, np.concatenate(losses), np.concatenate(shares))


def levels(grammar: Grammar) -> dict[str, int]:
    """For every reachable non-terminal, the fewest steps of rules from the start, which is 0."""
    below = structure.children(grammar.rules)
    found, row = {grammar.start: 0}, [grammar.start]
    while row:
        depth = found[row[0]] + 1
        row = [child for symbol in row for child in below.get(symbol, [])]
        row = [child for child in dict.fromkeys(row) if child not in found]
        found.update(dict.fromkeys(row, depth))
    return found


class _Tables(NamedTuple):
    """A grammar for the charts: symbols are terminals, then non-terminals; the last is the start.

    Item `first[r] + k` is the beginning of rule r with k + 1 symbols.
    """

    n_terminals: int
    lhs: np.ndarray  # of every rule, as the place of the non-terminal
    weight: np.ndarray  # probability of every rule
    column: np.ndarray  # of every rule in the shares; -1 where there is no choice
    first: np.ndarray
    rhs: np.ndarray
    # float64[non-terminals, non-terminals]: weights of all chains from the first down to the
    # second, of unary steps, and of leftmost symbols; all other symbols, and all symbols further
    # left, are empty
    unary: np.ndarray
    corner: np.ndarray
    empty: np.ndarray  # float64[non-terminals]: probability of the empty string


class _Asked:
    """A grammar, and whether the end of a string is predicted."""

    def __init__(self, grammar: Grammar, predict_end: bool):
        self.grammar, self.predict_end = grammar, predict_end

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        reachable = levels(self.grammar)
        n_rules = Counter(rule.lhs for rule in self.grammar.rules)
        return tuple(
            rule for rule in self.grammar.rules if rule.lhs in reachable and n_rules[rule.lhs] > 1
        )

    def losses(self, string: Sequence[str]) -> np.ndarray:
        """-log P(symbol | symbols before it), float64[symbols], in nats."""
        prefixes = [tuple(string[:n]) for n in range(len(string) + 1)]
        log_probs = self.grammar.log_prefix_probability(prefixes)
        whole = self.grammar.log_probability([tuple(string)])
        if self.predict_end:
            log_probs = np.append(log_probs, whole)
        if not np.isfinite(whole).all():
            raise ValueError(f"{' '.join(string)}: is not a string of {self.grammar.name}")
        # Rounding may make a certain symbol a little less or more than certain.
        losses = np.maximum(-np.diff(log_probs), 0.0)
        if losses.max(initial=0.0) > LARGEST_LOSS:
            place = int(losses.argmax())
            raise GrammarError(
                f"{self.grammar.name}: symbol {place + 1} of a string has a loss of "
                f"{losses[place]:.0f} nats; rules can share at most {LARGEST_LOSS:.0f}: leave the "
                "string out, or give higher probabilities to its rules"
            )
        return losses

    def shares(self, string: Sequence[str], loss: np.ndarray) -> np.ndarray:
        """float64[symbols, rules + 1], see `Decisions`."""
        codes = np.array([self._codes[symbol] for symbol in string], dtype=np.int64)
        if self.predict_end:
            codes = np.append(codes, len(self.grammar.terminals))
        random = np.random.default_rng(zlib.crc32(" ".join(string).encode()))
        share = _shares(random, codes, np.exp(loss), len(self.rules), DRAWS, *self._tables)
        is_free = loss > CERTAIN
        return np.where(is_free[:, None], share, np.eye(share.shape[1])[-1])

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {terminal: code for code, terminal in enumerate(self.grammar.terminals)}

    @cached_property
    def _tables(self) -> _Tables:
        grammar, names = self.grammar, list(levels(self.grammar))
        n_terminals = len(grammar.terminals) + self.predict_end
        place = {name: n_terminals + index for index, name in enumerate(names)}
        rules = [rule for rule in grammar.rules if rule.lhs in place]
        rhs = [
            [self._codes[s.name] if s.terminal else place[s.name] for s in rule.rhs]
            for rule in rules
        ]
        lhs = [place[rule.lhs] - n_terminals for rule in rules]
        column = {rule: index for index, rule in enumerate(self.rules)}
        # The last rule is for the whole string, with its end.
        whole = [place[grammar.start], *([n_terminals - 1] if self.predict_end else [])]
        rhs, lhs = [*rhs, whole], np.array([*lhs, len(names)])
        weight = np.array([*(rule.probability for rule in rules), 1.0])
        log_empties = log_empty(rules)
        empty = np.exp([*(log_empties.get(name, -np.inf) for name in names), -np.inf])
        unary, corner = np.zeros((2, len(names) + 1, len(names) + 1))
        for left, right, probability in zip(lhs, rhs, weight, strict=True):
            may_be_empty = [empty[s - n_terminals] if s >= n_terminals else 0.0 for s in right]
            for place_in_rule, symbol in enumerate(right):
                before = probability * np.prod(may_be_empty[:place_in_rule])
                if symbol >= n_terminals:
                    corner[left, symbol - n_terminals] += before
                    others = np.prod(may_be_empty[place_in_rule + 1 :])
                    unary[left, symbol - n_terminals] += before * others
        with np.errstate(divide="ignore"):
            chains = [np.exp(log_geometric_sum(np.log(steps))) for steps in (unary, corner)]
        return _Tables(
            n_terminals,
            lhs,
            weight,
            np.array([*(column.get(rule, -1) for rule in rules), -1]),
            np.cumsum([0, *map(len, rhs)]),
            np.concatenate(rhs).astype(np.int64),
            *chains,
            empty,
        )


@njit(cache=True)
def _shares(
    random,
    string,
    scale,
    n_columns,
    draws,
    n_terminals,
    lhs,
    weight,
    column,
    first,
    rhs,
    unary,
    corner,
    empty,
):
    """Shares float64[symbols, columns + 1] of one string of the language."""
    length = string.size
    share = np.zeros((length, n_columns + 1))
    inside, items, cuts, n_cuts = _inside(
        string, scale, n_terminals, lhs, weight, first, rhs, unary, empty
    )
    start = unary.shape[0] - 1
    prefix = _prefixes(
        string, scale, items, cuts, n_cuts, n_terminals, lhs, weight, first, rhs, corner
    )
    n_draws = 0
    while n_draws < draws:
        nodes, children, probability = _derivation(
            random, string, scale, inside, items, n_terminals, lhs, weight, first, rhs
        )
        gains = _gains(
            string,
            scale,
            inside,
            prefix,
            nodes,
            children,
            n_columns,
            n_terminals,
            lhs,
            column,
            first,
            rhs,
        )
        for place in range(length):
            total = gains[place].sum()
            if total > 0:
                share[place] += gains[place] / total
        n_draws += 1
        if probability > (1 - 1e-9) * inside[start, 0, length]:
            break
    return share / n_draws


@njit(cache=True)
def _inside(string, scale, n_terminals, lhs, weight, first, rhs, unary, empty):
    """Inside sums [non-terminals, begin, end], and of items [items, begin, end].

    `cuts[item, begin, : n_cuts[item, begin]]` are the ends where an item is not zero: few, so that
    sums over them are short. Where an item ends at its begin, all of its symbols are empty.
    """
    length, n_rules, n_names = string.size, lhs.size, unary.shape[0]
    inside = np.zeros((n_names, length + 1, length + 1))
    items = np.zeros((rhs.size, length + 1, length + 1))
    cuts = np.zeros((rhs.size, length + 1, length + 1), np.int32)
    n_cuts = np.zeros((rhs.size, length + 1), np.int32)
    own = np.zeros(n_names)
    for begin in range(length, -1, -1):
        for name in range(n_names):
            inside[name, begin, begin] = empty[name]
        for rule in range(n_rules):
            all_empty = 1.0
            for item in range(first[rule], first[rule + 1]):
                is_terminal = rhs[item] < n_terminals
                all_empty *= 0.0 if is_terminal else empty[rhs[item] - n_terminals]
                if all_empty > 0:
                    items[item, begin, begin] = all_empty
                    cuts[item, begin, 0] = begin
                    n_cuts[item, begin] = 1
        for end in range(begin + 1, length + 1):
            # Items in which no non-terminal derives everything from begin to end by itself.
            own[:] = 0.0
            for rule in range(n_rules):
                total = 0.0
                for item in range(first[rule], first[rule + 1]):
                    symbol, is_first, shorter = rhs[item], item == first[rule], total
                    total = 0.0
                    if symbol < n_terminals:
                        if string[end - 1] == symbol:
                            if not is_first:
                                total = items[item - 1, begin, end - 1] * scale[end - 1]
                            elif end - 1 == begin:
                                total = scale[begin]
                    elif not is_first:
                        of_symbol = inside[symbol - n_terminals]
                        for index in range(n_cuts[item - 1, begin]):
                            cut = cuts[item - 1, begin, index]
                            if cut > begin:
                                total += items[item - 1, begin, cut] * of_symbol[cut, end]
                        total += shorter * empty[symbol - n_terminals]
                    items[item, begin, end] = total
                own[lhs[rule]] += weight[rule] * total
            for source in range(n_names):
                if own[source] != 0:
                    for target in range(n_names):
                        inside[target, begin, end] += unary[target, source] * own[source]
            # Items in which one non-terminal does, and all others are empty
            for rule in range(n_rules):
                alone = 0.0
                for item in range(first[rule], first[rule + 1]):
                    name = rhs[item] - n_terminals
                    if name < 0:
                        alone = 0.0
                    else:
                        before = 1.0 if item == first[rule] else items[item - 1, begin, begin]
                        alone = before * inside[name, begin, end] + alone * empty[name]
                    items[item, begin, end] += alone
                    if items[item, begin, end] > 0:
                        cuts[item, begin, n_cuts[item, begin]] = end
                        n_cuts[item, begin] += 1
    return inside, items, cuts, n_cuts


@njit(cache=True)
def _prefixes(string, scale, items, cuts, n_cuts, n_terminals, lhs, weight, first, rhs, corner):
    """For each non-terminal, all strings that begin with a part: [non-terminals, begin, end]."""
    length, n_rules, n_names = string.size, lhs.size, corner.shape[0]
    prefix = np.zeros((n_names, length + 1, length + 1))
    own = np.zeros(n_names)
    for begin in range(length - 1, -1, -1):
        for end in range(begin + 1, length + 1):
            own[:] = 0.0
            for rule in range(n_rules):
                total = 0.0
                for item in range(first[rule], first[rule + 1]):
                    symbol, is_first = rhs[item], item == first[rule]
                    if symbol < n_terminals:
                        if string[end - 1] == symbol:
                            if not is_first:
                                total += items[item - 1, begin, end - 1] * scale[end - 1]
                            elif end - 1 == begin:
                                total += scale[begin]
                    elif not is_first:
                        of_symbol = prefix[symbol - n_terminals]
                        for index in range(n_cuts[item - 1, begin]):
                            cut = cuts[item - 1, begin, index]
                            if begin < cut < end:
                                total += items[item - 1, begin, cut] * of_symbol[cut, end]
                own[lhs[rule]] += weight[rule] * total
            for source in range(n_names):
                if own[source] != 0:
                    for target in range(n_names):
                        prefix[target, begin, end] += corner[target, source] * own[source]
    return prefix


@njit(cache=True)
def _pick(weights, n, random):
    left = random.random() * weights[:n].sum()
    for place in range(n):
        left -= weights[place]
        if left < 0:
            return place
    return np.flatnonzero(weights[:n])[-1]


@njit(cache=True)
def _derivation(random, string, scale, inside, items, n_terminals, lhs, weight, first, rhs):
    """A derivation drawn from the posterior: its nodes (rule, begin), children, and probability.

    `children[n, k]` is the node of symbol k of node n's rule, or -1 for a terminal.
    """
    widest = 0
    for rule in range(lhs.size):
        widest = max(widest, first[rule + 1] - first[rule])
    nodes = [(np.int64(0), np.int64(0))]
    nodes.clear()
    children = [np.zeros(widest, np.int64)]
    children.clear()
    probability = 1.0
    waiting = [(inside.shape[0] - 1, 0, string.size, -1, 0)]
    weights = np.zeros(max(lhs.size, string.size + 1))
    while len(waiting) > 0:
        name, begin, end, parent, place = waiting.pop()
        for rule in range(lhs.size):
            weights[rule] = 0.0
            if lhs[rule] == name:
                last = first[rule + 1] - 1
                if last >= first[rule]:
                    weights[rule] = weight[rule] * items[last, begin, end]
                elif begin == end:
                    weights[rule] = weight[rule]
        rule = _pick(weights, lhs.size, random)
        probability *= weight[rule]
        node = len(nodes)
        nodes.append((np.int64(rule), np.int64(begin)))
        children.append(np.full(widest, -1))
        if parent >= 0:
            children[parent][place] = node
        for item in range(first[rule + 1] - 1, first[rule] - 1, -1):
            symbol = rhs[item]
            cut = begin
            if symbol < n_terminals:
                probability *= scale[end - 1]
                cut = end - 1
            else:
                if item > first[rule]:
                    for tried in range(end + 1):
                        before, after = (
                            items[item - 1, begin, tried],
                            inside[symbol - n_terminals, tried, end],
                        )
                        weights[tried] = before * after
                    cut = _pick(weights, end + 1, random)
                waiting.append((symbol - n_terminals, cut, end, node, item - first[rule]))
            end = cut
    return nodes, children, probability


@njit(cache=True)
def _in_front(symbol, begin, rest, string, scale, inside, prefix, n_terminals):
    """Put a symbol in front of a sequence: `rest[from, to]`, in place, for all `from` >= begin.

    `rest[from, to]` is the probability that the derived string of the sequence begins with the
    symbols between the two places.
    """
    length = string.size
    for start in range(begin, length):
        if symbol < n_terminals:
            matches = string[start] == symbol
            for end in range(length, start, -1):
                after = 1.0 if end == start + 1 else rest[start + 1, end]
                rest[start, end] = scale[start] * after if matches else 0.0
            continue
        of_symbol = inside[symbol - n_terminals, start]
        for end in range(start + 1, length + 1):
            rest[start, end] *= of_symbol[start]  # the symbol is empty
            rest[start, end] += prefix[symbol - n_terminals, start, end]
        for cut in range(start + 1, length):
            if of_symbol[cut] != 0:
                for end in range(cut + 1, length + 1):
                    rest[start, end] += of_symbol[cut] * rest[cut, end]


@njit(cache=True)
def _gains(
    string, scale, inside, prefix, nodes, children, n_columns, n_terminals, lhs, column, first, rhs
):
    """Positive parts of the gains [symbols, columns + 1] of the choices of one derivation.

    The nodes are visited from right to left, so that the sequence after a node is known when the
    node is reached. `rests[d]` is the sequence after the current symbol, in the rule of the node at
    depth d.
    """
    length = string.size
    gains = np.zeros((length, n_columns + 1))
    at, remaining = [0], [first[nodes[0][0] + 1] - first[nodes[0][0]]]
    rests = [np.zeros((length + 1, length + 1))]
    befores = [np.zeros(length + 1)]
    while len(at) > 0:
        depth = len(at) - 1
        node, rest = at[depth], rests[depth]
        rule, begin = nodes[node]
        k = remaining[depth]
        if k > 0:
            # The symbol k - 1 is put in front, after the node that it stands for was visited.
            symbol, child = rhs[first[rule] + k - 1], children[node][k - 1]
            if child >= 0:
                children[node][k - 1] = -1
                if len(rests) == depth + 1:
                    rests.append(np.zeros((length + 1, length + 1)))
                    befores.append(np.zeros(length + 1))
                from_here = nodes[child][1]
                rests[depth + 1][from_here:] = rest[from_here:]
                of_child, inner = inside[symbol - n_terminals, from_here], befores[depth + 1]
                inner[:] = prefix[symbol - n_terminals, from_here]
                for cut in range(from_here, length):
                    if of_child[cut] != 0:
                        for end in range(cut + 1, length + 1):
                            inner[end] += of_child[cut] * rest[cut, end]
                at.append(child)
                remaining.append(first[nodes[child][0] + 1] - first[nodes[child][0]])
                continue
            _in_front(symbol, begin, rest, string, scale, inside, prefix, n_terminals)
            remaining[depth] = k - 1
            continue
        if column[rule] >= 0:
            known = 0.0
            for end in range(begin + 1, length + 1):
                gained = np.log(rest[begin, end] / befores[depth][end])
                gains[end - 1, column[rule]] += max(gained - known, 0.0)
                known = gained
        at.pop()
        remaining.pop()
    return gains
