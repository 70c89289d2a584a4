"""Corpora: a grammar and a text answer the same questions."""

import itertools
import math
import re
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palimpsest import tables
from palimpsest.corpora import (
    GrammarCorpus,
    TextCorpus,
    corpus_names,
    find_corpus,
    read_corpus,
)
from palimpsest.corpora.corpus import TEST
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import DISJOINT, Sampler
from palimpsest.errors import Notice, UserError
from palimpsest.languages import Grammar
from palimpsest.sections import KINDS
from palimpsest.unlearning.forgetting_data import build_forgetting

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
    assert {symbol for string in strings for symbol in string} <= set(corpus.alphabet.terminals)
    assert all(len(symbol.split()) == 1 for symbol in corpus.alphabet.terminals)
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
        ("binary.txt", b"\xff\xfe\x00", "not UTF-8 text"),
        ("wide.txt", "two words\n".encode("utf-16-le"), "has a byte of 0"),
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


# What a text holds


def noticed(path) -> str:
    """The one line that reading a text warns with; empty if it does not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_corpus(path)
    assert len(caught) <= 1
    for warning in caught:
        assert isinstance(warning.message, Notice)
        assert "\n" not in str(warning.message)
        assert str(warning.message).startswith(f"{path}: ")
    return str(caught[0].message) if caught else ""


@given(
    lines=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40), seed=st.integers(0, 99)
)
def test_copies_of_a_line_are_neighbours_in_every_order(lines, seed):
    """So a place in the order parts at most one string; without copies the order is as drawn."""
    corpus = TextCorpus("notes", [(line,) for line in lines])
    order = [string[0] for string in corpus.draw(len(lines), seed)[0]]
    assert sorted(order) == sorted(lines)
    assert [letter for letter, _ in itertools.groupby(order)] == list(dict.fromkeys(order))
    distinct = TextCorpus("notes", [(f"{line}{n}",) for n, line in enumerate(lines)])
    permuted = np.random.default_rng(seed).permutation(len(lines))
    assert distinct.draw(99, seed)[0] == [distinct.strings[place] for place in permuted]
    assert distinct.draw(99, seed, TEST)[0] == [distinct.strings[p] for p in permuted[::-1]]


def test_a_string_with_copies_is_as_likely_on_each_side():
    """Copies do not pull a string to the side of the training strings."""
    corpus = TextCorpus("notes", [("often",)] * 20 + [(str(n),) for n in range(20)])
    first = [corpus.draw(1, seed)[0][0] == ("often",) for seed in range(2000)]
    last = [corpus.draw(1, seed, TEST)[0][0] == ("often",) for seed in range(2000)]
    assert abs(sum(first) - sum(last)) < 60  # both near 2000 / 21


@settings(max_examples=60, deadline=None)
@given(
    copies=st.lists(st.integers(1, 5), min_size=2, max_size=20),
    size=st.integers(1, 40),
    test_size=st.integers(1, 40),
    seed=st.integers(0, 9),
)
def test_no_line_is_on_both_sides_unless_it_is_said(copies, size, test_size, seed):
    """Enough lines: no string on two sides, or one line whose remedy is true. Too few: a count."""
    strings = [(str(n),) for n, times in enumerate(copies) for _ in range(times)]
    sampler = Sampler("notes", TextCorpus("notes", strings), seed)

    def sides(test_size):
        """How many test strings are trained on, and what was said."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frame = build(sampler, "base", size, test_size, predict_end=False)
        shared = frame.loc[frame["count"] > 0, "test_count"].sum()
        return shared, [str(warning.message) for warning in caught]

    if max(size, test_size) > len(strings):
        with pytest.raises(UserError, match="add lines to the text"):
            sides(test_size)
    elif size + test_size > len(strings):
        shared, said = sides(test_size)
        assert shared > 0
        assert f"{shared} of {test_size} test strings are also trained on" in said[0]
        assert "lower datasets/test_size" in said[0]
    else:
        try:
            shared, text = sides(test_size)[0], ""
        except UserError as error:
            shared, text = 0, str(error)
        assert shared == 0
        assert not text or "would be in the training and in the test set" in text
        if lower := re.search(r"lower datasets/test_size to (\d+)", text):
            assert sides(int(lower[1])) == (0, [])


def test_what_is_no_validation_string_names_the_remedy():
    """Of 40 lines, 4 are neither training nor test strings; the remedy is not a richer language."""
    sampler = Sampler("notes", TextCorpus("notes", [(str(n),) for n in range(40)]), seed=0)
    taken = {*sampler.train(16), *sampler.test(20)}
    with pytest.raises(UserError) as error:
        sampler.validation(8, but=taken)
    text = str(error.value)
    assert "40 draws hold only 4 of the 8 strings needed" in text
    assert "the text is too short: lower datasets/test_size" in text
    assert "richer" not in text
    assert "datasets/split" not in text


