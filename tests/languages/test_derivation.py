"""What must hold of the most probable derivation of a string, and of the uses of rules."""

import math
from itertools import product
from pathlib import Path

import nltk
import numpy as np
import pytest

from palimpsest.languages import Grammar

ROOT = Path(__file__).parents[2]
ATTACHMENT = """
S -> NP VP [1]
NP -> 'the' N [0.5] | NP PP [0.3] | 'all' [0.2]
N -> 'language' [0.4] | 'model' [0.6]
VP -> V NP [0.7] | VP PP [0.3]
V -> 'learns' [1]
PP -> 'with' NP [1]
"""
BINARY = "S -> S S [0.4] | 'a' [0.35] | 'b' [0.25]"
GRAMMARS = {"attachment": ATTACHMENT, "binary": BINARY}


def log_probability(nodes):
    return sum(math.log(node.rule.probability) for node in nodes if node.rule)


@pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")
@pytest.mark.parametrize("name", ["L1", "L3", "L4-skewed", "L7"])
def test_it_is_a_derivation_at_least_as_probable_as_the_sampled_one(name):
    """Equal to the sampled derivation if a string has only one, as in L1 and L7."""
    grammar = Grammar.from_file(ROOT / f"config/languages/{name}.pcfg")
    sampled = grammar.sample_encoded(5, seed=1)
    total = grammar.log_probability(sampled)
    for place, string in enumerate(grammar.decode(sampled)):
        nodes = grammar.derivation(string)
        assert tuple(node.symbol.name for node in nodes if node.rule is None) == string
        assert nodes[0][:5] == ((grammar.start, False), 0, len(string), None, 0)
        for number, node in enumerate(nodes):
            below = [child for child in nodes if child.parent == number]
            assert tuple(child.symbol for child in below) == (node.rule.rhs if node.rule else ())
            assert all(child.depth == node.depth + 1 for child in below)
            if below:
                ends = [node.begin, *(child.end for child in below)]
                assert [child.begin for child in below] == ends[:-1]
                assert ends[-1] == node.end
        found = log_probability(nodes)
        assert sampled.derivation_log_prob[place] - 1e-9 <= found <= total[place] + 1e-9
        if name in ("L1", "L7"):
            assert found == pytest.approx(total[place], abs=1e-9)


@pytest.mark.parametrize("name", GRAMMARS)
def test_against_nltk(name):
    grammar = Grammar.from_string(GRAMMARS[name])
    parser = nltk.parse.ViterbiParser(nltk.PCFG.fromstring(GRAMMARS[name]))
    strings = [string for n in range(1, 6) for string in product("ab", repeat=n)]
    if name == "attachment":
        strings = sorted({s for s in grammar.sample(200, seed=0) if len(s) < 12})[:20]
    for string in strings:
        (tree,) = parser.parse(list(string))
        assert log_probability(grammar.derivation(string)) == pytest.approx(math.log(tree.prob()))


def test_a_loop_of_unary_rules_is_not_followed():
    """It would only make the derivation less probable."""
    grammar = Grammar.from_string("S -> S [0.5] | A [0.5]\nA -> S [0.4] | 'a' [0.6]")
    nodes = grammar.derivation(("a",))
    assert [node.symbol.name for node in nodes] == ["S", "A", "a"]
    assert log_probability(nodes) == pytest.approx(math.log(0.5 * 0.6))


def test_a_deep_derivation():
    grammar = Grammar.from_string("S -> 'a' S [0.999] | 'b' [0.001]")
    nodes = grammar.derivation(("a",) * 3000 + ("b",))
    assert max(node.depth for node in nodes) == 3001


@pytest.mark.parametrize("string", [(), ("c",), ("a", "c")])
def test_a_string_outside_of_the_language_is_refused(string):
    with pytest.raises(ValueError, match="not in the language"):
        Grammar.from_string(BINARY).derivation(string)


@pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")
def test_expected_uses():
    """In L1 by hand; in L3 their sum of -log probabilities is the entropy of derivations."""
    grammar = Grammar.from_file(ROOT / "config/languages/L1.pcfg")
    by_symbol = {}
    for rule, uses in zip(grammar.rules, grammar.expected_uses(), strict=True):
        by_symbol[rule.lhs] = by_symbol.get(rule.lhs, 0) + uses
    assert by_symbol == pytest.approx(
        {"S": 1, "A16": 1, "A13": 1, "A14": 1, "A15": 1, "A10": 2, "A11": 3, "A12": 3}
        | {"A7": 8, "A8": 8, "A9": 8}
    )
    grammar = Grammar.from_file(ROOT / "config/languages/L3.pcfg")
    uses, weight = grammar.expected_uses(), [rule.probability for rule in grammar.rules]
    assert -uses @ np.log(weight) == pytest.approx(grammar.derivation_entropy())
    assert [rule.lhs for rule, n in zip(grammar.rules, uses, strict=True) if n == 0] == ["C1_5"]
