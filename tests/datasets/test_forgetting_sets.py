"""Forget sets: whole groups, some of the train set but never all of it."""

import warnings
from collections import Counter

import numpy as np
import pytest

from palimpsest import tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import Notice, UserError
from palimpsest.languages import Grammar
from palimpsest.sections import KINDS
from palimpsest.unlearning.forgetting_data import (
    build_forgetting,
    check_forget_set,
    read_forget_set,
)

# Short strings; many come twice; the start goes to S5 alone, which has three choices.
CORPUS = GrammarCorpus(
    Grammar.from_string("""
S -> S5 [1.0]
S5 -> 'a' X [0.5] | 'b' X [0.3] | 'c' X [0.2]
X -> Y Y Y Y [1.0]
Y -> 'x' [0.5] | 'y' [0.3] | 'z' [0.2]
""")
)


def forgetting(groups="string", share=0.2, seed=0, forget=None, size=60, corpus=CORPUS):
    """Both variants of a small problem."""
    sampler = Sampler("toy", corpus, seed)
    return build_forgetting(sampler, size, 30, 10, False, groups, share, forget)


def test_train_and_test_are_those_of_base():
    """The strings and their counts are those of the variant base."""
    original = forgetting()["original"]
    base = build(Sampler("toy", CORPUS, 0), "base", 60, 30, False)
    for column in ("count", "test_count"):
        ours = original.loc[original[column] > 0].set_index("string_id")[column]
        theirs = base.loc[base[column] > 0].set_index("string_id")[column]
        assert ours.sort_index().equals(theirs.sort_index())


def test_retain_is_original_without_what_is_forgotten():
    """The same rows in the same order; forget strings have no copies, all others keep theirs."""
    variants = forgetting()
    original, retain = variants["original"], variants["retain"]
    forgotten = original["split"] == "forget"
    assert forgotten.any()
    assert (original["string_id"] == retain["string_id"]).all()
    assert (original["split"] == retain["split"]).all()
    assert (original.loc[forgotten, "count"] > 0).all()
    assert (retain.loc[forgotten, "count"] == 0).all()
    assert (original.loc[~forgotten, "count"] == retain.loc[~forgotten, "count"]).all()


def test_validation_strings_are_in_neither_train_nor_test():
    """Distinct strings that no model is trained or tested on."""
    original = forgetting()["original"]
    validation = original[original["split"] == "validation"]
    assert len(validation) == 10
    assert (validation["count"] == 0).all()
    assert (validation["test_count"] == 0).all()


@pytest.mark.parametrize("groups", ["string", "derivation"])
def test_no_group_is_split(groups):
    """With every seed, all training strings of a group are in the same split."""
    for seed in range(10):
        original = forgetting(groups, share=0.4, seed=seed)["original"]
        train = original[original["count"] > 0]
        assert (train.groupby("group")["split"].nunique() == 1).all()
        assert train["group"].notna().all()
        assert original.loc[original["count"] == 0, "group"].isna().all()


def test_share_is_of_the_groups():
    """Rounded to whole groups, whichever strings they hold."""
    original = forgetting(share=0.2)["original"]
    train = original[original["count"] > 0]
    forgotten = train[train["split"] == "forget"]
    assert forgotten["group"].nunique() == round(0.2 * train["group"].nunique())


def test_another_seed_forgets_other_strings():
    """The forget set is drawn at random."""
    chosen = [
        frozenset(f.loc[f["split"] == "forget", "string_id"])
        for f in (forgetting(seed=seed)["original"] for seed in range(3))
    ]
    assert len(set(chosen)) == 3
    again = forgetting(seed=0)["original"]
    assert chosen[0] == frozenset(again.loc[again["split"] == "forget", "string_id"])


def test_a_top_level_derivation_is_the_first_choice():
    """The rule of S5, to which the start leads without a choice."""
    strings = [tuple("axyzx"), tuple("bxxxx"), tuple("czzzz"), tuple("ayyyy")]
    names = CORPUS.groups(strings, "derivation")
    assert [names[s] for s in strings] == ["a X", "b X", "c X", "a X"]


