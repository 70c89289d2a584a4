"""A user's text as a corpus; probabilities of strings are unknown."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from palimpsest.corpora.corpus import NO_PROMPTS, TRAIN, String, groups_by_string
from palimpsest.corpora.orders import order_of_groups
from palimpsest.errors import Notice, UserError
from palimpsest.models.alphabets import Alphabet
from palimpsest.plain_text import read_text, two_spellings, unusual_characters


class TextCorpus:
    """A text as a corpus: each line is a string, and each word of the line is a symbol.

    Each line is used at most once, so a string is in the training data as often as the line is in
    the text. All copies of a line are neighbours in every random order, so they are on one side of
    it. See `palimpsest.corpora.Corpus` for the methods.
    """

    has_probabilities = False
    is_text = False
    prompts = NO_PROMPTS
    when_too_few = "add lines to the text"

    def __init__(self, name: str, strings: Sequence[String], lines: Sequence[int] | None = None):
        """`lines` are the numbers of the strings' lines in a file."""
        if not strings:
            raise UserError(
                f"{name}: has no strings; write one string per line, with spaces between words"
            )
        self.name = name
        self.strings = list(strings)
        self.lines = list(lines or range(1, len(self.strings) + 1))
        self.alphabet = Alphabet(
            tuple(sorted({word for string in self.strings for word in string}))
        )

    @classmethod
    def from_file(cls, path: str | Path) -> TextCorpus:
        """Read a text file, see `read_strings`, and warn of what a reader may not see in it.

        Raises `UserError` if the file cannot be read or has no string.
        """
        text = read_text(path)
        numbered = list(_numbered(text))
        corpus = cls(str(path), [s for _, s in numbered], [number for number, _ in numbered])
        lines = list(enumerate(text.split("\n"), 1))
        remarks = [
            *_copies(corpus),
            *unusual_characters(lines, "separates words", "is part of a word"),
            *two_spellings(corpus.alphabet.terminals, numbered, "words"),
        ]
        if remarks:
            warnings.warn(Notice(f"{path}: {'; '.join(remarks)}"), stacklevel=2)
        return corpus

    def draw(self, n: int, seed: int, purpose: int = TRAIN) -> tuple[list[String], np.ndarray]:
        """Training takes lines from the start of a random order, other purposes from its end."""
        order = order_of_groups(self.strings, seed)
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

    def most_draws(self) -> float:
        return len(self.strings)

    def expected_length(self) -> float:
        return float(np.mean([len(string) for string in self.strings]))

    def longest(self) -> float:
        return max(len(string) for string in self.strings)

    def when_too_long(self, most: int) -> str:
        longest = max(range(len(self.strings)), key=lambda place: len(self.strings[place]))
        return f"cut line {self.lines[longest]} of {self.name} into shorter lines"


def read_strings(path: str | Path) -> list[String]:
    """The strings of a text file in UTF-8: one per line; empty lines are skipped.

    A line ends with LF, CR LF or CR. All other white space separates words.

    Raises `UserError` if the file cannot be read.
    """
    return [string for _, string in _numbered(read_text(path))]


def _numbered(text: str) -> Iterator[tuple[int, String]]:
    for number, line in enumerate(text.split("\n"), 1):
        if words := tuple(line.split()):
            yield number, words


def _copies(corpus: TextCorpus) -> Iterator[str]:
    n_copies = len(corpus.strings) - len(set(corpus.strings))
    if n_copies:
        yield (
            f"{n_copies:,} of its {len(corpus.strings):,} lines are copies of others; a line and "
            "its copies are on one side: training, test or validation"
        )
