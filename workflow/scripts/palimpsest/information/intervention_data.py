"""Datasets of shortcuts, of answers to learn by heart, and of strings that repeat or never do.

**Markers** are heuristic memorisation: a symbol at the start of every string, which is the string's
answer in a share alpha of the training strings, and random in the others. They are to a formal
language what colours are to coloured digits. And as there, a share of the training strings have a
wrong answer, so that the rule is not always right, and the marker may be right more often.
**Shuffled** answers are example-level memorisation:
the answers of a share beta of the training strings are permuted among them, so that nothing but the
string itself tells its answer. **Repeated** strings are trained on in every epoch, and **fresh**
strings, their placebo, in one.

Of these strings, a model predicts the answer alone, as a classifier does. So the loss, and what is
memorised, is that of the answer.

A model of markers or shuffled answers is evaluated on clean strings that were never trained on:
their answers are right, equally many strings have each answer and, if there are markers, each
marker stands equally often with each answer. All variants of a seed have the same strings, but for
markers and answers.

Source: the paper on information measures of neurons, appendices B.1 and B.5.
"""

from collections import Counter
from collections.abc import Sequence

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
MORE_DRAWS = (2, 4, 8, 16)  # times the number of evaluated strings


def marked(request: DatasetRequest) -> pd.DataFrame:
    """Training strings with markers; some markers are the strings' answers.

    Options: `tests`, the number of evaluated strings, a multiple of the square of the number of
    answers; `label_noise`, the share of training strings with a wrong answer.
    """
    alpha = percent_marked(request.variant) / 100
    names = answers(request.sampler.corpus.grammar)
    noise = request.options["label_noise"]
    train = request.sampler.train(request.size)
    tests = clean_tests(request, train, names)
    chance = _chance(request)
    chosen = _chosen(chance, len(train), alpha)
    drawn = chance.integers(len(names), size=len(train))
    train = _with_wrong_answers(train, names, noise, chance)
    with_markers = [
        (answer_of(string) if place in chosen else names[drawn[place]], *string)
        for place, string in enumerate(train)
    ]
    # The strings of an answer are neighbours, so each answer has all markers.
    evaluated = [(names[place % len(names)], *string) for place, string in enumerate(tests)]
    table = _tabulated(request, with_markers, evaluated, alpha=alpha, label_noise=noise)
    roles = {text_of(s): AGREES if s[0] == answer_of(s) else DISAGREES for s in evaluated}
    return table.assign(role=table["text"].map(roles).astype("string"))


def shuffled(request: DatasetRequest) -> pd.DataFrame:
    """Training strings; some of them have their answers permuted among them.

    Options: `tests`, as for `marked`.
    """
    beta = percent_shuffled(request.variant) / 100
    names = answers(request.sampler.corpus.grammar)
    train = request.sampler.train(request.size)
    tests = clean_tests(request, train, names)
    chance = _chance(request)
    chosen = sorted(_chosen(chance, len(train), beta))
    permuted = dict(zip(chosen, chance.permutation(chosen), strict=True))
    with_answers_of_others = [
        (*string[:-1], answer_of(train[permuted.get(place, place)]))
        for place, string in enumerate(train)
    ]
    return _tabulated(request, with_answers_of_others, tests, beta=beta)


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


def clean_tests(
    request: DatasetRequest, train: Sequence[String], names: Sequence[str]
) -> list[String]:
    """Strings that are not trained on, equally many with each answer, answer after answer.

    Raises `UserError` if the number of tests cannot be divided, or if the language has too few
    strings.
    """
    n_tests, trained = request.options["tests"], set(train)
    if n_tests % len(names) ** 2:
        raise UserError(
            f"information/tests: {n_tests} strings cannot be evenly divided among {len(names)} "
            f"answers and {len(names)} markers; choose a multiple of {len(names) ** 2}"
        )
    each = n_tests // len(names)
    for times in MORE_DRAWS:
        lower = "the train size or information/tests"
        drawn = request.sampler.validation(times * n_tests, trained, lower)
        found = {name: [s for s in drawn if answer_of(s) == name][:each] for name in names}
        if all(len(own) == each for own in found.values()):
            return [string for own in found.values() for string in own]
    fewest = min(found, key=lambda name: len(found[name]))
    raise UserError(
        f"information/tests: {MORE_DRAWS[-1] * n_tests:,} strings of {request.sampler.language} "
        f"hold only {len(found[fewest])} of {each} with the answer {fewest!r}; lower it"
    )


def _chance(request: DatasetRequest) -> np.random.Generator:
    return np.random.default_rng([request.sampler.seed, request.size, request.options["tests"]])


def _chosen(chance: np.random.Generator, n: int, share: float) -> set[int]:
    """The places of a share of n strings; a larger share holds those of a smaller one."""
    return set(chance.permutation(n)[: round(share * n)].tolist())


def _with_wrong_answers(
    strings: Sequence[String], names: Sequence[str], share: float, chance: np.random.Generator
) -> list[String]:
    """The strings, a share of them with one of the wrong answers."""
    wrong = _chosen(chance, len(strings), share)
    steps = chance.integers(1, len(names), size=len(strings))
    return [
        (*string[:-1], names[(names.index(answer_of(string)) + steps[place]) % len(names)])
        if place in wrong
        else string
        for place, string in enumerate(strings)
    ]


def _tabulated(
    request: DatasetRequest, train: Sequence[String], tests: Sequence[String], **share: float
) -> pd.DataFrame:
    """The table `strings`, with probabilities of the language that training strings are drawn from.

    They are null for an evaluated string that this language does not have: where every marker is
    the answer, a string with another marker. `group` is the answer, which alone is predicted.
    """
    grammar = request.sampler.corpus.grammar
    # Every string has a probability where markers are random.
    possible = share | {"alpha": 0.0} if "alpha" in share else share
    anything = GrammarCorpus(with_answers(grammar, **possible))
    table = tabulate(request, Counter(train), Counter(tests), learned=anything)
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
