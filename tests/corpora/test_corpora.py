"""Corpora: a grammar and a text answer the same questions."""

import math
from collections import Counter

import numpy as np
import pytest

from palimpsest import tables
from palimpsest.corpora import (
    GrammarCorpus,
    TextCorpus,
    corpus_names,
    find_corpus,
    read_corpus,
)
from palimpsest.datasets.build import build
from palimpsest.datasets.forgetting import build_forgetting
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.sections import KINDS

GRAMMAR = "S -> 'a' X [0.5] | 'b' X [0.5]\nX -> 'x' [0.75] | 'y' 'z' [0.25]\n"
TEXT = "the cat sleeps\n\n  the   dog sees the cat\nthe cat sleeps\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "formal.pcfg").write_text(GRAMMAR)
    (tmp_path / "notes.txt").write_text(TEXT)
    (tmp_path / "README.md").write_text("no corpus")
    return tmp_path


@pytest.fixture(params=["formal.pcfg", "notes.txt"])
def corpus(request, folder):
    return read_corpus(folder / request.param)


def test_strings_are_of_the_corpus_symbols(corpus):
    """Each symbol is one word, as datasets write strings with spaces between symbols."""
    strings, log_probs = corpus.draw(50, seed=0)
    assert 0 < len(strings) == len(log_probs) <= 50
    assert {symbol for string in strings for symbol in string} <= set(corpus.terminals)
    assert all(len(symbol.split()) == 1 for symbol in corpus.terminals)
    assert len(set(strings)) <= corpus.n_strings()
    assert max(map(len, strings)) <= corpus.longest()
    assert 0 < corpus.expected_length() <= corpus.longest()


def test_fewer_draws_are_the_first_of_more(corpus):
    """Thus a larger training set contains the smaller one of the same seed."""
    assert corpus.draw(2, seed=3)[0] == corpus.draw(40, seed=3)[0][:2]
    assert len({tuple(corpus.draw(40, seed)[0]) for seed in range(20)}) > 1


def test_probabilities_of_a_grammar_are_exact(folder):
    """By hand: log probabilities, and the loss per predicted token with and without the end."""
    corpus = read_corpus(folder / "formal.pcfg")
    assert corpus.has_probabilities
    strings = [("a", "x"), ("b", "y", "z"), ("c",)]
    expected = [math.log(0.375), math.log(0.125), -math.inf]
    np.testing.assert_allclose(corpus.log_probability(strings), expected)
    whole = corpus.optimal_loss(strings[:2], predict_end=True)
    np.testing.assert_allclose(whole, [-math.log(0.375) / 3, -math.log(0.125) / 4])


def test_nothing_is_known_of_a_text(folder):
    """NaN, and never a number that somebody could take for a probability."""
    corpus = read_corpus(folder / "notes.txt")
    assert not corpus.has_probabilities
    strings, log_probs = corpus.draw(5, seed=0)
    assert np.isnan(log_probs).all()
    assert np.isnan(corpus.log_probability(strings)).all()
    for predict_end in (False, True):
        assert np.isnan(corpus.optimal_loss(strings, predict_end)).all()


def test_each_line_of_a_text_is_used_once(folder):
    """A string is drawn as often as it occurs in the text; the text has no more strings."""
    corpus = read_corpus(folder / "notes.txt")
    assert corpus.n_strings() == 2
    assert corpus.expected_length() == pytest.approx((3 + 5 + 3) / 3)
    assert Counter(corpus.draw(3000, seed=0)[0]) == Counter(corpus.strings)


def test_train_and_test_of_a_text_are_other_lines(tmp_path):
    """Whatever their sizes, as long as the text has enough lines; then validation as well."""
    (tmp_path / "many.txt").write_text("\n".join(f"line number {n}" for n in range(100)))
    for seed in range(5):
        sampler = Sampler("many", read_corpus(tmp_path / "many.txt"), seed)
        train, test = set(sampler.train(60)), set(sampler.test(30))
        validation = set(sampler.validation(10, but=train | test))
        assert len(train | test | validation) == 100
        assert sampler.train(20) == sampler.train(60)[:20]
    with pytest.raises(UserError, match="has only 100 strings for a test set of 101; lower"):
        sampler.test(101)
    with pytest.raises(UserError, match="hold only 100 of the 101 strings needed"):
        sampler.train(101)


def test_groups(folder):
    """Groups by string in both; in a grammar also by derivation, named by its first choice."""
    formal, notes = read_corpus(folder / "formal.pcfg"), read_corpus(folder / "notes.txt")
    strings = [("a", "x"), ("b", "x"), ("a", "y", "z")]
    assert list(formal.groups(strings, "derivation").values()) == ["a X", "b X", "a X"]
    for corpus in (formal, notes):
        assert list(corpus.groups(strings, "string").values()) == ["a x", "b x", "a y z"]
    with pytest.raises(UserError, match="a text has no groups by derivation"):
        notes.groups(strings, "derivation")


def test_a_dataset_of_a_text(folder):
    """It is a table like any other, whose probabilities are null."""
    sampler = Sampler("notes", read_corpus(folder / "notes.txt"), seed=0)
    frame = build(sampler, "base", 2, 1, predict_end=False)
    assert frame["count"].sum() == 2
    tables.write(folder / "strings.parquet", frame, KINDS["strings"])
    read = tables.read(folder / "strings.parquet", KINDS["strings"])
    assert read[["log_prob", "optimal_loss", "derivation_log_prob"]].isna().all(axis=None)


def test_a_part_of_a_text_can_be_forgotten(folder):
    (folder / "many.txt").write_text("\n".join(f"line number {n}" for n in range(60)))
    sampler = Sampler("many", read_corpus(folder / "many.txt"), seed=0)
    variants = build_forgetting(sampler, 12, 4, 4, False, "string", 0.25)
    assert (variants["retain"]["split"] == "forget").any()
    assert variants["original"]["log_prob"].isna().all()


# Files


def test_corpora_are_found_by_name(folder):
    assert corpus_names(folder) == ["formal", "notes"]
    assert find_corpus(folder, "formal") == str(folder / "formal.pcfg")
    assert find_corpus(folder, "notes") == str(folder / "notes.txt")
    assert isinstance(read_corpus(folder / "formal.pcfg"), GrammarCorpus)
    assert isinstance(read_corpus(folder / "notes.txt"), TextCorpus)


def test_two_files_of_one_name_are_refused(folder):
    (folder / "notes.pcfg").write_text(GRAMMAR)
    with pytest.raises(
        UserError, match=r"notes\.pcfg and .*notes\.txt have the same name; rename or"
    ):
        find_corpus(folder, "notes")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.txt", b"\n  \n", "has no strings; write one string per line"),
        ("binary.txt", b"\xff\xfe\x00", "cannot be read as text in UTF-8"),
        ("README.md", b"a text", r"its name must end with \.pcfg or \.txt"),
        ("gap.pcfg", b"S -> 'a b' [1.0]", "is empty or has white space in it"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=said) as error:
        read_corpus(tmp_path / name)
    assert "\n" not in str(error.value)
    assert name in str(error.value)


def test_a_missing_text_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"none\.txt: cannot be read"):
        read_corpus(tmp_path / "none.txt")
