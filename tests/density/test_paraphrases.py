"""Paraphrases in a small language, the productions of languages, and training without one."""

import numpy as np
import pytest

from helpers.grammars import grammar_of
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.density.interventions import without_production
from palimpsest.density.kinds import TESTED
from palimpsest.density.paraphrases import Paraphraser, in_ascending_order
from palimpsest.density.vectors import ngram_vectors
from palimpsest.errors import UserError

# The symbols below A, B and C differ, so that every string has one derivation.
ROOTS = {"A B C": 0.4, "B A": 0.3, "C A B": 0.2, "C B": 0.1}
PARTS = """
A -> X 'a' [0.6]
A -> 'a' X [0.4]
B -> Y 'b' [0.5]
B -> 'b' Y [0.5]
C -> Z 'c' [0.7]
C -> 'c' Z [0.3]
X -> 'd' X [0.4]
X -> 'e' X [0.3]
X -> 'd' [0.3]
Y -> 'f' Y [0.3]
Y -> 'g' Y [0.4]
Y -> 'f' [0.3]
Z -> 'h' Z [0.4]
Z -> 'i' Z [0.3]
Z -> 'h' [0.3]
"""


def corpus_of(roots: dict[str, float], below: str = PARTS) -> GrammarCorpus:
    """The language whose start symbol has these rules."""
    rules = [f"S -> {rhs} [{chance}]" for rhs, chance in roots.items()]
    return GrammarCorpus(grammar_of("\n".join(rules) + below))


CORPUS = corpus_of(ROOTS)


def strings_of(corpus: GrammarCorpus, n: int) -> list[tuple[str, ...]]:
    """Distinct strings of a language."""
    return list(dict.fromkeys(corpus.draw(3 * n, 0)[0]))[:n]


def top(string, level: int) -> list:
    """The nodes above a depth, in order: they say what of a derivation must stay."""
    nodes = CORPUS.grammar.derivation(string)
    return [(node.depth, node.symbol, node.rule) for node in nodes if node.depth < level]


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_paraphrase_keeps_the_top_of_the_derivation(level):
    """And the nodes at this level are drawn again."""
    paraphraser = Paraphraser(CORPUS.grammar, level)
    chance = np.random.default_rng(level)
    changed = 0
    for string in strings_of(CORPUS, 20):
        for made in paraphraser.paraphrases(string, 4, chance) or []:
            assert top(made, level) == top(string, level)
            changed += top(made, level + 1) != top(string, level + 1)
    assert changed


def test_paraphrases_differ_from_the_string_and_from_what_is_forbidden():
    string, but = strings_of(CORPUS, 1)[0], set()
    paraphraser = Paraphraser(CORPUS.grammar, 1, 0.3)
    for seed in range(5):
        made = paraphraser.paraphrases(string, 8, np.random.default_rng(seed), but)
        assert len(set(made)) == 8
        assert not {string, *but} & set(made)
        but.update(made)


def test_the_fewer_rules_are_drawn_again_the_nearer_a_paraphrase():
    """By common n-grams, and at every step of the probability."""
    similarity = []
    for redrawn in (0.1, 0.3, 1.0):
        paraphraser, chance = Paraphraser(CORPUS.grammar, 1, redrawn), np.random.default_rng(0)
        pairs = [
            ngram_vectors([string, *made])
            for string in strings_of(CORPUS, 40)
            if (made := paraphraser.paraphrases(string, 4, chance))
        ]
        similarity.append(np.mean([vectors[1:] @ vectors[0] for vectors in pairs]))
    assert similarity[0] > similarity[1] > similarity[2]


def test_strings_are_ordered_by_their_common_ngrams():
    found = in_ascending_order(tuple("abcd"), [tuple("abcx"), tuple("xyz"), tuple("abx")])
    assert ["".join(each) for each in found] == ["xyz", "abx", "abcx"]


@pytest.mark.parametrize(
    ("roots", "below", "names"),
    [
        (ROOTS, PARTS, list(ROOTS)),
        ({"A": 1}, "\nA -> 'a' 'b' [0.5]\nA -> 'c' [0.5]\n", ["a b", "c"]),
        ({"A 'b'": 1}, "\nA -> 'a' [0.5]\nA -> 'c' [0.5]\n", ["S"]),
    ],
)
def test_productions_name_the_groups_of_strings(roots, below, names):
    """In the order of the rules; a single rule of one symbol is followed, any other is the end."""
    corpus = corpus_of(roots, below)
    assert corpus.productions() == names
    assert set(corpus.groups(strings_of(corpus, 60), "derivation").values()) == set(names)


def dataset(variant: str, corpus: GrammarCorpus, seed: int, function: str, **options):
    """A dataset of 40 training strings."""
    given = {"tests": 12, "leaked": 2, "level": 0, "redrawn": 1.0, **options}
    made_by = f"palimpsest.density.leakage_data:{function}"
    sampler = Sampler("toy", corpus, seed)
    return build(sampler, variant, 40, 8, False, options=given, made_by=made_by)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("number", [1, 2])
def test_what_is_measured_only_is_not_trained_on_without_a_production(seed, number):
    """Strings that take the place of a frequent production are drawn far into the stream."""
    below = "\nA -> 'a' A [0.6]\nA -> 'b' [0.4]\nB -> 'a' B [0.75]\nB -> 'c' [0.25]\n"
    corpus = corpus_of({"A A": 0.8, "B B": 0.2}, below)
    table = dataset(without_production(number), corpus, seed, "without_production")
    assert table["role"].isin(TESTED).sum() == 12
    assert (table.loc[table["split"] == "held_out", "count"] == 0).all()
    assert (table.loc[table["test_count"] > 0, "count"] == 0).all()
    assert table["count"].sum() == 40
    assert set(table.loc[table["count"] > 0, "group"]) == {corpus.productions()[2 - number]}


def test_a_language_of_few_strings_is_refused():
    """Test strings and training strings are different ones."""
    few = corpus_of({"'a'": 0.5, "'b'": 0.5}, "")
    with pytest.raises(UserError, match="the language is too small") as error:
        dataset("leaked-1-3", few, 0, "leaked")
    assert "\n" not in str(error.value)
