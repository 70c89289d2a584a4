"""The empty string of a language is in no dataset, and the other probabilities are exact."""

import math
import warnings

import numpy as np
import pytest

from helpers.grammars import grammar_of
from palimpsest.corpora import GrammarCorpus
from palimpsest.corpora.files import read_grammar
from palimpsest.datasets import strings as strings_module
from palimpsest.datasets.grammar import derivation_table, grammar_table, typical_string
from palimpsest.datasets.strings import distinct_sample, summarise, target_strings
from palimpsest.languages import GrammarWarning

DYCK = "S -> '(' S ')' S [0.4] | [0.6]"


def test_a_corpus_leaves_the_empty_string_out():
    with pytest.warns(GrammarWarning) as caught:
        corpus = GrammarCorpus(grammar_of(DYCK))
    (warning,) = caught
    assert str(warning.message) == (
        "<string>: 60 % of the strings are empty; datasets leave them out, and the probability of "
        "each other string is divided by the share of the others"
    )
    strings, of_derivation = corpus.draw(500, seed=0)
    assert all(strings)
    np.testing.assert_allclose(corpus.log_probability(strings), of_derivation, atol=1e-12)
    pair = ("(", ")")
    exact = math.log(0.4 * 0.6**2 / 0.4)
    assert corpus.log_probability([(), pair]) == pytest.approx([-math.inf, exact])
    # Each string begins with a bracket, and after it the second one has the probability 0.6.
    assert corpus.optimal_loss([pair], False) == pytest.approx(-math.log(0.6) / 2)
    assert corpus.optimal_loss([pair], True) == pytest.approx(-exact / 3)
    assert corpus.expected_length() == pytest.approx(4 / 0.4)


def test_a_corpus_without_an_empty_string_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grammar = grammar_of("S -> A 'b' [1]\nA -> [0.5] | 'a' [0.5]")
        assert GrammarCorpus(grammar).grammar is grammar


@pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")
def test_tables_of_a_language_with_empty_rules(tmp_path):
    path = tmp_path / "dyck.pcfg"
    path.write_text(DYCK)
    grammar = read_grammar(path)
    sample = distinct_sample(grammar, "dyck", 2000, seed=0)
    assert (sample["length"] > 0).all()
    assert np.isfinite(sample["log_prob"]).all()
    rules = grammar_table(grammar, "dyck")
    assert rules["rhs"].tolist() == ["'(' S ')' S", "'(' S ')' S", ""]
    string = typical_string(sample)
    nodes = derivation_table(grammar, "dyck", string)
    empty = nodes["begin"] == nodes["end"]
    assert empty.sum() == len(string) // 2 + 1
    assert nodes.loc[~nodes["rule"].isna(), "probability"].notna().all()
    assert nodes["surprise"].sum() == pytest.approx(-grammar.log_prefix_probability([string])[0])
    assert len(target_strings(sample, 3)) == 3
    summary = summarise(grammar, "dyck", sample)
    assert summary["entropy"] == pytest.approx(summary["derivation_entropy"], rel=0.2)
    assert not summary["ambiguous"]


def test_groups_of_a_start_symbol_that_comes_again():
    """The first choice is that of the whole string; further down, the others are free."""
    corpus = GrammarCorpus(grammar_of("S -> S S [0.3] | 'a' [0.5] | 'b' [0.2]"))
    strings = [("a",), ("b",), ("a", "b"), ("b", "b", "a")]
    groups = corpus.groups(strings, by="derivation")
    assert [groups[string] for string in strings] == ["a", "b", "S S", "S S"]


def test_long_strings_are_announced(capsys, monkeypatch):
    """And their probabilities are the same; without long strings, nothing is said."""
    grammar = grammar_of("S -> S S [0.45] | 'a' [0.55]")
    quiet = distinct_sample(grammar, "L", 500, seed=0)
    assert not capsys.readouterr().out
    monkeypatch.setattr(strings_module, "LONG", 20)
    monkeypatch.setattr(strings_module, "SECONDS_BETWEEN_LINES", -1)
    said = distinct_sample(grammar, "L", 500, seed=0)
    n_long = int((said["length"] > 20).sum())
    lines = capsys.readouterr().out.splitlines()
    assert n_long > 2
    assert len(lines) == 1 + n_long
    assert lines[0].startswith(
        f"language L: {n_long} of {len(said)} sampled strings have more than"
    )
    assert lines[-1] == f"language L: {n_long} of {n_long} long strings done"
    np.testing.assert_array_equal(said["log_prob"], quiet["log_prob"])
