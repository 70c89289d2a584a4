"""Datasets with markers and with shuffled answers, and the languages that they are drawn from."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from helpers.experiments import ROOT, message
from palimpsest.corpora import GrammarCorpus, read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.information.answers import answers, with_answers
from palimpsest.information.intervention_data import AGREES, DISAGREES
from palimpsest.information.interventions import marked, percent_marked, percent_shuffled, shuffled
from palimpsest.languages import Grammar

CORPUS = read_corpus(ROOT / "config/languages/L3.pcfg")
MADE_BY = "palimpsest.information.intervention_data:"
SIZE, TESTS = 80, 32
PERCENTS = (0, 25, 50, 75, 100)
# The answer is decided by the first symbol; small enough to list all strings
TINY = Grammar.from_string(
    """
S -> X 'm' Y [0.25] | Z 'm' W [0.75]
X -> 'a' [0.5] | 'a' 'a' [0.5]
Z -> 'b' [1]
Y -> 'p' [1]
W -> 'q' [1]
"""
)


def dataset(function: str, percent: int, seed: int = 0, corpus=CORPUS, **options) -> pd.DataFrame:
    name = {"marked": marked, "shuffled": shuffled}[function](percent)
    given = {"tests": TESTS, "label_noise": 0.0, **options}
    predict_end = given.pop("predict_end", False)
    sampler = Sampler("L3", corpus, seed)
    return build(sampler, name, SIZE, 0, predict_end, options=given, made_by=MADE_BY + function)


def texts(table: pd.DataFrame, column: str) -> list[tuple[str, ...]]:
    """The strings of the training set or of the test set, with copies."""
    repeated = table.loc[table.index.repeat(table[column])]
    return [tuple(text.split()) for text in repeated["text"]]


@pytest.fixture(scope="module")
def datasets() -> dict[tuple[str, int], pd.DataFrame]:
    """Every variant of one seed."""
    functions = "marked", "shuffled"
    return {(name, percent): dataset(name, percent) for name in functions for percent in PERCENTS}


def test_names_of_variants_are_read_again():
    assert percent_marked(marked(25)) == percent_shuffled(shuffled(25)) == 25
    assert percent_marked("base") is percent_shuffled(marked(25)) is None


def test_answers_of_the_languages():
    assert answers(CORPUS.grammar) == ["1", "2", "3", "4"]
    assert answers(TINY) == ["p", "q"]
    for name in ("L1", "L5"):
        grammar = read_corpus(ROOT / f"config/languages/{name}.pcfg").grammar
        assert "its strings have no answer" in message(lambda own=grammar: answers(own))


@pytest.mark.parametrize(
    ("beta", "alpha", "noise"),
    [(0, None, 0), (0.4, None, 0), (0, 0.3, 0), (0.5, 1, 0), (1, 0, 0), (0, 0.3, 0.2)],
)
def test_the_language_of_an_intervention_by_hand(beta, alpha, noise):
    """The probability of every string, from the shares; they sum to 1."""
    grammar = with_answers(TINY, beta, alpha, noise)
    share = {"p": 0.25, "q": 0.75}
    starts = ((("a",), "p", 0.125), (("a", "a"), "p", 0.125), (("b",), "q", 0.75))
    total = 0.0
    for start, own, of_start in starts:
        for answer in share:
            of_rule = 1 - noise if answer == own else noise
            of_answer = beta * share[answer] + (1 - beta) * of_rule
            for marker in share if alpha is not None else [None]:
                marked = (alpha or 0) * (answer == own)
                even = 1 if marker is None else 1 / 2
                of_marker = (1 - marked) * even + marked * (marker == answer)
                string = (*([marker] if marker else []), *start, "m", answer)
                expected = of_start * of_answer * of_marker
                found = np.exp(grammar.log_probability([string])[0])
                assert found == pytest.approx(expected, abs=1e-12)
                total += found
    assert total == pytest.approx(1)


def test_a_share_of_the_markers_are_answers(datasets):
    """All others are even, and may agree by chance."""
    for percent in PERCENTS:
        train = texts(datasets["marked", percent], "count")
        assert len(train) == SIZE
        agree = sum(string[0] == string[-1] for string in train)
        assert SIZE * percent // 100 <= agree <= SIZE
    drawn = [s for seed in range(8) for s in texts(dataset("marked", 0, seed), "count")]
    assert chisquare(list(Counter(s[0] for s in drawn).values())).pvalue > 1e-3
    agree = sum(s[0] == s[-1] for s in drawn)
    assert abs(agree - len(drawn) / 4) < 4 * np.sqrt(len(drawn) * 3 / 16)


def test_without_markers_the_training_strings_are_the_ordinary_ones(datasets):
    """In all variants; only markers and answers differ."""
    ordinary = Counter(s[:-1] for s in Sampler("L3", CORPUS, 0).train(SIZE))
    for (name, _), table in datasets.items():
        first = 1 if name == "marked" else 0
        assert Counter(s[first:-1] for s in texts(table, "count")) == ordinary


def test_a_share_of_the_answers_is_permuted(datasets):
    """The numbers of all answers stay the same, and the answers of the others are right."""
    ordinary = Sampler("L3", CORPUS, 0).train(SIZE)
    of_start = Counter(s[:-1] for s in ordinary)
    answer = {s[:-1]: s[-1] for s in ordinary}
    for percent in PERCENTS:
        train = texts(datasets["shuffled", percent], "count")
        assert Counter(s[-1] for s in train) == Counter(s[-1] for s in ordinary)
        wrong = sum(answer[s[:-1]] != s[-1] for s in train)
        assert wrong <= SIZE * percent // 100
        assert (wrong > 0) == (percent > 0)
        assert Counter(s[:-1] for s in train) == of_start
    # Three of four permuted answers are wrong, if answers are even.
    assert wrong > SIZE / 2


def test_evaluated_strings_are_clean_balanced_and_the_same(datasets):
    """Each answer is there equally often, each marker with each answer; none is trained on."""
    starts = set()
    for (name, percent), table in datasets.items():
        tests = texts(table, "test_count")
        assert len(set(tests)) == len(tests) == TESTS
        assert set(Counter(s[-1] for s in tests).values()) == {TESTS // 4}
        if name == "marked":
            pairs = Counter((s[0], s[-1]) for s in tests)
            assert len(pairs) == 16
            assert set(pairs.values()) == {TESTS // 16}
            roles = table.set_index("text")["role"].dropna().to_dict()
            wanted = {" ".join(s): AGREES if s[0] == s[-1] else DISAGREES for s in tests}
            assert roles == wanted
            tests = [s[1:] for s in tests]
        assert np.isfinite(CORPUS.log_probability(tests)).all()
        others = table.loc[table["test_count"] == 0, "text"].str.split()
        starts_of_others = {tuple(s[name == "marked" : -1]) for s in others}
        assert not starts_of_others & {s[:-1] for s in tests}, (name, percent)
        starts.add(frozenset(tests))
    assert len(starts) == 1


@pytest.mark.parametrize("predict_end", [False, True])
def test_probabilities_are_those_of_the_training_strings_language(datasets, predict_end):
    """Null for strings that the language cannot have; the group is the answer.

    Of the answer alone there is a loss: minus its log probability, given all other symbols and that
    it is the last.
    """
    tables = dict(datasets)
    noisy = dataset("marked", 50, label_noise=0.25, predict_end=predict_end)
    tables["marked", 50] = noisy
    for (name, percent), table in tables.items():
        is_noisy = table is noisy
        share = {"alpha" if name == "marked" else "beta": percent / 100}
        grammar = with_answers(CORPUS.grammar, **share, label_noise=0.25 * is_noisy)
        strings = [tuple(text.split()) for text in table["text"]]
        log_prob = grammar.log_probability(strings)
        known = np.isfinite(log_prob)
        np.testing.assert_allclose(table["log_prob"][known], log_prob[known])
        assert table["log_prob"].isna().tolist() == (~known).tolist()
        assert table["optimal_loss"].isna().tolist() == (~known).tolist()
        impossible = (~known).sum()
        assert impossible == (TESTS * 3 // 4 if (name, percent) == ("marked", 100) else 0)
        assert table["group"].tolist() == [string[-1] for string in strings]
        with_end = is_noisy and predict_end
        assert set(table["n_tokens"]) == {1 + with_end}
        # Among the strings that differ in the answer alone
        names = answers(CORPUS.grammar)
        possible = [string for string, is_known in zip(strings, known, strict=True) if is_known]
        alike = [[(*string[:-1], name) for name in names] for string in possible]
        shares = [np.exp(grammar.log_probability(some)).sum() for some in alike]
        expected = (np.log(shares) - log_prob[known]) / (1 + with_end)
        np.testing.assert_allclose(table["optimal_loss"][known], expected, atol=1e-9)
        assert (table["optimal_loss"][known] >= 0).all()


def test_a_sure_answer_has_no_loss():
    """Rounding must not leave a loss that a model could be below."""
    short = read_corpus(ROOT / "config/languages/L3-short.pcfg")
    for corpus in (short, CORPUS):
        assert (dataset("shuffled", 0, corpus=corpus)["optimal_loss"] == 0).all()
    assert (dataset("shuffled", 50, corpus=short)["optimal_loss"] > 0.1).all()
    table = dataset("marked", 25, corpus=short, label_noise=0.25)
    assert (table["optimal_loss"] > 0.1).all()


@pytest.mark.parametrize("percent", [0, 50, 100])
def test_a_share_of_the_answers_is_wrong_and_their_markers_are_random(percent):
    """The same strings have a wrong answer at every alpha; evaluated strings are right."""
    right = dataset("marked", percent)
    noisy = dataset("marked", percent, label_noise=0.25)
    answer = {s[1:-1]: s[-1] for s in texts(right, "count")}
    train = texts(noisy, "count")
    wrong = [s for s in train if answer[s[1:-1]] != s[-1]]
    assert len(wrong) == SIZE // 4
    assert {s[-1] for s in train} <= set(answers(CORPUS.grammar))
    own = {string[1:-1]: string[0] for string in texts(dataset("marked", 0), "count")}
    assert all(s[0] == own[s[1:-1]] for s in wrong)
    right_ones = [s for s in train if answer[s[1:-1]] == s[-1]]
    if percent == 100:
        assert all(s[0] == s[-1] for s in right_ones)
    of_0 = texts(dataset("marked", 0, label_noise=0.25), "count")
    assert Counter(s[1:] for s in train) == Counter(s[1:] for s in of_0)
    tests = texts(noisy, "test_count")
    assert sorted(tests) == sorted(texts(right, "test_count"))


@pytest.mark.parametrize("function", ["marked", "shuffled"])
def test_held_out_strings_are_like_training_strings(function):
    """As many, none among others, and with as many wrong answers and markers that agree."""
    n_wrong, agree = {}, {}
    for seed in range(6):
        table = dataset(function, 50, seed, label_noise=0.25)
        held_out = table[table["split"] == "held_out"]
        assert len(held_out) == SIZE
        assert not held_out[["count", "test_count"]].any(axis=None)
        for name, own in (("trained", texts(table, "count")), ("held out", held_out["text"])):
            strings = [tuple(s.split()) if isinstance(s, str) else s for s in own]
            plain = [s[function == "marked" :] for s in strings]
            right = np.isfinite(CORPUS.log_probability(plain))
            n_wrong[name] = n_wrong.get(name, 0) + (~right).sum()
            agree[name] = agree.get(name, 0) + sum(s[0] == s[-1] for s in strings)
    n = 6 * SIZE
    for found in (n_wrong, agree):
        one, other = (found[name] / n for name in ("trained", "held out"))
        assert abs(one - other) < 4 * np.sqrt((one * (1 - one) + other * (1 - other)) / n)
    assert n_wrong["held out"] > n / 5


@pytest.mark.parametrize("function", ["marked", "shuffled"])
def test_numbers_that_cannot_be_divided_are_refused(function):
    text = message(lambda: dataset(function, 50, tests=20))
    assert text == (
        "information/tests: 20 strings cannot be evenly divided among 4 answers and 4 markers; "
        "choose a multiple of 16"
    )


def test_a_language_that_is_too_small_is_refused():
    text = message(lambda: dataset("shuffled", 50, corpus=GrammarCorpus(TINY), tests=8))
    assert "lower the train size" in text or text.startswith("information/tests: ")
