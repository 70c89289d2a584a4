"""Streams of strings of a corpus: one stream for each purpose, decided by a dataset's seed."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from palimpsest.corpora import Corpus, String
from palimpsest.corpora.corpus import COUNTERPART, FORGET, SIDE, TEST, TRAIN, VALIDATION, stream
from palimpsest.errors import UserError

INDEPENDENT, DISJOINT = "independent", "disjoint"


@dataclass(frozen=True)
class Sampler:
    """Independent strings of a corpus, or of its high-entropy counterpart, for one seed.

    `language` is the corpus' name in tables. With the split `disjoint`, each distinct string of the
    training stream belongs, with all its copies, to one of two sides: the training strings, or the
    strings that are set apart. A fair coin decides the side. A frequent string can then be
    unseen, which does not happen with the split `independent`. `derivations` holds, for each drawn
    string, the log probability of the derivation by which it was first drawn.

    Source: Learning Without Memorizing Considered Infeasible, section 3.3, and its authors' code.
    """

    language: str
    corpus: Corpus
    seed: int
    counterpart: Corpus | None = None
    split: str = INDEPENDENT
    derivations: dict[String, float] = field(default_factory=dict)

    def train(self, n: int, but: String | None = None) -> list[String]:
        """The first `n` strings of the training stream, without the string `but`.

        With the split `disjoint`, only strings of the training side are taken.
        """
        draw = self._draw_train
        if self._has_two_sides:
            draw = partial(self._draw_side, is_trained=True)
        purpose = "for training", "lower the train size"
        return self._first(draw, n, lambda seen, s: s != but, *purpose, of_side=True)

    def unseen(self, n: int) -> list[String]:
        """The first `n` strings that are set apart from training; none if there are no sides."""
        if not self._has_two_sides:
            return []
        draw = partial(self._draw_side, is_trained=False)
        purpose = "to set apart", "lower datasets/test_size"
        return self._first(draw, n, lambda seen, s: True, *purpose, of_side=True)

    def test(self, n: int) -> list[String]:
        """The first `n` strings of the test stream, which does not depend on the training size."""
        strings = self._draw(n, TEST)
        if len(strings) < n:
            raise UserError(
                f"{self.corpus.name}: has only {len(strings):,} strings for a test set of {n:,}; "
                f"lower datasets/test_size or {self.corpus.when_too_few}"
            )
        return strings

    def validation(
        self, n: int, but: set[String], lower: str = "datasets/test_size or the train size"
    ) -> list[String]:
        """`n` distinct strings that are not in `but`; `lower` names what a user may lower."""
        draw = partial(self._draw, purpose=VALIDATION)
        purpose = "that differ from one another and from all others", f"lower {lower}"
        return self._first(draw, n, lambda seen, s: s not in seen and s not in but, *purpose)

    def shuffled(self, n: int, lower: str) -> list[String]:
        """`n` distinct strings in a random order; `lower` is as in `validation`.

        Frequent strings are drawn early. Parts of the shuffled strings are random samples of one
        distribution.
        """
        drawn = self.validation(n, set(), lower)
        return [drawn[place] for place in np.random.default_rng(self.seed).permutation(n)]

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
        return first_wanted(
            lambda m: self.counterpart.draw(m, self.seed, COUNTERPART)[0],
            n,
            lambda seen, s: s not in seen,
            f"language {self.language}, counterpart {self.counterpart.name}",
            "that differ from one another; the language is too small: lower the train size, or "
            f"name a richer counterpart in datasets/high_entropy_counterpart/{self.language}",
        )

    def _first(
        self,
        draw: Callable[[int], list[String]],
        n: int,
        wanted,
        purpose: str,
        remedy: str,
        of_side: bool = False,
    ) -> list[String]:
        """The first `n` wanted strings, of one side if the split has sides; see `first_wanted`."""
        where = f"language {self.language}"
        is_grammar = self.corpus.has_probabilities
        cause = "the language is too small" if is_grammar else "the text is too short"
        if of_side and self._has_two_sides:
            where += ", one side of datasets/split disjoint"
            most = self.corpus.n_strings()
            strings = "strings" if math.isinf(most) else f"strings, at most {most:,.0f}"
            cause = f"a side has all copies of its strings, and the language has few {strings}"
            remedy = "set datasets/split to independent"
        why = f"{purpose}; {cause}: {remedy}, or {self.corpus.when_too_few}"
        return first_wanted(draw, n, wanted, where, why)

    @property
    def _has_two_sides(self) -> bool:
        """Whether unseen strings are set apart. They are matched by their probabilities."""
        return self.split == DISJOINT and self.corpus.has_probabilities

    def _draw_side(self, n: int, is_trained: bool) -> list[String]:
        strings = self._draw_train(n)
        distinct = list(dict.fromkeys(strings))
        coins = np.random.default_rng(stream(self.seed, SIDE)).random(len(distinct)) < 0.5
        side = dict(zip(distinct, coins, strict=True))
        return [string for string in strings if side[string] == is_trained]

    def _draw_train(self, n: int) -> list[String]:
        return self._draw(n, TRAIN)

    def _draw(self, n: int, purpose: int) -> list[String]:
        strings, log_probs = self.corpus.draw(n, self.seed, purpose)
        for string, log_prob in zip(strings, log_probs, strict=True):
            self.derivations.setdefault(string, log_prob)
        return strings


def first_wanted(
    draw: Callable[[int], list[String]], n: int, wanted, where: str, why: str
) -> list[String]:
    """The first `n` strings of a stream for which `wanted(seen, string)` is true.

    `draw(m)` gives the first `m` strings of the stream, or all if there are fewer; `seen` holds the
    strings taken so far. `where` and `why` begin and end the message of the error: what the
    strings are for, the cause, and the remedies.

    Raises `UserError` if 100 n draws do not hold `n` such strings.
    """
    draws = n
    while draws <= 100 * n:
        taken: list[String] = []
        seen: set[String] = set()
        strings = draw(draws)
        for string in strings:
            if wanted(seen, string):
                taken.append(string)
                seen.add(string)
            if len(taken) == n:
                return taken
        draws *= 10
    raise UserError(
        f"{where}: {len(strings):,} draws hold only {len(taken):,} of the {n:,} strings needed "
        f"{why}"
    )
