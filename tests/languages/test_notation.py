"""The notation of grammar files: what NLTK reads, what differs, and rewritten grammars."""

import random
import warnings
from fractions import Fraction

import nltk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.grammars import finite_grammars, grammar_of
from palimpsest.languages import Grammar, GrammarError

NLTK_REFUSES, WE_REFUSE = "nltk refuses", "we refuse"

SAME = {
    "alternatives": "S -> A 'b' [0.5] | 'c' [.5]\nA -> \"it's\" [1.]",
    "empty right-hand side": "S -> '(' S ')' S [0.4] | [0.6]",
    "comments, %start, tabs and continued lines": (
        "# one\n%start B\n\tB\t->\t'a' [0.5] \\\n  | '#' [0.5]\n#\n\nA -> B [1.0]"
    ),
    "windows": "S -> 'a' [0.5]\r\nS -> 'b' [0.5]\r\n",
    "names": "NP-SBJ -> A^<B> /x 9 [1]\nA^<B> -> 'a' [1]\n/x -> 'b' [1]\n9 -> 'c' [1]",
    "letters": "Sätze -> 'ä' 'b' [1]",
    "duplicates": "S -> 'a' [0.25] | 'b' [0.5] | 'a' [0.25]",
    "a backslash that escapes nothing": r"S -> '\alpha' [1]",
    "no space": "S ->'a'[0.5]|'b'[0.5]",
}
# The rows of the table in docs/languages.md: (text, what differs).
DIFFERENT = {
    "an exponent": ("S -> 'a' [1e-1] | 'b' [0.9]", NLTK_REFUSES),
    "a fraction": ("S -> 'a' [1/2] | 'b' [1/2]", NLTK_REFUSES),
    "a comment after a rule": ("S -> 'a' [1] # one", NLTK_REFUSES),
    "another arrow": ("S → 'a' [1]", NLTK_REFUSES),
    "a generated name": ("S -> S@$@A [1]\nS@$@A -> 'a' [1]", NLTK_REFUSES),
    "a name with a bar": ("S -> A|<B-C> [1]\nA|<B-C> -> 'a' [1]", NLTK_REFUSES),
    "no space before the arrow": ("S->'a' [1]", NLTK_REFUSES),
    "an escaped quote": (r"S -> 'it\'s' [1]", NLTK_REFUSES),
    "two backslashes": (r"S -> '\\' [1]", [("S", (r"'\\'",))]),
    "a backslash": (r"S -> '\' [1]", WE_REFUSE),
    "no probability": ("S -> 'a' | 'b'", NLTK_REFUSES),
    "some without": ("S -> 'a' [1] | 'b'", WE_REFUSE),
    "a terminal without letters": ("S -> '' [0.5] | 'a' [0.5]", WE_REFUSE),
    "0.96": ("S -> 'a' [0.5] | 'b' [0.46]", NLTK_REFUSES),
    "0.995": ("S -> 'a' [0.5] | 'b' [0.495]", [("S", ("'a'",)), ("S", ("'b'",))]),
    "endless": ("S -> S S [0.9] | 'a' [0.1]", WE_REFUSE),
    "no rules": ("S -> A [0.5] | 'b' [0.5]", WE_REFUSE),
    "blanks": ("S -> 'a' [ 0.5 ] | 'b' [0.5]", NLTK_REFUSES),
    "pieces of text": ("%text\n%field S\nS -> 'a b' [1]", NLTK_REFUSES),
    "probability 0": ("S -> 'a' [0.0] | 'b' [1.0]", [("S", ("'b'",))]),
}


def nltk_rules(text):
    """The merged rules as NLTK reads them: {(lhs, rhs): probability}, and the start symbol."""
    grammar, rules = nltk.PCFG.fromstring(text), {}
    for rule in grammar.productions():
        rhs = tuple((str(symbol), isinstance(symbol, str)) for symbol in rule.rhs())
        key = rule.lhs().symbol(), rhs
        rules[key] = rules.get(key, 0) + rule.prob()
    return rules, grammar.start().symbol()


def our_rules(text):
    grammar = grammar_of(text)
    return {(r.lhs, tuple(map(tuple, r.rhs))): r.probability for r in grammar.rules}, grammar.start


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_nltk_reads_the_same(text):
    rules, start = nltk_rules(text)
    assert our_rules(text) == (pytest.approx(rules), start)