def test_an_ambiguous_string_is_of_its_most_probable_derivation():
    """0.6 * 0.5 against 0.4 * 1.0, so `a a` is of B, though A is the more probable rule."""
    grammar = Grammar.from_string("""
    S -> A [0.6] | B [0.4]
    A -> 'a' 'a' [0.5] | 'a' 'b' [0.5]
    B -> 'a' 'a' [1.0]
    """)
    names = GrammarCorpus(grammar).groups([("a", "a"), ("a", "b")], "derivation")
    assert names == {("a", "a"): "B", ("a", "b"): "A"}


def test_no_two_derivations_have_the_same_name():
    """A terminal may be spelled like a non-terminal, or like the word for an empty rule."""
    grammar = Grammar.from_string("""
    S -> A [0.5] | 'A' [0.3] | 'nothing' [0.1] | [0.1]
    A -> 'x' [1.0]
    """)
    corpus = GrammarCorpus(grammar)
    names = corpus.groups([("x",), ("A",), ("nothing",)], "derivation")
    assert len(set(names.values())) == 3
    assert set(names.values()) <= set(corpus.productions())
    assert len(set(corpus.productions())) == len(corpus.productions())


def test_an_empty_forget_set_is_refused():
    """A share of a few groups that rounds to none."""
    with pytest.raises(UserError, match="the forget set is empty: 3 groups in train are too few"):
        forgetting("derivation", share=0.1)


def test_forgetting_everything_is_refused():
    """Nothing would be retained."""
    with pytest.raises(UserError, match="has all training strings"):
        forgetting(share=0.999)


def test_a_split_group_is_refused():
    """Strings that the user names have to be whole groups."""
    original = forgetting("derivation", share=0.4)["original"]
    train = original[original["count"] > 0]
    first = [tuple(text.split(" ")) for text in train.loc[train["group"] == "b X", "text"]]
    assert len(first) > 1
    whole = forgetting("derivation", forget=first)["original"]
    assert set(whole.loc[whole["split"] == "forget", "group"]) == {"b X"}
    with pytest.raises(UserError, match="splits the group 'b X': it leaves"):
        forgetting("derivation", forget=first[:-1])
    assert len(forgetting("string", forget=first[:-1])) == 2


def test_what_was_not_trained_on_is_refused():
    """It cannot be forgotten."""
    with pytest.raises(UserError, match="has the string 'q', which is not in train"):
        forgetting(forget=[("q",)])


def test_check_is_of_all_copies():
    """A name means a string with all its copies; the copies of a string cannot be split."""
    names = {("a",): "one", ("b",): "two"}
    check_forget_set([("a",)], names, "toy")
    assert Counter(names.values()) == {"one": 1, "two": 1}


def test_forget_sets_are_read_from_text(tmp_path):
    """One string per line; blank lines and repetitions are left out, with a notice."""
    path = tmp_path / "forget.txt"
    path.write_text("a x y\n\nb x  x\na x y\n")
    with pytest.warns(Notice, match="1 of its 3 lines are copies of others") as caught:
        assert read_forget_set(path, CORPUS) == [("a", "x", "y"), ("b", "x", "x")]
    assert len(caught) == 1
    path.write_text("a x y\nb x x\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_forget_set(path, CORPUS)
    with pytest.raises(UserError, match="cannot be read"):
        read_forget_set(tmp_path / "none.txt", CORPUS)


def test_tables_are_of_their_kind(tmp_path):
    """Both are tables of strings, with the exact probabilities of the language."""
    for variant, frame in forgetting().items():
        tables.write(tmp_path / "strings.parquet", frame, KINDS["strings"])
        back = tables.read(tmp_path / "strings.parquet", KINDS["strings"])
        assert (back["variant"] == variant).all()
        assert np.isfinite(back["log_prob"]).all()
