"""What leakage needs to know of a corpus: paraphrases, wrong answers and groups of its strings.

A grammar makes them from derivations. A file of questions has them: other words for a question,
the other choices, and subjects.

Source: LMD3: Language Model Data Density Dependence, section 5.3, appendices A.3 and A.6.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from palimpsest.corpora import GrammarCorpus, String, text_of
from palimpsest.corpora.questions import PARAPHRASES
from palimpsest.corpora.questions_corpus import QuestionsCorpus
from palimpsest.datasets.sampling import Sampler
from palimpsest.density.answers import wrong_answers
from palimpsest.density.interventions import MOST_PARAPHRASES
from palimpsest.density.paraphrases import Paraphraser, too_few
from palimpsest.density.vectors import ngram_counts
from palimpsest.errors import UserError

CANDIDATES = 3  # for each test string, because those without enough paraphrases are left out
LABELLED = 10  # labelled questions near a question without a subject, whose majority names it


class Tested(Protocol):
    """The test strings of a corpus, and what belongs to them."""

    def candidates(self, n: int, trained: set[String]) -> list[String]:
        """Distinct strings that are not trained on; enough to find n with paraphrases."""

    def paraphrases(
        self, string: String, chance: np.random.Generator, but: Collection[String]
    ) -> list[String] | None:
        """Three paraphrases; None if the string has fewer."""

    def wrong(self, strings: Sequence[String]) -> dict[String, list[String]]:
        """Each string with every wrong answer; empty in a language without right answers."""

    def groups(self, strings: Sequence[String]) -> dict[String, str]:
        """The name of each string's group."""

    def training(self, n: int) -> list[String]:
        """The first n strings of the training stream; fewer, if there are no more."""

    def too_few(self, found: int, asked: int) -> UserError:
        """The error if too few strings have paraphrases."""


def tested_of(sampler: Sampler, level: int, redrawn: float) -> Tested:
    if isinstance(sampler.corpus, QuestionsCorpus):
        return TestedQuestions(sampler)
    return TestedOfGrammar(sampler, level, redrawn)


class TestedOfGrammar:
    """Strings of a grammar; see `Paraphraser` for `level` and `redrawn`."""

    def __init__(self, sampler: Sampler, level: int, redrawn: float):
        self.sampler, self.level = sampler, level
        self.corpus: GrammarCorpus = sampler.corpus
        self.paraphraser = Paraphraser(self.corpus.grammar, level, redrawn)

    def candidates(self, n: int, trained: set[String]) -> list[String]:
        lower = "density/leakage/tests or density/leakage/size"
        return self.sampler.validation(CANDIDATES * n, trained, lower)

    def paraphrases(
        self, string: String, chance: np.random.Generator, but: Collection[String]
    ) -> list[String] | None:
        return self.paraphraser.paraphrases(string, MOST_PARAPHRASES, chance, but)

    def wrong(self, strings: Sequence[String]) -> dict[String, list[String]]:
        return wrong_answers(self.corpus.grammar, strings)

    def groups(self, strings: Sequence[String]) -> dict[String, str]:
        return self.corpus.groups(strings, "derivation")

    def training(self, n: int) -> list[String]:
        return self.sampler.train(n)

    def too_few(self, found: int, asked: int) -> UserError:
        return too_few(self.sampler.language, found, asked, self.level)


class TestedQuestions:
    """Questions of a file; a question is trained on with its right answer."""

    def __init__(self, sampler: Sampler):
        self.sampler = sampler
        self.corpus: QuestionsCorpus = sampler.corpus

    def candidates(self, n: int, trained: set[String]) -> list[String]:
        """All questions that are not trained on, in the order of the file."""
        unseen = dict.fromkeys(self.corpus.strings[place] for place in self.corpus.unseen)
        return [string for string in unseen if string not in trained]

    def paraphrases(
        self, string: String, chance: np.random.Generator, but: Collection[String]
    ) -> list[String] | None:
        """Three random ones of a question's paraphrases."""
        known = [s for s in self.corpus.questions[string].rephrased if s not in but]
        if len(known) < MOST_PARAPHRASES:
            return None
        places = chance.choice(len(known), MOST_PARAPHRASES, replace=False)
        return [known[place] for place in places]

    def wrong(self, strings: Sequence[String]) -> dict[String, list[String]]:
        return {string: self.corpus.questions[string].wrong for string in strings}

    def groups(self, strings: Sequence[String]) -> dict[String, str]:
        """The subjects. A paraphrase has that of its question.

        A question without a subject has that of most of the ten nearest questions with one, by
        counts of n-grams, as in appendix A.6 of the paper.
        """
        subject_of = {string: own.subject for string, own in self.corpus.questions.items()}
        for own in self.corpus.questions.values():
            subject_of |= dict.fromkeys([*own.rephrased, *own.wrong], own.subject)
        unknown = [string for string in dict.fromkeys(strings) if not subject_of[string]]
        labelled = [s for s, own in self.corpus.questions.items() if own.subject]
        if unknown and labelled:
            found = subjects_nearby(unknown, labelled, [subject_of[s] for s in labelled])
            subject_of |= dict(zip(unknown, found, strict=True))
        return {string: subject_of[string] or "none" for string in strings}

    def training(self, n: int) -> list[String]:
        return self.corpus.draw(n, self.sampler.seed)[0]

    def too_few(self, found: int, asked: int) -> UserError:
        return UserError(
            f"density/leakage/tests: of the questions of {self.sampler.language} that are not "
            f"trained on, only {found} of {asked} have {MOST_PARAPHRASES} different {PARAPHRASES}; "
            "lower it, or add paraphrases"
        )


def subjects_nearby(
    strings: Sequence[String], labelled: Sequence[String], subjects: Sequence[str]
) -> list[str]:
    """The most frequent subject of the nearest labelled strings, for each string.

    Of equally frequent ones, that of the nearer string.
    """
    index: dict[tuple, list[tuple[int, float]]] = defaultdict(list)
    for place, string in enumerate(labelled):
        counts = ngram_counts(_asked(string))
        length = np.sqrt(sum(count**2 for count in counts.values()))
        for ngram, count in counts.items():
            index[ngram].append((place, count / length))
    found = []
    for string in strings:
        similarity = np.zeros(len(labelled))
        for ngram, count in ngram_counts(_asked(string)).items():
            for place, share in index.get(ngram, ()):
                similarity[place] += count * share
        nearest = np.argsort(-similarity, kind="stable")[:LABELLED]
        found.append(Counter(subjects[place] for place in nearest).most_common(1)[0][0])
    return found


def _asked(string: String) -> list[str]:
    """The words of a question and its choices, without what stands before every question."""
    return text_of(string).partition("\n\n")[2].split()
