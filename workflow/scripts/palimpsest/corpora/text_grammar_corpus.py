"""A grammar of texts as a corpus: a tokenizer cuts them, and their probabilities are known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from palimpsest.corpora.corpus import (
    BYTES_OF_TOKEN,
    NO_PROMPTS,
    TRAIN,
    String,
    groups_by_string,
    predicted,
    stream,
    text_of,
    text_string,
)
from palimpsest.errors import UserError
from palimpsest.languages import Grammar
from palimpsest.models.alphabets import Alphabet, byte_level_tokenizer

# Texts on which the tokenizer of twins is trained, and their seed: no seed of a dataset
N_TEXTS, SEED_OF_TEXTS = 1000, 2**32


class TextGrammarCorpus:
    """A grammar of texts as a corpus. See `palimpsest.corpora.Corpus` for the methods.

    `grammar` has the pieces of texts as its terminals, and `characters` the same language with a
    symbol for each character. A text may be cut into pieces in several ways, so probabilities are
    those of its characters.
    """

    has_probabilities = True
    is_text = True
    prompts = NO_PROMPTS
    when_too_few = "choose a richer language"

    def __init__(self, grammar: Grammar):
        self.name = grammar.name
        self.grammar = grammar.without_empty_string()
        self.characters = self.grammar.of_characters()

    @cached_property
    def alphabet(self) -> Alphabet:
        """The tokenizer of twins is trained on texts of the grammar, the same for all datasets."""
        strings, _ = self.draw(N_TEXTS, SEED_OF_TEXTS)
        return Alphabet(tokenizer=byte_level_tokenizer(map(text_of, strings)))

    def when_too_long(self, most: int) -> str:
        return f"shorten the texts of {self.name}, or choose a model that takes more"

    def draw(self, n: int, seed: int, purpose: int = TRAIN) -> tuple[list[String], np.ndarray]:
        sampled = self.grammar.sample_encoded(n, stream(seed, purpose))
        texts = map("".join, self.grammar.decode(sampled))
        return [text_string(text) for text in texts], sampled.derivation_log_prob

    def log_probability(self, strings: Sequence[String]) -> np.ndarray:
        return self.characters.log_probability(_characters(strings))

    def optimal_loss(self, strings: Sequence[String], predict_end: bool) -> np.ndarray:
        """Per byte. Without a predicted end, a text counts as a prefix of texts of the language."""
        n_bytes = np.array([predicted(self, string, predict_end) for string in strings])
        if predict_end:
            return -self.log_probability(strings) / n_bytes
        return -self.characters.log_prefix_probability(_characters(strings)) / n_bytes

    def groups(self, strings: Sequence[String], by: str) -> dict[String, str]:
        if by != "string":
            raise UserError(
                f"{self.name}: texts have no groups by {by}; their groups are by string"
            )
        return groups_by_string(strings)

    def n_strings(self) -> float:
        return self.grammar.n_derivations()

    def most_draws(self) -> float:
        return self.grammar.n_derivations()

    def expected_length(self) -> float:
        return self.characters.expected_length() / BYTES_OF_TOKEN

    def longest(self) -> float:
        return self.characters.longest() / BYTES_OF_TOKEN


def _characters(strings: Sequence[String]) -> list[tuple[str, ...]]:
    return [tuple(text_of(string)) for string in strings]
