"""A probabilistic context-free grammar as a corpus; all probabilities are known."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from palimpsest.corpora.corpus import NO_PROMPTS, TRAIN, String, groups_by_string, stream
from palimpsest.errors import UserError
from palimpsest.languages import Grammar, GrammarWarning, emptiness
from palimpsest.languages.notation import Symbol
from palimpsest.languages.structure import Rule
from palimpsest.models.alphabets import Alphabet

ALL_BUT_SURE = 1e-6  # the largest chance that no string is longer
FIRST = "first choice"  # no name of a grammar file has a space


class GrammarCorpus:
    """A grammar as a corpus. See `palimpsest.corpora.Corpus` for the methods.

    A corpus has no empty string, because a model has nothing to predict there. If the language has
    one, there is a warning, and `grammar` is the language of the other strings.
    """

    has_probabilities = True
    is_text = False
    prompts = NO_PROMPTS
    when_too_few = "choose a richer language"

    def __init__(self, grammar: Grammar):
        for terminal in grammar.terminals:
            if len(terminal.split()) != 1:
                raise UserError(
                    f"{grammar.name}: the terminal {terminal!r} is empty or has white space in it; "
                    "a terminal of a dataset is one word"
                )
        self.grammar = grammar.without_empty_string()
        if self.grammar is not grammar:
            log_empty = emptiness.log_empty(grammar.rules)[grammar.start]
            warnings.warn(
                GrammarWarning(
                    f"{grammar.name}: {100 * math.exp(log_empty):.4g} % of the strings are empty; "
                    "datasets leave them out, and the probability of each other string is divided "
                    "by the share of the others"
                ),
                stacklevel=2,
            )
        self.name = grammar.name
        self.alphabet = Alphabet(grammar.terminals)

    @classmethod
    def from_file(cls, path: str | Path) -> GrammarCorpus:
        return cls(Grammar.from_file(path))

    def has_longer(self, limit: int, n: int) -> bool:
        """Whether it is almost sure that one of `n` strings has more than `limit` symbols.

        The exact share takes seconds, and most languages need only its upper bound.
        """

        def is_sure(share: float) -> bool:
            return share >= 1 or n * math.log1p(-share) < math.log(ALL_BUT_SURE)

        grammar = self.grammar
        if limit < 0 or grammar.longest() <= limit or not is_sure(grammar.most_longer_than(limit)):
            return limit < 0
        return is_sure(grammar.probability_longer_than(limit))

    def when_too_long(self, most: int) -> str:
        share = self.grammar.probability_longer_than(most - 1)
        remedy = f"give a higher probability to the rules of {self.name} that end it"
        if math.isfinite(self.longest()):
            remedy = f"shorten the strings of {self.name}, or choose a model that takes more"
        return f"{remedy}: {share:.2%} of its strings have more than {most - 1:,} symbols"

    def draw(self, n: int, seed: int, purpose: int = TRAIN) -> tuple[list[String], np.ndarray]:
        sampled = self.grammar.sample_encoded(n, stream(seed, purpose))
        return self.grammar.decode(sampled), sampled.derivation_log_prob

    def log_probability(self, strings: Sequence[String]) -> np.ndarray:
        return self.grammar.log_probability(strings)

    def optimal_loss(self, strings: Sequence[String], predict_end: bool) -> np.ndarray:
        """Without a predicted end, a string counts as a prefix of strings of the language."""
        lengths = np.array([len(string) for string in strings])
        if predict_end:
            return -self.grammar.log_probability(strings) / (lengths + 1)
        return -self.grammar.log_prefix_probability(strings) / lengths

    def groups(self, strings: Sequence[String], by: str) -> dict[String, str]:
        """With `derivation`, a group is named by the first rule for which there is a choice.

        The name is the right-hand side of this rule, in the string's most probable derivation.
        """
        if by == "string":
            return groups_by_string(strings)
        if by != "derivation":
            raise UserError(
                f"{self.name}: a grammar has no groups by {by}; allowed are derivation, string"
            )
        left, choices = first_choice(self.grammar)
        if not choices:
            return dict.fromkeys(strings, left)
        log_probs = np.stack(
            [_of_rule(self.grammar, rule).log_probability(strings) for rule in choices]
        )
        weights = np.log([rule.probability for rule in choices])[:, None]
        best = (log_probs + weights).argmax(axis=0)
        names = self.productions()
        return {string: names[place] for string, place in zip(strings, best, strict=True)}

    def productions(self) -> list[str]:
        """The names of all groups by derivation, in the order of the grammar's rules.

        Terminals have quotes if two names would be the same without them.
        """
        left, choices = first_choice(self.grammar)
        names = [" ".join(s.name for s in rule.rhs) or "nothing" for rule in choices]
        if len(set(names)) < len(names):
            names = [" ".join(map(_quoted, rule.rhs)) or "''" for rule in choices]
        return names or [left]

    def n_strings(self) -> float:
        return self.grammar.n_derivations()

    def most_draws(self) -> float:
        """The number of strings: more draws would be mostly copies."""
        return self.grammar.n_derivations()

    def expected_length(self) -> float:
        return self.grammar.expected_length()

    def longest(self) -> float:
        return self.grammar.longest()


def _quoted(symbol: Symbol) -> str:
    return repr(symbol.name) if symbol.terminal else symbol.name


def first_choice(grammar: Grammar):
    """The first non-terminal, beginning with the start symbol, with several rules; these rules."""
    left, seen = grammar.start, set()
    while left not in seen:
        seen.add(left)
        rules = [rule for rule in grammar.rules if rule.lhs == left]
        if len(rules) > 1:
            return left, rules
        if len(rules[0].rhs) != 1 or rules[0].rhs[0].terminal:
            break
        left = rules[0].rhs[0].name
    return left, []


def _of_rule(grammar: Grammar, rule: Rule) -> Grammar:
    """The strings of one rule. Other rules of its non-terminal can be used further down."""
    return Grammar(grammar.name, FIRST, (Rule(FIRST, rule.rhs, 1.0), *grammar.rules))
