"""Datasets of shortcuts, of answers to learn by heart, and of strings that repeat or never do.

**Markers** are heuristic memorisation: a symbol at the start of every string, which is the string's
answer in a share alpha of the training strings, and random in the others. They are to a formal
language what colours are to coloured digits. A share of the training strings have a wrong answer,
so that the rule is not always right, and the marker may be right more often. Their markers are
always random: what only the string itself tells is then the same at every alpha, and alpha is a
dose of the shortcut alone. **Shuffled** answers are example-level memorisation: the answers of a
share beta of the training strings are permuted among them, so that nothing but the string itself
tells its answer. **Repeated** strings are trained on in every epoch, and **fresh** strings, their
placebo, in one.

Of these strings, a model predicts the answer alone, as a classifier does. So the loss, and what is
memorised, is that of the answer.

A model of markers or shuffled answers is evaluated on clean strings that were never trained on:
their answers are right, equally many strings have each answer and, if there are markers, each
marker stands equally often with each answer. **Held-out** strings are the placebo of what is
memorised: as many as are trained on, with markers and answers made in the same way, and never
trained on. All variants of a seed have the same strings, but for markers and answers.

Source: the paper on information measures of neurons, appendices B.1 and B.5.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest.corpora import GrammarCorpus, String, text_of
from palimpsest.datasets.build import DatasetRequest, tabulate
from palimpsest.errors import UserError
from palimpsest.information.answers import answer_of, answers, with_answers
from palimpsest.information.interventions import FRESH, percent_marked, percent_shuffled
from palimpsest.languages import Grammar

AGREES, DISAGREES = "agrees", "disagrees"  # roles of evaluated strings: does the marker?
SURE = 1e-9  # nats
HELD_OUT = 1  # of the chance of held-out strings
MORE_DRAWS = (2, 4, 8, 16)  # times the number of evaluated strings


def marked(request: DatasetRequest) -> pd.DataFrame:
    """Training strings with markers; some markers are the strings' answers.

    Options: `tests`, the number of evaluated strings, a multiple of the square of the number of
    answers; `label_noise`, the share of training strings with a wrong answer.
    """
    alpha = percent_marked(request.variant) / 100
    names = answers(request.sampler.corpus.grammar)
    noise = request.options["label_noise"]
    drawn = Drawn.of(request, names)

    def with_markers(strings: Sequence[String], chance: np.random.Generator) -> list[String]:
        chosen = _chosen(chance, len(strings), alpha)
        random = chance.integers(len(names), size=len(strings))
        wrong = _chosen(chance, len(strings), noise)
        steps = chance.integers(1, len(names), size=len(strings))
        found = []
        for place, string in enumerate(strings):
            own = names.index(answer_of(string))
            marker = own if place in chosen and place not in wrong else random[place]
            answer = (own + steps[place]) % len(names) if place in wrong else own
            found.append((names[marker], *string[:-1], names[answer]))
        return found

    # The strings of an answer are neighbours, so each answer has all markers.
    evaluated = [(names[place % len(names)], *s) for place, s in enumerate(drawn.tests)]
    table = _tabulated(
        request, drawn.treated(with_markers), evaluated, alpha=alpha, label_noise=noise
    )
    roles = {text_of(s): AGREES if s[0] == answer_of(s) else DISAGREES for s in evaluated}
    return table.assign(role=table["text"].map(roles).astype("string"))


def shuffled(request: DatasetRequest) -> pd.DataFrame:
    """Training strings; some of them have their answers permuted among them.

    Options: `tests`, as for `marked`.
    """
    beta = percent_shuffled(request.variant) / 100
    drawn = Drawn.of(request, answers(request.sampler.corpus.grammar))

    def with_answers_of_others(
        strings: Sequence[String], chance: np.random.Generator
    ) -> list[String]:
        chosen = sorted(_chosen(chance, len(strings), beta))
        permuted = dict(zip(chosen, chance.permutation(chosen), strict=True))
        return [
            (*string[:-1], answer_of(strings[permuted.get(place, place)]))
            for place, string in enumerate(strings)
        ]

    return _tabulated(request, drawn.treated(with_answers_of_others), drawn.tests, beta=beta)


@dataclass(frozen=True)
class Drawn:
    """The strings of a dataset before anything is done to them; no string is on two sides."""

    request: DatasetRequest
    train: Sequence[String]
    held_out: Sequence[String]
    tests: Sequence[String]

    @classmethod
    def of(cls, request: DatasetRequest, names: Sequence[str]) -> "Drawn":
        train = request.sampler.train(request.size)
        lower = "the train size or information/tests"
        held_out = request.sampler.validation(request.size, set(train), lower)
        tests = clean_tests(request, {*train, *held_out}, names)
        return cls(request, train, held_out, tests)

    def treated(self, treatment: Callable) -> tuple[list[String], list[String]]:
        """The training strings and the held-out ones after a treatment, each with own chance."""
        sampler, options = self.request.sampler, self.request.options
        about = [sampler.seed, self.request.size, options["tests"]]
        return (
            treatment(self.train, np.random.default_rng(about)),
            treatment(self.held_out, np.random.default_rng([*about, HELD_OUT])),
        )


def repeated_or_fresh(request: DatasetRequest) -> pd.DataFrame:
    """Distinct training strings, and distinct strings that are never trained on.

    Both variants have the same strings that are never trained on, and the repeated strings
    are the fresh ones of the first epoch. The epoch of a fresh string is its `cohort`.

    Options: `size`, the number of training strings in an epoch; `epochs`; `tests`, the number of
    strings that are never trained on.
    """
    size, epochs, tests = (request.options[name] for name in ("size", "epochs", "tests"))
    lower = "information/finetuned/size or information/finetuned/tests"
    shuffled = request.sampler.shuffled(tests + size * epochs, lower)
    never, training = Counter(shuffled[:tests]), shuffled[tests:]
    if request.variant != FRESH:
        return tabulate(request, Counter(training[:size]), never)
    epochs_of = {string: place // size + 1 for place, string in enumerate(training)}
    return tabulate(request, Counter(training), never, cohorts=epochs_of)


def clean_tests(request: DatasetRequest, others: set[String], names: Sequence[str]) -> list[String]:
    """Strings that are not among others, equally many with each answer, answer after answer.

    Raises `UserError` if the number of tests cannot be divided, or if the language has too few
    strings.
    """
    n_tests = request.options["tests"]
    if n_tests % len(names) ** 2:
        raise UserError(
            f"information/tests: {n_tests} strings cannot be evenly divided among {len(names)} "
            f"answers and {len(names)} markers; choose a multiple of {len(names) ** 2}"
        )
    each = n_tests // len(names)
    for times in MORE_DRAWS:
        lower = "the train size or information/tests"
        drawn = request.sampler.validation(times * n_tests, others, lower)
        found = {name: [s for s in drawn if answer_of(s) == name][:each] for name in names}
        if all(len(own) == each for own in found.values()):
            return [string for own in found.values() for string in own]
    fewest = min(found, key=lambda name: len(found[name]))
    raise UserError(
        f"information/tests: {MORE_DRAWS[-1] * n_tests:,} strings of {request.sampler.language} "
        f"hold only {len(found[fewest])} of {each} with the answer {fewest!r}; lower it"
    )


def _chosen(chance: np.random.Generator, n: int, share: float) -> set[int]:
    """The places of a share of n strings; a larger share holds those of a smaller one."""
    return set(chance.permutation(n)[: round(share * n)].tolist())


def _tabulated(
    request: DatasetRequest,
    treated: tuple[list[String], list[String]],
    tests: Sequence[String],
    **share: float,
) -> pd.DataFrame:
    """The table `strings`, with probabilities of the language that training strings are drawn from.

    `treated` are the training strings and the held-out ones.

    They are null for an evaluated string that this language does not have: where every marker is
    the answer, a string with another marker. `group` is the answer, which alone is predicted.
    """
    grammar = request.sampler.corpus.grammar
    # Every string has a probability where markers are random.
    possible = share | {"alpha": 0.0} if "alpha" in share else share
    anything = GrammarCorpus(with_answers(grammar, **possible))
    train, held_out = treated
    table = tabulate(request, Counter(train), Counter(tests), held_out, learned=anything)
    learned = with_answers(grammar, **share)
    strings = [tuple(text.split()) for text in table["text"]]
    log_prob = learned.log_probability(strings)
    # The end after the answer, if it is predicted, is always there.
    n_tokens = 1 + request.predict_end
    optimal = _loss_of_answers(learned, strings, log_prob, answers(grammar)) / n_tokens
    is_known = np.isfinite(log_prob)
    return table.assign(
        n_tokens=n_tokens,
        log_prob=np.where(is_known, log_prob, np.nan),
        optimal_loss=np.where(is_known, optimal, np.nan),
        group=pd.array([answer_of(string) for string in strings], dtype="string"),
    )


def _loss_of_answers(
    grammar: Grammar, strings: Sequence[String], log_prob: np.ndarray, names: Sequence[str]
) -> np.ndarray:
    """The Bayes-optimal loss of the last symbol, float64[strings], nats.

    A model is only trained to predict last symbols, so it does not ask whether the string goes on:
    the probability is that of the string among those that differ from it in the answer alone.
    `log_prob` float64[strings] are log probabilities of the strings, and `names` all answers.
    """
    others = [
        grammar.log_probability([(*string[:-1], name) for string in strings]) for name in names
    ]
    with np.errstate(invalid="ignore"):
        loss = np.logaddexp.reduce(others) - log_prob
    # What rounding leaves of a sure answer must be no loss that a model can be below.
    return np.where(loss < SURE, 0.0, loss)
