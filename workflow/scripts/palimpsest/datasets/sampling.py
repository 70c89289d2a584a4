"""Streams of strings of a corpus: one stream for each purpose, decided by a dataset's seed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from palimpsest.corpora import Corpus, String
from palimpsest.corpora.corpus import COUNTERPART, FORGET, TEST, TRAIN, VALIDATION, stream
from palimpsest.errors import UserError


@dataclass(frozen=True)
class Sampler:
    """Independent strings of a corpus, or of its high-entropy counterpart, for one seed.

    `language` is the corpus' name in tables. `derivations` holds, for each drawn string, the log
    probability of the derivation by which it was first drawn.
    """

    language: str
    corpus: Corpus
    seed: int
    counterpart: Corpus | None = None
    derivations: dict[String, float] = field(default_factory=dict)

    def train(self, n: int, but: String | None = None) -> list[String]:
        """The first `n` strings of the training stream, without the string `but`."""
        return _first(self._draw_train, n, lambda seen, s: s != but, self.language)

    def test(self, n: int) -> list[String]:
        """The first `n` strings of the test stream, which does not depend on the training size."""
        strings = self._draw(n, TEST)
        if len(strings) < n:
            raise UserError(
                f"{self.corpus.name}: has only {len(strings):,} strings for a test set of {n:,}; "
                "lower datasets/test_size or add lines"
            )
        return strings

    def validation(self, n: int, but: set[String]) -> list[String]:
        """`n` distinct strings that are not in `but`."""
        draw = partial(self._draw, purpose=VALIDATION)
        return _first(draw, n, lambda seen, s: s not in seen and s not in but, self.language)

    def permutation(self, n: int) -> np.ndarray:
        """A random order int[n], for drawing the groups to forget."""
        return np.random.default_rng(stream(self.seed, FORGET)).permutation(n)

    def distinct_of_counterpart(self, n: int) -> list[String]:
        """`n` distinct strings of the high-entropy counterpart."""
        if self.counterpart is None:
            raise UserError(
                f"language {self.language}: the variant dedup-matched needs its high-entropy "
                "counterpart; name one in datasets/high_entropy_counterpart"
            )
        return _first(
            lambda m: self.counterpart.draw(m, self.seed, COUNTERPART)[0],
            n,
            lambda seen, s: s not in seen,
            self.language,
        )

    def _draw_train(self, n: int) -> list[String]:
        return self._draw(n, TRAIN)

    def _draw(self, n: int, purpose: int) -> list[String]:
        """Draw strings of the language and remember their derivations."""
        strings, log_probs = self.corpus.draw(n, self.seed, purpose)
        for string, log_prob in zip(strings, log_probs, strict=True):
            self.derivations.setdefault(string, log_prob)
        return strings


def _first(draw: Callable[[int], list[String]], n: int, wanted, language: str) -> list[String]:
    """The first `n` strings of a stream for which `wanted(seen, string)` is true.

    `draw(m)` gives the first `m` strings of the stream; `seen` holds the strings taken so far.

    Raises `UserError` if 100 n draws do not hold `n` such strings.
    """
    draws = n
    while draws <= 100 * n:
        taken: list[String] = []
        seen: set[String] = set()
        for string in draw(draws):
            if wanted(seen, string):
                taken.append(string)
                seen.add(string)
            if len(taken) == n:
                return taken
        draws *= 10
    raise UserError(
        f"language {language}: {draws // 10:,} draws hold only {len(taken):,} of the {n:,} strings "
        "needed; the language is too small: lower the train size or choose a richer language"
    )
