"""Datasets with leaked test strings, datasets without a production, and paraphrases."""

from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare, ks_2samp

from helpers.experiments import ROOT
from palimpsest.corpora import GrammarCorpus, read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.density.interventions import LEAK_CONDITIONS, leaked, without_production
from palimpsest.density.kinds import CHOICE, LEAKED, NEVER, PLACEBO
from palimpsest.density.paraphrases import Paraphraser
from palimpsest.density.vectors import ngram_vectors
from palimpsest.errors import UserError
from palimpsest.languages import Grammar

CORPUS = read_corpus(ROOT / "config/languages/L6.pcfg")
OPTIONS = {"tests": 12, "leaked": 3, "level": 5, "redrawn": 0.25}
SIZE = 40
MADE_BY = "palimpsest.density.leakage_data:"


def dataset(variant, seed=0, corpus=CORPUS, function="leaked", **options) -> pd.DataFrame:
    sampler = Sampler("L6", corpus, seed)
    given = {**OPTIONS, **options}
    return build(sampler, variant, SIZE, 12, False, options=given, made_by=MADE_BY + function)


@pytest.fixture(scope="module")
def datasets() -> dict[tuple, pd.DataFrame]:
    """The datasets of all conditions, by condition."""
    return {tuple(leak): dataset(leaked(leak)) for leak in LEAK_CONDITIONS}


def with_role(table, *roles) -> pd.DataFrame:
    return table[table["role"].isin(roles)].set_index("string_id")


def test_all_conditions_have_the_same_test_strings_in_the_same_roles(datasets):
    """Three leaked strings, as many placebos, and the other six."""
    roles = [
        with_role(table, LEAKED, PLACEBO, NEVER)["role"].to_dict() for table in datasets.values()
    ]
    assert all(each == roles[0] for each in roles)
    assert Counter(roles[0].values()) == {LEAKED: 3, PLACEBO: 3, NEVER: 6}


def test_every_condition_plants_what_it_says_and_nothing_else(datasets):
    """Equally many training strings in all; the others are the first of the ordinary ones."""
    base = [text for text in dataset("leaked-0-0")["text"] if text]
    for (exact, paraphrases), table in datasets.items():
        assert table["count"].sum() == SIZE
        own = with_role(table, LEAKED)
        assert (own["count"] == exact).all()
        assert (with_role(table, PLACEBO, NEVER)["count"] == 0).all()
        planted = table[table["role"].str.startswith("paraphrase", na=False)]
        assert len(planted) == 3 * paraphrases
        assert (planted["count"] == 1).all()
        of_string = Counter(role.rpartition("-")[2] for role in planted["role"])
        assert of_string == Counter(list(own.index) * paraphrases)
        ordinary = table[(table["count"] > 0) & table["role"].isna()]
        assert set(ordinary["text"]) <= set(base)
        assert ordinary["count"].sum() == SIZE - 3 * (exact + paraphrases)


def test_paraphrases_come_from_the_least_to_the_most_similar(datasets):
    """By the cosine of n-grams, as in the paper's Para 1 to Para 3; none is a test string."""
    table = datasets[0, 3].set_index("string_id")
    vectors = dict(zip(table.index, ngram_vectors([t.split() for t in table["text"]]), strict=True))
    for name in with_role(datasets[0, 3], LEAKED).index:
        similarity = [
            vectors[name] @ vectors[table.index[table["role"] == f"paraphrase-{n}-{name}"][0]]
            for n in (1, 2, 3)
        ]
        assert similarity == sorted(similarity)
        assert similarity[-1] < 1


def test_every_test_string_has_each_wrong_answer_once(datasets):
    """Only the last symbol differs, and the result is no string of the language."""
    for table in datasets.values():
        tested = with_role(table, LEAKED, PLACEBO, NEVER)
        wrong = table[table["role"].str.startswith(f"{CHOICE}-", na=False)]
        assert len(wrong) == 3 * len(tested)
        assert (wrong[["count", "test_count"]] == 0).all(axis=None)
        assert set(wrong["split"]) == {"held_out"}
        assert wrong[["log_prob", "optimal_loss"]].isna().all(axis=None)
        for name, own in wrong.groupby(wrong["role"].str.rpartition("-")[2]):
            right = tested.loc[name, "text"]
            assert {text[:-1] for text in own["text"]} == {right[:-1]}
            assert {right[-1], *(text[-1] for text in own["text"])} == set("1234")
            assert set(own["n_tokens"]) == {tested.loc[name, "n_tokens"]}
        strings = [tuple(text.split()) for text in wrong["text"]]
        assert np.isneginf(CORPUS.grammar.log_probability(strings)).all()
        assert table["string_id"].is_unique