def test_copies_are_counted(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("a b\nc\na  b\n\na b\n")
    assert "2 of its 4 lines are copies of others" in noticed(path)
    assert read_corpus(path).most_draws() == 4
    path.write_text("a b\nc\n")
    assert not noticed(path)


def test_composed_and_decomposed_letters_are_said(tmp_path):
    """They look alike; of one kind alone, there is nothing to mend."""
    path = tmp_path / "notes.txt"
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    path.write_text(f"un {composed}\nrien\ndeux {decomposed}\n", encoding="utf-8")
    assert "1 words are written with composed and with decomposed letters" in noticed(path)
    assert "in lines 1 and 3" in noticed(path)
    assert len(read_corpus(path).alphabet.terminals) == 5
    for word in (composed, decomposed):
        path.write_text(f"un {word}\ndeux {word}s\n", encoding="utf-8")
        assert not noticed(path)


@pytest.mark.parametrize("space", ["\u00a0", "\u2028", "\u0085", "\x0b", "\x0c", "\u3000"])
def test_other_white_space_separates_words_and_is_said(tmp_path, space):
    """Nothing but LF, CR LF and CR ends a line, whatever Python's `splitlines` does."""
    path = tmp_path / "notes.txt"
    path.write_text(f"a\tb\nc{space}d{space}e\n", encoding="utf-8", newline="")
    corpus = read_corpus(path)
    assert corpus.strings == [("a", "b"), ("c", "d", "e")]
    assert f"U+{ord(space):04X} (" in noticed(path)
    assert "separates words (2 times, first in line 2)" in noticed(path)


@pytest.mark.parametrize("unseen", ["\u200b", "\u200d", "\ufeff", "\u00ad", "\x07", "\ufffd"])
def test_a_character_that_nobody_sees_is_said(tmp_path, unseen):
    """It stays a part of its word; bytes that another program lost count as well."""
    path = tmp_path / "notes.txt"
    path.write_text(f"a\nb{unseen} a\n", encoding="utf-8", newline="")
    assert read_corpus(path).strings[1] == (f"b{unseen}", "a")
    assert f"U+{ord(unseen):04X} (" in noticed(path)
    assert "is part of a word (1 times, first in line 2)" in noticed(path)


def test_many_unusual_characters_are_one_short_line(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("a" + "".join(map(chr, range(0x2000, 0x200B))) + "b\n", encoding="utf-8")
    assert noticed(path).count("U+20") == 3
    assert noticed(path).endswith("so do 8 other characters")


def test_the_same_text_from_any_editor_is_the_same_corpus(tmp_path):
    """A mark at the start (BOM), and ends of lines of every system."""
    path = tmp_path / "notes.txt"
    for start, end in itertools.product(("", "\ufeff"), ("\n", "\r\n", "\r")):
        path.write_text(start + f"a b{end}{end}c{end}", encoding="utf-8", newline="")
        assert not noticed(path)
        corpus = read_corpus(path)
        assert corpus.strings == [("a", "b"), ("c",)]
        assert corpus.lines == [1, 3]


def test_a_byte_that_is_no_text_is_named_by_its_line(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"a b\ncaf\xe9 c\n")
    with pytest.raises(UserError, match=r"notes\.txt:2: not UTF-8 text .byte 0xe9"):
        read_corpus(path)


def test_the_remedy_is_what_a_user_can_change():
    """Each kind of corpus and each purpose has its own."""
    one = GrammarCorpus(Grammar.from_string("S -> 'a' [1]"))
    grammar = Sampler("one", one, 0, split=DISJOINT)
    text = Sampler("notes", TextCorpus("notes", [("a",), ("b",)]), 0)
    for sampler, remedies in (
        (grammar, "the language is too small: lower SIZES, or choose a richer language"),
        (text, "the text is too short: lower SIZES, or add lines to the text"),
    ):
        with pytest.raises(UserError) as error:
            sampler.validation(9, set(), "SIZES")
        assert str(error.value).endswith(remedies)
    with pytest.raises(UserError, match="lower the train size, or add lines to the text"):
        text.train(3)
    # The only string is on one side, so there is none for the other.
    with pytest.raises(UserError, match=": set datasets/split to independent, or choose a richer"):
        grammar.train(1) and grammar.unseen(1)
