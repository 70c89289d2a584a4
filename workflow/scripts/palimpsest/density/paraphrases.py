"""Paraphrases of strings of a formal language.

A paraphrase of a text says the same in other words. Its counterpart here keeps the top of a
string's derivation and draws the rules below again: the plan of the string stays, and its symbols
change.

Source: LMD3: Language Model Data Density Dependence, sections 5.2 and 5.3, whose paraphrases come
from a language model. The construction for grammars is Palimpsest's own.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np

from palimpsest.corpora import String, text_of
from palimpsest.density.vectors import ngram_vectors
from palimpsest.errors import UserError
from palimpsest.languages import Grammar
from palimpsest.languages.derivation import Node
from palimpsest.languages.structure import Rule, Symbol

DRAWS = 200  # before a string counts as one without enough paraphrases


@lru_cache(maxsize=10_000)
def derivation_of(grammar: Grammar, string: String) -> list[Node]:
    """The most probable derivation. It is cached, because all variants of a dataset need it."""
    return grammar.derivation(string)


class Paraphraser:
    """Paraphrases the strings of a grammar.

    Nodes of the most probable derivation above depth `level` keep their rules; the start symbol has
    depth 0. From this depth on, each node is drawn again with probability `redrawn`, together with
    everything below the node. Rules are drawn with the grammar's probabilities.
    """

    def __init__(self, grammar: Grammar, level: int, redrawn: float = 1.0):
        self.grammar, self.level, self.redrawn = grammar, level, redrawn
        self._rules: dict[str, list[Rule]] = defaultdict(list)
        for rule in grammar.rules:
            self._rules[rule.lhs].append(rule)
        self._chances = {
            name: np.array([rule.probability for rule in rules]) / sum(r.probability for r in rules)
            for name, rules in self._rules.items()
        }

    def paraphrases(
        self, string: String, n: int, chance: np.random.Generator, but: Collection[String] = ()
    ) -> list[String] | None:
        """`n` distinct paraphrases that differ from the string and from all strings in `but`.

        They are in the order in which they were drawn. None if `DRAWS` draws hold fewer than
        `n` of them.
        """
        nodes = derivation_of(self.grammar, string)
        below = defaultdict(list)
        for place, node in enumerate(nodes):
            below[node.parent].append(place)
        found: dict[String, None] = {}
        for _ in range(DRAWS):
            drawn = self._drawn(nodes, below, chance)
            if drawn != string and drawn not in but:
                found[drawn] = None
            if len(found) == n:
                return list(found)
        return None

    def _drawn(
        self, nodes: list[Node], below: dict[int, list[int]], chance: np.random.Generator
    ) -> String:
        """One draw; `below` holds the places of the nodes below each node."""
        symbols, waiting = [], [0]
        while waiting:
            place = waiting.pop()
            node = nodes[place]
            if node.rule is None:
                symbols.append(node.symbol.name)
            elif node.depth >= self.level and chance.random() < self.redrawn:
                symbols += self._sample(node.symbol, chance)
            else:
                waiting += reversed(below[place])
        return tuple(symbols)

    def _sample(self, start: Symbol, chance: np.random.Generator) -> list[str]:
        symbols, waiting = [], [start]
        while waiting:
            symbol = waiting.pop()
            if symbol.terminal:
                symbols.append(symbol.name)
                continue
            rules = self._rules[symbol.name]
            number = chance.choice(len(rules), p=self._chances[symbol.name]) if rules[1:] else 0
            waiting += reversed(rules[number].rhs)
        return symbols


def in_ascending_order(string: String, others: Sequence[String]) -> list[String]:
    """Strings in ascending order of their similarity to a string, by counts of n-grams."""
    # A text is one symbol, of which the words are compared.
    vectors = ngram_vectors([text_of(each).split() for each in (string, *others)])
    order = np.argsort(vectors[1:] @ vectors[0], kind="stable")
    return [others[place] for place in order]


def too_few(language: str, found: int, asked: int, level: int) -> UserError:
    return UserError(
        f"density/leakage/level: of the strings of {language}, only {found} of {asked} have enough "
        f"paraphrases at level {level}; lower the level or raise density/leakage/redrawn, so that "
        "more of a derivation is drawn again, or choose a richer language"
    )
