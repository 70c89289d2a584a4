"""Strings as questions: the last symbol is the answer, if the symbols before it decide it.

The choices of a question are all symbols with which strings of the language end. A string is a
question if exactly one choice gives a string of the language. In L3, L4, L6 and L8, a symbol in the
middle of a string decides its last symbol, of four; in L1, L2, L5 and L7, the symbols just before.

Source: LMD3: Language Model Data Density Dependence, section 5.3 (rank accuracy of questions with
several choices). Questions in strings of a grammar are Palimpsest's own.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from palimpsest.corpora import String
from palimpsest.languages import Grammar


def last_symbols(grammar: Grammar) -> list[str]:
    """The terminals with which strings of the grammar end, sorted."""
    rules = defaultdict(list)
    for rule in grammar.rules:
        rules[rule.lhs].append(rule.rhs)
    empty = _can_be_empty(rules)
    found, seen, waiting = set(), {grammar.start}, [grammar.start]
    while waiting:
        for symbols in rules[waiting.pop()]:
            for symbol in reversed(symbols):
                if symbol.terminal:
                    found.add(symbol.name)
                elif symbol.name not in seen:
                    seen.add(symbol.name)
                    waiting.append(symbol.name)
                if symbol.name not in empty:
                    break
    return sorted(found)


def _can_be_empty(rules: dict[str, list]) -> set[str]:
    """The non-terminals that derive the empty string."""
    found: set[str] = set()
    while True:
        new = {
            name
            for name, sides in rules.items()
            if name not in found
            and any(all(not s.terminal and s.name in found for s in side) for side in sides)
        }
        if not new:
            return found
        found |= new


def wrong_answers(grammar: Grammar, strings: Sequence[String]) -> dict[String, list[String]]:
    """Each string with every wrong last symbol in place of the right one.

    Empty if some of the strings have no right answer: no other symbol to choose, or another symbol
    that gives a string of the language as well.
    """
    choices = last_symbols(grammar)
    wrong = {s: [(*s[:-1], symbol) for symbol in choices if symbol != s[-1]] for s in strings}
    others = [string for of_string in wrong.values() for string in of_string]
    if len(choices) < 2 or np.isfinite(grammar.log_probability(others)).any():
        return {}
    return wrong
