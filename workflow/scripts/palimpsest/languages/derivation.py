"""The most probable derivation of a string.

The search visits symbols, and rules that are read in part, in the order of their probability, the
most probable first. A visited item is final, because a larger part of a derivation is never more
probable than its parts. So loops of rules with one symbol, and empty rules, need no special care.

Source: Knuth 1977, A Generalization of Dijkstra's Algorithm; Nederhof 2003, Weighted Deductive
Parsing and Knuth's Algorithm.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from palimpsest.languages.notation import Symbol
from palimpsest.languages.structure import Rule


class Node(NamedTuple):
    """A node of a derivation: a non-terminal with the rule that expands it, or a terminal.

    A node derives the symbols from `begin` up to but not including `end`, and none if these are
    equal. `parent` is the parent's place in the derivation and None for the root. `rule` is None
    for a terminal.
    """

    symbol: Symbol
    begin: int
    end: int
    parent: int | None
    depth: int
    rule: Rule | None


class _Item(NamedTuple):
    """A whole symbol (`read` is None), or the first `read` symbols of a rule, from begin to end."""

    of: Symbol | Rule
    read: int | None
    begin: int
    end: int


# The items from which an item was made. For a symbol: its rule, read to the end. For a rule: the
# same rule with one symbol fewer, and this symbol.
_Parts = dict[_Item, tuple[_Item, ...]]


def most_probable(rules: Sequence[Rule], start: str, string: Sequence[str]) -> list[Node]:
    """The nodes of the most probable derivation; parents before children, from left to right.

    Raises `ValueError` if the string has no derivation.
    """
    symbols = [_terminal(name, place, place + 1) for place, name in enumerate(string)]
    return _most_probable(rules, start, symbols, len(string))


def most_probable_of_text(
    rules: Sequence[Rule], start: str, text: str, pieces: Iterable[str]
) -> list[Node]:
    """The same for a text, over all ways to cut it into terminals, which are `pieces`.

    The nodes' `begin` and `end` count characters.
    """
    by_length: dict[int, set[str]] = defaultdict(set)
    for piece in pieces:
        by_length[len(piece)].add(piece)
    symbols = [
        _terminal(text[begin : begin + length], begin, begin + length)
        for begin in range(len(text))
        for length, of_length in by_length.items()
        if text[begin : begin + length] in of_length
    ]
    return _most_probable(rules, start, symbols, len(text))


def _terminal(name: str, begin: int, end: int) -> _Item:
    return _Item(Symbol(name, True), None, begin, end)


def _most_probable(
    rules: Sequence[Rule], start: str, symbols: Sequence[_Item], length: int
) -> list[Node]:
    goal = _Item(Symbol(start, False), None, 0, length)
    parts = _search(rules, symbols, goal)
    if goal not in parts:
        raise ValueError("the string is not in the language: it has no derivation")
    return _nodes(goal, parts)


def _search(rules: Sequence[Rule], symbols: Sequence[_Item], goal: _Item) -> _Parts:
    """Every item that is at least as probable as the goal, with its parts."""
    beginning: dict[Symbol, list[Rule]] = defaultdict(list)
    for rule in rules:
        if rule.rhs:
            beginning[rule.rhs[0]].append(rule)
    found: _Parts = {}
    costs: dict[_Item, float] = {}
    whole: dict[tuple[Symbol, int], list[_Item]] = defaultdict(list)  # by symbol and begin
    waiting: dict[tuple[Symbol, int], list[_Item]] = defaultdict(list)  # by next symbol and end
    agenda: list[tuple[float, int, _Item, tuple[_Item, ...]]] = []

    def add(cost: float, item: _Item, parts: tuple[_Item, ...]) -> None:
        # Of equal costs the first entry wins, so that the result is always the same.
        if item not in found:
            heapq.heappush(agenda, (cost, next(number), item, parts))

    def join(partial: _Item, symbol: _Item) -> None:
        longer = _Item(partial.of, partial.read + 1, partial.begin, symbol.end)
        add(costs[partial] + costs[symbol], longer, (partial, symbol))

    number = iter(range(2**63))
    for symbol in symbols:
        add(0.0, symbol, ())
    for rule in rules:
        if not rule.rhs:
            for place in range(goal.end + 1):
                add(-math.log(rule.probability), _Item(rule, 0, place, place), ())
    while agenda and goal not in found:
        cost, _, item, parts = heapq.heappop(agenda)
        if item in found:
            continue
        found[item], costs[item] = parts, cost
        if item.read is None:
            for rule in beginning[item.of]:
                first = _Item(rule, 1, item.begin, item.end)
                add(cost - math.log(rule.probability), first, (item,))
            for partial in waiting[item.of, item.begin]:
                join(partial, item)
            whole[item.of, item.begin].append(item)
        elif item.read == len(item.of.rhs):
            add(cost, _Item(Symbol(item.of.lhs, False), None, item.begin, item.end), (item,))
        else:
            wanted = item.of.rhs[item.read], item.end
            for symbol in whole[wanted]:
                join(item, symbol)
            waiting[wanted].append(item)
    return found


def _nodes(goal: _Item, parts: _Parts) -> list[Node]:
    """The derivation below an item, with an explicit stack, since a derivation may be deep."""
    nodes: list[Node] = []
    stack: list[tuple[_Item, int | None, int]] = [(goal, None, 0)]
    while stack:
        item, parent, depth = stack.pop()
        rule = parts[item][0].of if parts[item] else None
        nodes.append(Node(item.of, item.begin, item.end, parent, depth, rule))
        place = len(nodes) - 1
        # The last child comes first, because the stack reverses the order.
        read = parts[item][0] if parts[item] else None
        while read is not None and parts[read]:
            *before, child = parts[read]
            stack.append((child, place, depth + 1))
            read = before[0] if before else None
    return nodes
