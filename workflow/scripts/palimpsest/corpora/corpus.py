"""The interface of all corpora."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import numpy as np

from palimpsest.models.alphabets import Alphabet

# Purposes of random numbers
TRAIN, TEST, COUNTERPART, VALIDATION, FORGET, SIDE, FOLD = range(7)

String = tuple[str, ...]  # the symbols of a string
NO_PROMPTS: Mapping[str, int] = MappingProxyType({})
# A rough number of bytes in a token of a text, to plan trainings without a tokenizer
BYTES_OF_TOKEN = 3


class Corpus(Protocol):
    """A source of strings.

    `name` is used in messages, and so is `when_too_few`, the remedy if there are too few strings.
    `has_probabilities` says whether the probabilities of strings are known. `alphabet` is what the
    strings are made of, and `is_text` says whether a model's tokenizer cuts them; then a string has
    one symbol, the whole text. To train the tokenizer of twins takes time, so nobody should ask for
    the alphabet before a job starts, unless the strings are symbols. `prompts` has the number of
    the first letters of a text that are a prompt, which is not predicted, for the texts with one.
    """

    name: str
    when_too_few: str
    has_probabilities: bool
    is_text: bool
    alphabet: Alphabet
    prompts: Mapping[str, int]

    def draw(self, n: int, seed: int, purpose: int = TRAIN) -> tuple[list[String], np.ndarray]:
        """`n` strings, and for each the log probability float64[n] of its derivation.

        The log probabilities are in nats, and NaN where strings have no derivation. Strings for
        another purpose are other strings: independent draws from a grammar, other lines of a text.
        Fewer draws with the same seed are the first of more. A text has no more strings than lines.
        """

    def when_too_long(self, most: int) -> str:
        """The remedy if a string has more than `most` tokens, with a start token."""

    def log_probability(self, strings: Sequence[String]) -> np.ndarray:
        """Log probability float64[n] in nats: -inf outside of the corpus, NaN if unknown."""

    def optimal_loss(self, strings: Sequence[String], predict_end: bool) -> np.ndarray:
        """Bayes-optimal loss float64[n], nats per predicted token; NaN if unknown.

        With `predict_end` the end of a string is a predicted token too.
        """

    def groups(self, strings: Sequence[String], by: str) -> dict[String, str]:
        """The name of each string's group.

        By `string`, each distinct string is a group, with all its copies. By `derivation`, strings
        whose most probable derivation begins with the same rule are a group. By `record`, the
        groups are those of a file of records.

        Raises `UserError` if the corpus does not have such groups.
        """

    def n_strings(self) -> float:
        """An upper bound of the number of distinct strings; may be infinite."""

    def most_draws(self) -> float:
        """The largest number of strings that can be drawn, with copies; may be infinite."""

    def expected_length(self) -> float:
        """Expected number of symbols of a string; of a text, a rough number of tokens."""

    def longest(self) -> float:
        """Number of symbols of the longest string; infinite if there is no longest string.

        Of a text, a rough number of tokens.
        """


def stream(seed: int, purpose: int) -> int:
    """The seed for one purpose, independent of the seeds for other purposes."""
    return int(np.random.SeedSequence([seed, purpose]).generate_state(1)[0])


def text_of(string: Sequence[str]) -> str:
    """A string in the format of tables: its symbols, separated by spaces."""
    return " ".join(string)


def predicted(corpus: Corpus, string: String, predict_end: bool) -> int:
    """What a model predicts of a string: its symbols, or the bytes of a text; and the end.

    Of a text with a prompt, it predicts the bytes after the prompt.
    """
    length = len(string)
    if corpus.is_text:
        text = text_of(string)
        length = len(text[corpus.prompts.get(text, 0) :].encode())
    return length + predict_end


def string_of(corpus: Corpus, text: str) -> String:
    """The string of a corpus with a text, the inverse of `text_of`."""
    return text_string(text) if corpus.is_text else tuple(text.split(" "))


def text_string(text: str) -> String:
    """A text as a string of a corpus whose strings are text."""
    return (text,)


def groups_by_string(strings: Sequence[String]) -> dict[String, str]:
    return {string: text_of(string) for string in strings}