@pytest.mark.parametrize(("text", "what"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs(text, what):
    if what == NLTK_REFUSES:
        with pytest.raises(ValueError, match=r"Unable to parse|do not sum to 1"):
            nltk.PCFG.fromstring(text)
        assert our_rules(text)
    elif what == WE_REFUSE:
        assert nltk.PCFG.fromstring(text)
        with pytest.raises(GrammarError):
            grammar_of(text)
    else:
        assert nltk_rules(text) != our_rules(text)
        printed = [(rule.lhs, tuple(map(str, rule.rhs))) for rule in grammar_of(text).rules]
        assert printed == what


def test_what_nltk_prints_is_read():
    """Of a PCFG with small numbers, and of a Chomsky normal form with its start symbol."""
    a, b = nltk.Nonterminal("A|<B-C>^<S>"), nltk.Nonterminal("B")
    rules = [
        (a, [b, "it's"], 1 / 3),
        (a, ["a \"b\" 'c' \\"], 2 / 3),
        (b, ["x"], 1e-5),
        (b, [], 0.99999),
    ]
    productions = [nltk.ProbabilisticProduction(lhs, rhs, prob=p) for lhs, rhs, p in rules]
    grammar = Grammar.from_string(str(nltk.PCFG(a, productions)))
    assert grammar.start == "A|<B-C>^<S>"
    assert [rule.rhs[-1].name for rule in grammar.rules if rule.rhs] == [
        "it's",
        "a \"b\" 'c' \\",
        "x",
    ]
    assert [rule.probability for rule in grammar.rules] == pytest.approx(
        [1 / 3, 2 / 3, 1e-5, 0.99999], rel=1e-5
    )
    plain = nltk.CFG.fromstring("S -> A B C | 'a' A | A S A\nA -> 'a'\nB -> 'b'\nC -> 'c'")
    normal = plain.chomsky_normal_form()
    grammar = grammar_of(str(normal))
    assert grammar.start == normal.start().symbol() == "S0_SIGMA"
    assert "A@$@A" in grammar.nonterminals
    assert grammar.n_rules == len(set(normal.productions()))


def test_old_line_ends_and_a_byte_order_mark():
    one = Grammar.from_string("\ufeffS -> 'a' [0.5]\r# half\rS -> A [0.5]\rA -> 'b' [1]")
    assert one.rules == Grammar.from_string("S -> 'a' [.5] | A [.5]\nA -> 'b' [1]").rules


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=6))
def test_any_terminal_is_printed_and_read_again(name):
    grammar = Grammar.from_string("S -> 'a' [1]")
    rule = grammar.rules[0]
    printed = str(rule._replace(rhs=(rule.rhs[0]._replace(name=name),)))
    assert Grammar.from_string(printed).terminals == (name,)


def rewritten(grammar, seed):
    """The same grammar in another hand: fractions, split duplicates, comments, split lines."""
    chance = random.Random(seed)
    lines = []
    for rule in grammar.rules:
        exact = Fraction(rule.probability)
        halves = [exact / 2] * 2 if chance.random() < 0.5 else [exact]
        for part in halves:
            number = f"{part.numerator}/{part.denominator}"
            if chance.random() < 0.3 and Fraction(float(part)) == part:
                number = repr(float(part)) if chance.random() < 0.5 else f"{float(part):.25e}"
                number = (
                    number if Fraction(number) == part else f"{part.numerator}/{part.denominator}"
                )
            arrow = chance.choice([" -> ", "->", "\t→ ", " -> \\\n   "])
            rhs = chance.choice([" ", "  ", "\t"]).join(map(str, rule.rhs))
            comment = chance.choice(["", "  # half", "\n\n# more", "\r"])
            lines.append(f"{rule.lhs}{arrow}{rhs} [{number}]{comment}")
    return f"%start {grammar.start}\n" + "\n".join(lines)


@settings(deadline=None, max_examples=50)
@given(finite_grammars(n_levels=3, longest=2, shortest=0), st.integers(0, 2**32))
def test_the_same_grammar_in_another_hand(grammar, seed):
    """It has the same rules to the last bit, and so have its strings and probabilities."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Once normalised, so that the sums of both are the same.
        first = grammar_of(rewritten(grammar, 0))
        second = grammar_of(rewritten(grammar, seed))
    assert second.rules == first.rules
    strings = first.sample(20, seed=1)
    assert second.sample(20, seed=1) == strings
    assert (second.log_probability(strings) == first.log_probability(strings)).all()


@settings(deadline=None, max_examples=25)
@given(finite_grammars(n_levels=3, longest=3, shortest=0))
def test_names_change_nothing(grammar):
    text = str(grammar)
    grammar = grammar_of(text)  # normalised again, as the other one
    for number, name in enumerate(grammar.nonterminals):
        text = text.replace(name, f"X@$@{number}|<{'ab'[number % 2]}-c>")
    other = grammar_of(text)
    strings = grammar.sample(20, seed=1)
    assert other.sample(20, seed=1) == strings
    assert (other.log_probability(strings) == grammar.log_probability(strings)).all()
    assert other.expected_length() == grammar.expected_length()
