"""Questions in strings: the last symbol, if the symbols before it decide it."""

import pytest

from helpers.experiments import ROOT
from palimpsest.corpora import read_corpus
from palimpsest.density.answers import last_symbols, wrong_answers
from palimpsest.languages import Grammar

DECIDED = """
S -> A 'x' B | B 'y' A
A -> 'a' | 'a' A
B -> 'b' E
E -> 'c' |
"""


def language(name: str) -> Grammar:
    return read_corpus(ROOT / f"config/languages/{name}.pcfg").grammar


def grammar(text: str) -> Grammar:
    """Rules of a line share its probability equally."""
    lines = []
    for line in text.strip().splitlines():
        lhs, _, sides = line.partition(" -> ")
        sides = sides.split("|")
        lines.append(f"{lhs} -> " + " | ".join(f"{s.strip()} [{1 / len(sides)}]" for s in sides))
    return Grammar.from_string("\n".join(lines))


def test_the_last_symbols_are_those_that_end_a_string():
    """Below the last symbol of a rule, and before a part that can be empty."""
    assert last_symbols(grammar(DECIDED)) == ["a", "b", "c"]
    assert last_symbols(language("L3")) == ["1", "2", "3", "4"]
    assert last_symbols(language("L6")) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("name", ["L1", "L3", "L4", "L5", "L6", "L8"])
def test_every_string_of_the_languages_is_a_question(name):
    own = language(name)
    strings = list(dict.fromkeys(own.sample(20, 0)))
    wrong = wrong_answers(own, strings)
    assert list(wrong) == strings
    for string, others in wrong.items():
        assert {s[:-1] for s in others} == {string[:-1]}
        assert {string[-1], *(s[-1] for s in others)} == set(last_symbols(own))
        assert len(others) == len(last_symbols(own)) - 1


def test_one_string_without_a_right_answer_is_enough_to_have_none():
    """After `x b`, the string may end or go on with c; `y a` decides."""
    own = grammar("S -> 'x' A | 'y' 'a'\nA -> 'b' | 'c'")
    assert wrong_answers(own, [("y", "a")]) == {("y", "a"): [("y", "b"), ("y", "c")]}
    assert wrong_answers(own, [("y", "a"), ("x", "b")]) == {}


def test_a_language_with_one_last_symbol_asks_nothing():
    own = grammar("S -> 'a' 'z' | 'b' 'z'")
    assert wrong_answers(own, [("a", "z"), ("b", "z")]) == {}
