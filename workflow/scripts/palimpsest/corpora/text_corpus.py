"""A user's text as a corpus; probabilities of strings are unknown."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from palimpsest.corpora.corpus import TRAIN, String, groups_by_string
from palimpsest.errors import UserError


class TextCorpus:
    """A text as a corpus: each line is a string, and each word of the line is a symbol.

    Each line is used at most once, so a string is in the training data as often as the line is in
    the text. See `palimpsest.corpora.Corpus` for the methods.
    """

    has_probabilities = False

    def __init__(self, name: str, strings: Sequence[String]):
        if not strings:
            raise UserError(
                f"{name}: has no strings; write one string per line, with spaces between words"
            )
        self.name = name
        self.strings = list(strings)
        self.terminals = tuple(sorted({word for string in self.strings for word in string}))

    @classmethod
    def from_file(cls, path: str | Path) -> "TextCorpus":
        """Read a text file, see `read_strings`.

        Raises `UserError` if the file cannot be read or has no string.
        """
        return cls(str(path), read_strings(path))

    def draw(self, n: int, seed: int, purpose: int = TRAIN) -> tuple[list[String], np.ndarray]:
        """Training takes lines from the start of a random order, other purposes from its end."""
        order = np.random.default_rng(seed).permutation(len(self.strings))
        taken = (order if purpose == TRAIN else order[::-1])[:n]
        return [self.strings[place] for place in taken], np.full(len(taken), np.nan)

    def log_probability(self, strings: Sequence[String]) -> np.ndarray:
        return np.full(len(strings), np.nan)

    def optimal_loss(self, strings: Sequence[String], predict_end: bool) -> np.ndarray:
        return np.full(len(strings), np.nan)

    def groups(self, strings: Sequence[String], by: str) -> dict[String, str]:
        if by != "string":
            raise UserError(f"{self.name}: a text has no groups by {by}; its groups are by string")
        return groups_by_string(strings)

    def n_strings(self) -> float:
        return len(set(self.strings))

    def expected_length(self) -> float:
        return float(np.mean([len(string) for string in self.strings]))

    def longest(self) -> float:
        return max(len(string) for string in self.strings)


def read_strings(path: str | Path) -> list[String]:
    """The strings of a text file in UTF-8: one per line; empty lines are skipped.

    Raises `UserError` if the file cannot be read.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as text in UTF-8: {error}") from None
    return [tuple(line.split()) for line in lines if line.strip()]
