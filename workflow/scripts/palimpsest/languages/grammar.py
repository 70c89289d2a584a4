"""A probabilistic context-free grammar: reading it, sampling it, and scoring strings under it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from palimpsest.allowed import Number, checked_number
from palimpsest.arguments import PATH, TEXT, Made, takes
from palimpsest.languages import emptiness, encoding, notation, structure
from palimpsest.languages.checks import LONG, check_long_strings, checked_rules
from palimpsest.languages.derivation import Node, most_probable, most_probable_of_text
from palimpsest.languages.encoding import EncodedStrings
from palimpsest.languages.notation import Symbol
from palimpsest.languages.structure import Rule
from palimpsest.short_repr import ShortRepr

if TYPE_CHECKING:  # compiled modules, loaded on first use: reading a grammar must stay cheap
    from palimpsest.languages.inside import InsideTables
    from palimpsest.languages.sampling import SamplingTables

Strings = Sequence[Sequence[str]] | EncodedStrings

AT_LEAST_TWO = Number(least=2, whole=True)


@dataclass(frozen=True, repr=False)
class Grammar(ShortRepr):
    """A probabilistic context-free grammar whose derivations always end.

    Make one with `from_file` or `from_string`. A string is a tuple of terminals. The right-hand
    side of a rule may be empty.

    Attributes
    ----------
    name : the file of the grammar, or the caller's name for its text
    start : the non-terminal with which every derivation begins
    rules : tuple of Rule
        `lhs`, `rhs` and `probability`. A rule that occurs twice is one rule with the sum of the
        probabilities. The probabilities of each left-hand side sum to 1. Rules that no derivation
        reaches are kept.
    is_text : whether terminals are pieces of text, and a string is the text of all of them
    fields : tuple of str
        Parts of a text: the field EMAIL is what the non-terminal EMAIL derives, or a non-terminal
        with a hyphen after this name, such as EMAIL-1.
    """

    name: str
    start: str
    rules: tuple[Rule, ...]
    is_text: bool = False
    fields: tuple[str, ...] = ()

    @classmethod
    @takes(path=PATH)
    def from_file(cls, path: str | Path) -> Grammar:
        """Read a grammar file in NLTK's PCFG notation.

        Raises `GrammarError` if the file cannot be read, or is not a usable grammar; the message
        names the line.
        """
        return cls.from_string(notation.load(path), name=str(path))

    @classmethod
    @takes(text=TEXT)
    def from_string(cls, text: str, name: str = "<string>") -> Grammar:
        """Read a grammar from text in NLTK's PCFG notation; messages call the text `name`.

        Raises `GrammarError` if the text is not a usable grammar; the message is one line,
        `name:LINE: what`.
        """
        printed = notation.read(text, name)
        rules = checked_rules(printed)
        grammar = cls(name, printed.start, rules, printed.is_text, tuple(printed.fields))
        if grammar.longest() > LONG:
            check_long_strings(grammar)
        return grammar

    def __str__(self) -> str:
        """The merged rules, one per line, in the notation of grammar files."""
        text = ["%text"] if self.is_text else []
        fields = [f"%field {' '.join(self.fields)}"] if self.fields else []
        return "\n".join([f"%start {self.start}", *text, *fields, *map(str, self.rules)])

    @cached_property
    def terminals(self) -> tuple[str, ...]:
        """The alphabet, sorted; a terminal's place is its code in `EncodedStrings`."""
        return tuple(sorted({s.name for rule in self.rules for s in rule.rhs if s.terminal}))

    @cached_property
    def nonterminals(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(rule.lhs for rule in self.rules))

    @property
    def n_rules(self) -> int:
        return len(self.rules)

    def of_characters(self) -> Grammar:
        """The grammar of the texts whose pieces are the terminals: a character is a symbol.

        The probability of a text is the sum over all ways to cut it into terminals, and over all
        derivations of these. A prefix may end inside of a terminal.
        """
        summed: dict[tuple, float] = {}
        for rule in self.rules:
            rhs = tuple(
                symbol
                for piece in rule.rhs
                for symbol in ([Symbol(c, True) for c in piece.name] if piece.terminal else [piece])
            )
            summed[rule.lhs, rhs] = summed.get((rule.lhs, rhs), 0.0) + rule.probability
        rules = tuple(Rule(*sides, probability) for sides, probability in summed.items())
        return replace(self, rules=rules)

    def sample(self, n: int, seed: int, longest: int = 100_000) -> list[tuple[str, ...]]:
        """`n` independent strings. With the same seed, a larger `n` adds strings, changes none."""
        return self.decode(self.sample_encoded(n, seed, longest))

    def sample_encoded(self, n: int, seed: int, longest: int = 100_000) -> EncodedStrings:
        """`n` independent strings as codes, with the log probability of each derivation.

        The first strings of a longer sample with the same seed are those of the shorter one.

        Raises `GrammarError` if a string has more than `longest` symbols. Raises `ValueError` if
        `n` or `seed` is negative.
        """
        from palimpsest.languages import sampling

        return sampling.sample(self.name, self._sampling_tables, n, seed, longest)

    def encode(self, strings: Sequence[Sequence[str]]) -> EncodedStrings:
        """Strings as codes into `terminals`; a symbol outside the alphabet becomes 65535.

        Raises `TypeError` if a string is a Python `str` rather than a tuple of symbols.
        """
        return encoding.encode(strings, self.terminals)

    def decode(self, encoded: EncodedStrings) -> list[tuple[str, ...]]:
        """The strings of some codes.

        Raises `ValueError` if a code is outside the alphabet.
        """
        return encoding.decode(encoded, self.terminals)

    def log_probability(self, strings: Strings) -> np.ndarray:
        """float64[n], nats: exact log probability of each string, over all of its derivations.

        -inf for a string that is not in the language, and only then: no probability is too small.
        Strings are tuples of symbols, or were encoded by this grammar.

        Raises `GrammarError` if the chart of a string of thousands of symbols does not fit into
        memory.

        Source: the inside algorithm; Baker 1979, Trainable Grammars for Speech Recognition.
        """
        from palimpsest.languages import inside

        return inside.log_probability(self.name, self._inside_tables, self._encoded(strings))

    def log_prefix_probability(self, strings: Strings) -> np.ndarray:
        """float64[n], nats: log of the total probability of all strings with each prefix.

        0 for the empty prefix, -inf if no string of the language has the prefix.

        Source: Jelinek and Lafferty 1991, Computation of the Probability of Initial Substring
        Generation by Stochastic Context-Free Grammars.
        """
        from palimpsest.languages import inside

        return inside.log_prefix_probability(self.name, self._inside_tables, self._encoded(strings))

    def derivation(self, string: Sequence[str]) -> list[Node]:
        """The nodes of a string's most probable derivation; parents stand before their children.

        A string of a few hundred symbols takes seconds if the grammar is ambiguous everywhere. If
        terminals are pieces of text, the string may be a text (`str`): all ways to cut it are
        tried, and `begin` and `end` count characters.

        Raises `ValueError` if the string is not in the language.
        """
        if self.is_text and isinstance(string, str):
            return most_probable_of_text(self.rules, self.start, string, self.terminals)
        return most_probable(self.rules, self.start, string)

    def derivation_entropy(self) -> float:
        """Entropy of the derivations in nats, exact; at least that of the strings.

        Equal to the entropy of the strings exactly when no string has two derivations.
        """
        return structure.derivation_entropy(self.rules, self.start)

    def entropy(self, n: int, seed: int) -> tuple[float, float]:
        """Entropy of the strings in nats: an estimate from `n` samples, and its standard error.

        Raises `ValueError` if `n` is below 2, which leaves no standard error.
        """
        checked_number("n", n, AT_LEAST_TWO, ", the samples of an entropy")
        surprise = -self.log_probability(self.sample_encoded(n, seed))
        return float(surprise.mean()), float(surprise.std(ddof=1) / math.sqrt(n))

    def expected_uses(self) -> np.ndarray:
        """float64[rules]: how often a derivation uses each rule on average, exact."""
        return structure.expected_uses(self.rules, self.start)

    def expected_length(self) -> float:
        """Expected number of symbols in a string, exact."""
        return structure.expected_lengths(self.rules, self.start)[self.start]

    def length_probabilities(self, limit: int) -> np.ndarray:
        """float64[limit + 1]: probability that a string has 0, 1, ..., `limit` symbols, exact.

        A limit of some thousands takes seconds, and the time grows with its square.

        Raises `ValueError` if `limit` is no whole number of 0 or more.
        """
        from palimpsest.languages import lengths

        return lengths.lengths(self._inside_tables, limit)[0]

    def probability_longer_than(self, limit: int) -> float:
        """Probability that a string has more than `limit` symbols, exact: it is no 1 - sum.

        A limit of some thousands takes seconds, and the time grows with its square.

        Raises `ValueError` if `limit` is no whole number of 0 or more.
        """
        from palimpsest.languages import lengths

        return float(lengths.lengths(self._inside_tables, limit)[1][limit])

    def most_longer_than(self, limit: int) -> float:
        """An upper bound of `probability_longer_than` that is cheap: Cantelli's inequality."""
        distance = limit + 1 - self.expected_length()
        variance = structure.length_variance(self.rules, self.start)
        return variance / (variance + distance**2) if distance > 0 else 1.0

    def without_empty_string(self) -> Grammar:
        """The language of the strings with a symbol; itself if no string is empty.

        Probabilities are divided by 1 - P(empty string). The new start symbol has a `+` at its end.
        """
        if self.start not in emptiness.log_empty(self._reachable_rules):
            return self
        start, rules = emptiness.without_empty_string(self._reachable_rules, self.start)
        return replace(self, start=start, rules=rules)

    def longest(self) -> float:
        """Number of symbols in the longest string, exact; inf if recursive."""
        return structure.longest(self.rules, self.start)

    def n_derivations(self) -> float:
        """Number of derivations, an upper bound of the number of strings; inf if recursive."""
        return structure.n_derivations(self.rules, self.start)

    def is_ambiguous(self, n: int = 1000, seed: int = 0) -> bool:
        """Whether one of `n` sampled strings has more than one derivation.

        False does not mean that the language has no such string.
        """
        sampled = self.sample_encoded(n, seed)
        excess = self.log_probability(sampled) - sampled.derivation_log_prob
        return bool((excess > 1e-9).any())

    @cached_property
    def _reachable(self) -> tuple[str, ...]:
        return structure.reachable(self.rules, self.start)

    @property
    def _reachable_rules(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.lhs in set(self._reachable))

    @cached_property
    def _sampling_tables(self) -> SamplingTables:
        from palimpsest.languages import sampling

        return sampling.tables(self.rules, self._reachable, self.terminals)

    @cached_property
    def _inside_tables(self) -> InsideTables:
        from palimpsest.languages import inside

        return inside.tables(self.rules, self._reachable, self.terminals)

    def _encoded(self, strings: Strings) -> EncodedStrings:
        return strings if isinstance(strings, EncodedStrings) else self.encode(strings)


GRAMMAR = Made(Grammar, "languages.load(name) or Grammar.from_file(path)")
