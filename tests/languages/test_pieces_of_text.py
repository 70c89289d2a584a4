"""Grammars whose terminals are pieces of text: a text may be cut into terminals in many ways."""

import itertools
import math
import re
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.projects import ROOT
from palimpsest.languages import Grammar, GrammarWarning

PIECES = ["a", "b", "ab", "ba", "aab", "Ann ", "née", "'", "''", '"']
PEOPLE = """
S -> NAME ' was born in ' TOWN '.' [0.5] | 'Born in ' TOWN ': ' NAME '.' [0.5]
NAME -> 'Ann' LAST [0.6] | 'Ann' 'a' LAST [0.4]
LAST -> ' Ek' [0.5] | 'a Ek' [0.5]
TOWN -> 'Lund' [0.7] | 'Oslo' [0.3]
"""


def texts(strings) -> list[tuple[str, ...]]:
    return [tuple("".join(string)) for string in strings]


def test_all_ways_to_cut_a_text_are_summed():
    """`Anna Ek` is Ann and `a Ek`, or Ann, a and ` Ek`."""
    grammar = Grammar.from_string(PEOPLE).of_characters()
    probability = 0.5 * (0.6 * 0.5 + 0.4 * 0.5) * 0.7
    (found,) = grammar.log_probability([tuple("Anna Ek was born in Lund.")])
    assert found == pytest.approx(math.log(probability))


def test_the_example_of_the_page_is_right():
    page = (ROOT / "docs/languages.md").read_text()
    (code,) = (c for c in re.findall(r"```python\n(.*?)```", page, re.S) if "of_characters" in c)
    lines = [line for line in code.splitlines() if line.startswith("texts.")]
    names: dict = {}
    exec(code, names)
    for line in lines:
        call, _, expected = line.partition("# log of ")
        assert math.exp(eval(call, names)[0]) == pytest.approx(eval(expected))


def test_a_prefix_may_end_inside_of_a_terminal():
    grammar = Grammar.from_string(PEOPLE).of_characters()
    found = grammar.log_prefix_probability([tuple("Bor"), tuple("Born in Os"), tuple("An")])
    np.testing.assert_allclose(np.exp(found), [0.5, 0.15, 0.5])


def test_a_sample_of_texts_is_that_of_its_pieces():
    grammar = Grammar.from_string(PEOPLE)
    assert texts(grammar.sample(200, 3)) == texts(grammar.of_characters().sample(200, 3))


def test_a_grammar_of_text_and_what_is_made_of_it():
    grammar = Grammar.from_string(f"%text # in pieces\n%field TOWN NAME\n{PEOPLE}")
    assert (grammar.is_text, grammar.fields) == (True, ("TOWN", "NAME"))
    assert not Grammar.from_string(PEOPLE).is_text
    for made in (grammar.of_characters(), Grammar.from_string(str(grammar))):
        assert (made.is_text, made.fields) == (True, ("TOWN", "NAME"))
    of_characters = grammar.of_characters()
    assert of_characters.of_characters() == of_characters
    nullable = Grammar.from_string("%text\n%field A\nS -> A A [1]\nA -> 'a' [0.5] | [0.5]")
    not_empty = nullable.without_empty_string()
    assert not_empty.start == "S+"
    assert (not_empty.is_text, not_empty.fields) == (True, ("A",))


def test_the_number_of_pieces_gives_no_warning_that_texts_are_long():
    """They are no tokens of a model; of symbols, the same rules give a warning."""
    many = "S -> 'a' S [0.9995] | 'a' [0.0005]"
    with warnings.catch_warnings():
        warnings.simplefilter("error", GrammarWarning)
        Grammar.from_string(f"%text\n{many}")
        with pytest.raises(GrammarWarning, match="have more than 1,024"):
            Grammar.from_string(many)


@pytest.mark.parametrize("language", ["L1", "L4", "L6"])
def test_terminals_of_one_character_change_nothing(language):
    grammar = Grammar.from_file(ROOT / f"config/languages/{language}.pcfg")
    strings = grammar.sample(20, seed=1)
    found = grammar.of_characters()
    assert found.rules == grammar.rules
    np.testing.assert_array_equal(found.log_probability(strings), grammar.log_probability(strings))


@given(
    first=st.lists(
        st.lists(st.sampled_from(PIECES), min_size=1, max_size=3), min_size=1, max_size=4
    ),
    then=st.lists(st.lists(st.sampled_from(PIECES), max_size=3), min_size=1, max_size=4),
)
def test_the_probability_of_a_text_is_that_of_all_its_strings(first, then):
    """Against a list of all derivations of a language of two choices, one after the other."""

    def rule(lhs: str, alternatives: list[list[str]]) -> str:
        sides = [" ".join(map(_quoted, side)) for side in alternatives]
        return f"{lhs} -> " + " | ".join(f"{side} [{1 / len(sides)!r}]" for side in sides)

    text = "\n".join(["S -> A B [1.0]", rule("A", first), rule("B", then)])
    expected: Counter = Counter()
    for one, other in itertools.product(first, then):
        expected[tuple("".join([*one, *other]))] += 1 / len(first) / len(then)
    grammar = Grammar.from_string(text).of_characters()
    found = np.exp(grammar.log_probability(list(expected)))
    np.testing.assert_allclose(found, list(expected.values()))


def _quoted(piece: str) -> str:
    return f'"{piece}"' if "'" in piece else f"'{piece}'"
