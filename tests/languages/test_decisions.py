"""The rules that decide symbols: against an enumeration of all derivations, and by hand."""

import math
import warnings
from collections import defaultdict
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.commands import ROOT
from helpers.grammars import finite_grammars, grammar_of
from palimpsest.languages import Grammar, GrammarWarning
from palimpsest.languages import decisions as module
from palimpsest.languages.decisions import decisions, levels
from palimpsest.languages.notation import Symbol

END = "$"


@cache
def language(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        return Grammar.from_file(ROOT / f"config/languages/{name}.pcfg")


def derivations(grammar):
    """All derivations: rules from the top down and left to right, string and probability."""
    rules = defaultdict(list)
    for rule in grammar.rules:
        rules[rule.lhs].append(rule)
    waiting, found = [((), (), (Symbol(grammar.start, terminal=False),), 1.0)], []
    while waiting:
        chosen, done, rest, p = waiting.pop()
        if not rest:
            found.append((chosen, done, p))
        elif rest[0].terminal:
            waiting.append((chosen, (*done, rest[0].name), rest[1:], p))
        else:
            waiting += [
                ((*chosen, rule), done, rule.rhs + rest[1:], p * rule.probability)
                for rule in rules[rest[0].name]
            ]
    return found


def expected_share(grammar, string, end, columns):
    """Shares float[symbols, rules + 1], from the definition, by enumeration."""
    known = [(chosen, (*s, END) if end else s, p) for chosen, s, p in derivations(grammar)]
    whole = (*string, END) if end else string
    share = np.zeros((len(whole), len(columns) + 1))
    own = [(chosen, p) for chosen, s, p in known if s == whole]
    total = sum(p for _, p in own)

    @cache
    def weight(choices, n):
        """Total probability of the derivations with these first choices and n symbols."""
        return sum(
            p for chosen, s, p in known if chosen[: len(choices)] == choices and s[:n] == whole[:n]
        )

    for chosen, p in own:
        for place in range(len(whole)):
            log_probs = np.log(
                [
                    weight(chosen[:k], place + 1) / weight(chosen[:k], place)
                    for k in range(len(chosen) + 1)
                ]
            )
            gains = np.clip(np.diff(log_probs), 0, None)
            assert np.diff(log_probs).sum() == pytest.approx(-log_probs[0], abs=1e-9)
            if -log_probs[0] < 1e-9:
                share[place, -1] += p / total
                continue
            for rule, gain in zip(chosen, gains, strict=True):
                if gain > 1e-12:
                    share[place, columns.index(rule)] += p / total * gain / gains.sum()
    return share, len(own)


@settings(deadline=None, max_examples=40)
@given(
    st.one_of(*(finite_grammars(n_levels=3, longest=2, shortest=n) for n in (0, 1))), st.booleans()
)
def test_shares_are_those_of_the_definition(grammar, end):
    """Exact for a string with one derivation; within chance of the draws for the others."""
    strings = sorted({string for _, string, _ in derivations(grammar)})[:6]
    with patch.object(module, "DRAWS", 400):
        found = decisions(grammar, strings, end)
    firsts = np.cumsum(found.lengths) - found.lengths
    for string, first, length in zip(strings, firsts, found.lengths, strict=True):
        expected, n_derivations = expected_share(grammar, string, end, list(found.rules))
        chance = 0 if n_derivations == 1 else 5 * math.sqrt(0.25 / 400)
        actual = found.share[first : first + length]
        np.testing.assert_allclose(actual, expected, atol=1e-7 + chance)


def test_draws_are_of_the_posterior(monkeypatch):
    """Of an ambiguous string whose derivations have the probabilities 3/4 and 1/4."""
    monkeypatch.setattr(module, "DRAWS", 4000)
    grammar = grammar_of(
        "S -> A [0.375]\nS -> B [0.125]\nS -> 'c' [0.5]\nA -> 'a' [1]\nB -> 'a' [1]"
    )
    found = decisions(grammar, [("a",)], predict_end=False)
    share = dict(zip([str(rule.rhs[0].name) for rule in found.rules], found.share[0], strict=False))
    assert share["A"] == pytest.approx(0.75, abs=0.03)
    assert share["A"] + share["B"] == pytest.approx(1)


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("name", ["L2", "L4", "L5"])
def test_losses_sum_to_the_bayes_optimal_loss(name, end):
    grammar = language(name)
    strings = grammar.sample(20, 3)
    found = decisions(grammar, strings, end)
    score = grammar.log_probability if end else grammar.log_prefix_probability
    firsts = np.cumsum(found.lengths) - found.lengths
    np.testing.assert_allclose(np.add.reduceat(found.loss, firsts), -score(strings), rtol=1e-12)
    np.testing.assert_allclose(found.share.sum(axis=1), 1)
    assert (found.loss[found.share[:, -1] == 1] < 1e-9).all()
    assert (found.share >= 0).all()


def test_a_loss_belongs_to_the_choice_that_a_symbol_reveals():
    """In L1 the second symbol of A8 reveals its order, and the third one reveals nothing."""
    grammar = language("L1")
    (string,) = grammar.sample(1, 0)
    found = decisions(grammar, [string], predict_end=False)
    lhs = [rule.lhs for rule in found.rules]
    of_a8 = found.share[:, [place for place, name in enumerate(lhs) if name == "A8"]].sum(axis=1)
    for place, symbol in enumerate(string):
        if symbol == "6":
            assert of_a8[place : place + 3] == pytest.approx([0, 1, 0])
            assert found.loss[place + 1] == pytest.approx(math.log(2))
            assert found.share[place + 2, -1] == 1


def test_a_recursive_grammar():
    """Each further symbol decides to go on, and the end decides to stop."""
    grammar = grammar_of("S -> S 'a' [0.4]\nS -> 'a' [0.6]")
    found = decisions(grammar, [("a",) * 4], predict_end=True)
    np.testing.assert_allclose(found.loss, -np.log([1, 0.4, 0.4, 0.4, 0.6]), atol=1e-12)
    on, stop = (next(r for r in found.rules if len(r.rhs) == n) for n in (2, 1))
    columns = [found.rules.index(on), found.rules.index(stop), 2]
    expected = [[0, 0, 1], [1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]]
    np.testing.assert_allclose(found.share[:, columns], expected, atol=1e-9)


def test_chains_and_loops_of_unary_rules():
    """A loop is gone through as often as it is drawn; no symbol is lost."""
    grammar = grammar_of("S -> A [0.5]\nS -> 'b' [0.5]\nA -> S [0.3]\nA -> 'a' 'b' [0.7]")
    found = decisions(grammar, [("a", "b"), ("b",)], predict_end=True)
    np.testing.assert_allclose(found.share.sum(axis=1), 1)
    whole = -grammar.log_probability([("a", "b"), ("b",)])
    assert found.loss.sum() == pytest.approx(whole.sum())


def test_a_string_of_a_thousand_nats():
    """Its probability is below what a float64 can hold."""
    grammar = grammar_of("S -> 'a' S [0.00001]\nS -> 'b' S [0.98999]\nS -> 'c' [0.01]")
    string = (*("aab" * 45), "c")
    found = decisions(grammar, [string], predict_end=False)
    assert found.loss.sum() == pytest.approx(-grammar.log_prefix_probability([string])[0])
    assert (found.share[:, :3].max(axis=1) > 1 - 1e-9).all()
    used = [found.rules[column].rhs[0].name for column in found.share.argmax(axis=1)]
    assert tuple(used) == string


@pytest.mark.parametrize("end", [False, True])
def test_choices_of_empty_rules(end):
    """In the Dyck language each symbol decides whether a symbol is empty, from where it stands."""
    grammar = grammar_of("S -> '(' S ')' S [0.4]\nS -> [0.6]")
    strings = [tuple("()()"), tuple("(())"), tuple("()")]
    found = decisions(grammar, strings, end)
    opens = [rule.rhs != () for rule in found.rules].index(True)
    expected = np.array([0.4 if symbol == "(" else 0.6 for s in strings for symbol in s])
    is_open = [symbol == "(" for s in strings for symbol in s]
    symbols = np.ones(len(found.loss), bool)
    if end:
        symbols[np.cumsum(found.lengths) - 1] = False
    np.testing.assert_allclose(found.loss[symbols], -np.log(expected))
    np.testing.assert_allclose(found.loss[~symbols], -np.log(0.6))
    np.testing.assert_allclose(found.share[symbols][:, opens], is_open, atol=1e-9)
    np.testing.assert_allclose(found.share[:, :2].sum(axis=1), 1)


def test_the_same_string_gives_the_same_shares():
    """Whatever the other strings are."""
    grammar = language("L4")
    strings = grammar.sample(5, 1)
    together = decisions(grammar, strings, predict_end=False)
    alone = decisions(grammar, strings[-1:], predict_end=False)
    np.testing.assert_array_equal(together.share[-alone.lengths[0] :], alone.share)


def test_levels_are_steps_from_the_start():
    assert levels(language("L1")) == {
        "S": 0, "A16": 1, "A15": 2, "A14": 2, "A13": 2, "A12": 3, "A11": 3, "A10": 3,
        "A7": 4, "A8": 4, "A9": 4,
    }  # fmt: skip
    assert "C1_5" not in levels(language("L4"))
    assert "C1_5" not in {rule.lhs for rule in decisions(language("L4"), [], True).rules}


def test_a_string_of_another_language_is_refused():
    with pytest.raises(ValueError, match="1 2: is not a string of"):
        decisions(language("L2"), [("1", "2")], predict_end=False)
