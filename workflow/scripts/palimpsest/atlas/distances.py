"""Distances between strings: by edits, and by the choices of a grammar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from palimpsest.languages import Grammar


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

    A choice is a rule in a string's most probable derivation, of a non-terminal with several rules.
    Two strings have a choice in common as often as both make it; the other choices count, those of
    the string that makes more.
    """
    of_heads = Counter(rule.lhs for rule in grammar.rules)
    made = [
        Counter(
            node.rule
            for node in grammar.derivation(text if grammar.is_text else text.split())
            if node.rule is not None and of_heads[node.rule.lhs] > 1
        )
        for text in texts
    ]
    n = np.array([of_string.total() for of_string in made])
    common = [[(one & other).total() for other in made] for one in made]
    return np.maximum.outer(n, n) - np.array(common)
