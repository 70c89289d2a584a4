"""Distances between strings: by edits, and by the choices of a grammar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

import numpy as np

from palimpsest.languages import Grammar
from palimpsest.languages.derivation import Node
from palimpsest.languages.structure import Rule


def symbols(text: str) -> list[str]:
    """The symbols of a string: those between blanks, or the letters of a text without blanks."""
    return text.split() if " " in text else list(text)


def edit_distances(texts: Sequence[str]) -> np.ndarray:
    """Levenshtein distances int[strings, strings] between all pairs of strings, in symbols.

    The table of one string against all others is filled at once. Source: Wagner and Fischer, The
    String-to-String Correction Problem (1974).
    """
    rows = [symbols(text) for text in texts]
    numbers = {symbol: n for n, symbol in enumerate(sorted({s for row in rows for s in row}))}
    lengths = np.array([len(row) for row in rows])
    coded = np.full((len(rows), lengths.max(initial=0)), -1)
    for place, row in enumerate(rows):
        coded[place, : len(row)] = [numbers[symbol] for symbol in row]
    found = np.empty((len(rows), len(rows)), dtype=int)
    columns = np.arange(coded.shape[1] + 1)
    for place, row in enumerate(rows):
        table = np.tile(columns, (len(rows), 1))
        for n_symbols, symbol in enumerate(coded[place, : len(row)], 1):
            replaced = table[:, :-1] + (coded != symbol)
            best = np.minimum(replaced, table[:, 1:] + 1)
            best = np.column_stack([np.full(len(rows), n_symbols), best])
            # An insertion costs 1 per column, so it is a running minimum of what is left of it.
            table = np.minimum.accumulate(best - columns, axis=1) + columns
        found[place] = table[np.arange(len(rows)), lengths]
    return found


def to_nearest_other(distances: np.ndarray, texts: Iterable[str]) -> np.ndarray:
    """float[texts]: the edit distance to the nearest other text, per symbol; inf without others.

    `distances` int[texts, texts] are those of `edit_distances`.
    """
    others = distances + np.where(np.eye(len(distances), dtype=bool), np.inf, 0)
    return others.min(axis=1) / [len(symbols(text)) for text in texts]


def choice_distances(grammar: Grammar, texts: Sequence[str]) -> np.ndarray:
    """Choices int[strings, strings] of a grammar that differ between all pairs of strings.

    Two most probable derivations are compared from the top. Where they take different rules, all
    choices below count, those of the derivation that has more of them. A choice is a non-terminal
    with several rules.
    """
    heads = [rule.lhs for rule in grammar.rules]
    several = {head for head in heads if heads.count(head) > 1}
    strings = [text if grammar.is_text else text.split() for text in texts]
    trees = [_Tree.of(grammar.derivation(string), several) for string in strings]
    found = np.zeros((len(trees), len(trees)), dtype=int)
    for place, tree in enumerate(trees):
        for other in range(place):
            found[place, other] = found[other, place] = tree.apart(trees[other])
    return found


class _Tree(NamedTuple):
    """A node of a derivation with its rule, its parts, and the choices at it and below."""

    rule: Rule
    parts: list[_Tree]
    choices: int

    @classmethod
    def of(cls, nodes: Sequence[Node], several: Set[str]) -> _Tree:
        below: list[list[_Tree]] = [[] for _ in nodes]
        tree = None
        for place in reversed(range(len(nodes))):
            node = nodes[place]
            if node.rule is not None:
                parts = below[place][::-1]
                own = node.rule.lhs in several
                tree = cls(node.rule, parts, own + sum(part.choices for part in parts))
                if node.parent is not None:
                    below[node.parent].append(tree)
        return tree

    def apart(self, other: _Tree) -> int:
        if self.rule != other.rule:
            return max(self.choices, other.choices)
        return sum(one.apart(two) for one, two in zip(self.parts, other.parts, strict=True))