def test_roles_are_random_samples():
    """Leaked strings, placebos and others have the same distribution of probabilities."""
    parts = [dataset("leaked-0-0", seed) for seed in range(20)]
    table = pd.concat(parts)
    groups = [table.loc[table["role"] == role, "log_prob"] for role in (LEAKED, PLACEBO, NEVER)]
    assert all(ks_2samp(one, other).pvalue > 0.001 for one, other in combinations(groups, 2))
    assert not parts[0]["text"].equals(parts[1]["text"])
    assert parts[0].equals(dataset("leaked-0-0", 0))


@pytest.mark.parametrize("number", [1, 4])
def test_without_a_production_no_training_string_begins_with_it(datasets, number):
    """The test strings stay, also those of the production."""
    table = dataset(without_production(number), function="without_production")
    name = CORPUS.productions()[number - 1]
    trained = table[table["count"] > 0]
    assert trained["count"].sum() == SIZE
    assert name not in set(trained["group"])
    assert set(trained["group"]) == set(CORPUS.productions()) - {name}
    same = with_role(table, LEAKED, PLACEBO, NEVER)["role"].to_dict()
    assert same == with_role(datasets[0, 0], LEAKED, PLACEBO, NEVER)["role"].to_dict()


UNEVEN = """
S -> 'x' A [0.998] | 'y' A [0.002]
A -> B B B B [1.0]
B -> C C [1.0]
C -> 'a' [0.25] | 'b' [0.25] | 'c' [0.25] | 'd' [0.25]
"""


def test_a_production_that_nearly_all_strings_begin_with_cannot_be_left_out():
    corpus = GrammarCorpus(Grammar.from_string(UNEVEN))
    with pytest.raises(UserError, match=r"density/leakage/leave_out: 1,280 strings .* set it to f"):
        dataset(without_production(1), 0, corpus, "without_production", level=2)


def test_a_language_with_too_few_paraphrases_is_refused():
    """At a level below all choices, nothing is drawn again."""
    with pytest.raises(UserError, match="density/leakage/level: of the strings of L6, only 0 of"):
        dataset("leaked-1-3", level=99)


TREE = """
S -> 'x' A 'y' B [0.5] | 'z' A [0.5]
A -> 'a' [0.7] | 'b' [0.2] | 'c' C [0.1]
B -> 'd' [0.5] | 'e' [0.5]
C -> 'f' [0.5] | 'g' [0.5]
"""


def test_the_top_of_the_derivation_stays():
    """At level 1, the rule of the start symbol is kept, and everything below may change."""
    grammar, chance = Grammar.from_string(TREE), np.random.default_rng(0)
    string = ("x", "a", "y", "d")
    found = Paraphraser(grammar, 1).paraphrases(string, 7, chance)
    assert set(found) == {
        ("x", *a, "y", b) for a in (["a"], ["b"], ["c", "f"], ["c", "g"]) for b in "de"
    } - {string}
    assert Paraphraser(grammar, 1).paraphrases(string, 8, chance) is None
    but = {("x", "b", "y", "d")}
    assert Paraphraser(grammar, 1).paraphrases(string, 7, chance, but) is None
    assert Paraphraser(grammar, 9).paraphrases(string, 1, chance) is None


def test_what_is_drawn_again_has_the_grammars_probabilities():
    """With everything drawn again, a paraphrase is a sample, given that it is another string."""
    grammar, chance = Grammar.from_string(TREE), np.random.default_rng(1)
    maker, string = Paraphraser(grammar, 0), ("z", "a")
    counts = Counter(maker.paraphrases(string, 1, chance)[0] for _ in range(2000))
    expected = np.exp(grammar.log_probability(list(counts)))
    assert chisquare(list(counts.values()), 2000 * expected / expected.sum()).pvalue > 0.001


def test_a_smaller_share_drawn_again_is_nearer():
    strings = CORPUS.grammar.sample(12, seed=3)
    similarity = {}
    for redrawn in (0.15, 1.0):
        chance = np.random.default_rng(0)
        found = [Paraphraser(CORPUS.grammar, 4, redrawn).paraphrases(s, 2, chance) for s in strings]
        pairs = [(s, p) for s, made in zip(strings, found, strict=True) if made for p in made]
        vectors = ngram_vectors([string for pair in pairs for string in pair])
        similarity[redrawn] = (vectors[::2] * vectors[1::2]).sum(axis=1).mean()
    assert similarity[0.15] > similarity[1.0] + 0.02
