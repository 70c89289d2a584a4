"""Laws of the section density that hold over many draws: of data, paraphrases and verdicts."""

import json
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest, chisquare, ks_2samp, norm
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from helpers.experiments import ROOT
from helpers.grammars import grammar_of
from palimpsest.claims import AGREES, DISAGREES, judge
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.density import kinds
from palimpsest.density.claims import CLAIMS
from palimpsest.density.interventions import LEAK_CONDITIONS, leaked, without_production
from palimpsest.density.kinds import CHOICE, GAUSSIAN, NGRAMS
from palimpsest.density.leakage_tables import auc
from palimpsest.density.paraphrases import Paraphraser
from palimpsest.density.vectors import ngram_vectors
from palimpsest.estimates import over_seeds

# Productions of unequal probability; the parts of a string differ in length, and short strings are
# frequent.
GRAMMAR = """
S -> A B A [0.5]
S -> B A B [0.3]
S -> A A [0.2]
A -> X Y [0.6]
A -> Y X [0.4]
B -> Y Y [0.5]
B -> X X [0.5]
X -> 'a' X [0.2]
X -> 'b' X [0.1]
X -> 'c' [0.7]
Y -> 'd' Y [0.2]
Y -> 'e' Y [0.1]
Y -> 'f' [0.7]
"""
CORPUS = GrammarCorpus(grammar_of(GRAMMAR))
SIZE = 60
OPTIONS = {"tests": 12, "leaked": 4, "level": 2, "redrawn": 0.5}
SEEDS = range(24)
OTHER_PROCESS = """
import json, sys
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.languages import Grammar

_, grammar, size, options = sys.argv
sampler = Sampler("toy", GrammarCorpus(Grammar.from_string(grammar)), 5)
table = build(
    sampler, "leaked-1-3", int(size), 12, False, options=json.loads(options),
    made_by="palimpsest.density.leakage_data:leaked",
)
print(json.dumps(table[["text", "role"]].fillna("").to_numpy().tolist()))
"""


def dataset(variant: str, seed: int = 0) -> pd.DataFrame:
    """A dataset of 60 training strings."""
    function = "leaked" if variant.startswith("leaked") else "without_production"
    made_by = f"palimpsest.density.leakage_data:{function}"
    sampler = Sampler("toy", CORPUS, seed)
    return build(sampler, variant, SIZE, 12, False, options=OPTIONS, made_by=made_by)


@pytest.fixture(scope="module")
def fullest() -> dict[int, pd.DataFrame]:
    """The dataset with copies and all paraphrases, by seed."""
    return {seed: dataset(leaked(LEAK_CONDITIONS[-1]), seed) for seed in SEEDS}


def is_role(table: pd.DataFrame, start: str) -> pd.Series:
    """The strings whose role begins so."""
    return table["role"].str.startswith(start, na=False)


# Datasets


@pytest.mark.parametrize("leak", LEAK_CONDITIONS, ids=leaked)
def test_what_is_not_planted_is_the_beginning_of_the_training_stream(leak):
    """With its copies: the same strings in all conditions, up to where planted ones begin."""
    table = dataset(leaked(leak), 3)
    ordinary = table[table["role"].isna() & (table["count"] > 0)]
    kept = Counter(dict(zip(ordinary["text"], ordinary["count"], strict=True)))
    stream = [" ".join(string) for string in CORPUS.draw(SIZE, 3)[0]]
    assert kept == Counter(stream[: SIZE - OPTIONS["leaked"] * sum(leak)])
    assert len(set(stream)) < SIZE


def test_what_is_made_for_test_strings_is_nowhere_else(fullest):
    """Paraphrases and wrong answers are no test strings, and are not drawn for training either."""
    for seed, table in fullest.items():
        made = table[is_role(table, "paraphrase-") | is_role(table, f"{CHOICE}-")]
        assert len(made) == 4 * 3 + 12
        assert (made["test_count"] == 0).all()
        stream = {" ".join(string) for string in CORPUS.draw(SIZE, seed)[0]}
        assert not stream & set(made["text"])
        assert not stream & set(table.loc[table["test_count"] > 0, "text"])
        assert table["text"].is_unique


@pytest.mark.parametrize("number", [1, 3])
def test_without_a_production_the_others_are_drawn_as_before(number):
    """Their shares, their copies and their strings are those of the grammar."""
    variant, names = without_production(number), CORPUS.productions()
    parts = pd.concat((dataset(variant, seed) for seed in SEEDS), ignore_index=True)
    trained = parts.loc[parts.index.repeat(parts["count"])].reset_index(drop=True)
    others = {
        name: rule.probability
        for name, rule in zip(names, CORPUS.grammar.rules[: len(names)], strict=True)
        if name != names[number - 1]
    }
    assert set(trained["group"]) == set(others)
    shares = trained["group"].value_counts()[list(others)]
    expected = np.array(list(others.values()))
    assert chisquare(shares, shares.sum() * expected / expected.sum()).pvalue > 0.001
    frequent = trained.loc[trained["log_prob"].idxmax()]
    share = np.exp(frequent["log_prob"]) / expected.sum()
    n_copies = (trained["string_id"] == frequent["string_id"]).sum()
    assert binomtest(n_copies, len(trained), share).pvalue > 0.001
    drawn = CORPUS.draw(2000, 99)[0]
    log_prob, groups = CORPUS.log_probability(drawn), CORPUS.groups(drawn, "derivation")
    for name in others:
        peers = log_prob[[groups[string] == name for string in drawn]]
        assert ks_2samp(trained.loc[trained["group"] == name, "log_prob"], peers).pvalue > 0.001


def test_another_process_makes_the_same_dataset(fullest):
    """Python orders sets of strings differently in every process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow/scripts")}
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, GRAMMAR, str(SIZE), json.dumps(OPTIONS)],
        env={**environment, "PYTHONHASHSEED": "4"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == fullest[5][["text", "role"]].fillna("").to_numpy().tolist()


# Paraphrases and n-grams


@pytest.mark.parametrize("redrawn", [0.3, 0.8])
def test_each_node_is_drawn_again_with_its_own_chance(redrawn):
    """Two parts with two forms each: how often both change at once, by hand."""
    grammar = grammar_of("S -> A A [1]\nA -> 'a' [0.5]\nA -> 'b' [0.5]\n")
    maker, chance = Paraphraser(grammar, 1, redrawn), np.random.default_rng(0)
    n = 1500
    found = Counter(maker.paraphrases(("a", "a"), 1, chance)[0] for _ in range(n))
    changes = redrawn / 2  # a part that is drawn again is the same in half of the cases
    both = changes**2 / (1 - (1 - changes) ** 2)
    assert set(found) == {("a", "b"), ("b", "a"), ("b", "b")}
    assert binomtest(found["b", "b"], n, both).pvalue > 0.001
    assert binomtest(found["a", "b"], n - found["b", "b"], 0.5).pvalue > 0.001


def test_counts_of_ngrams_are_scikit_learns():
    """Up to the order of the dimensions: all products of vectors are the same."""
    strings = CORPUS.draw(40, 1)[0]
    counter = CountVectorizer(ngram_range=(1, 3), analyzer="word", token_pattern=r"\S+")
    counts = counter.fit_transform([" ".join(string) for string in strings])
    peer = normalize(counts.astype(float)).toarray()
    own = ngram_vectors(strings)
    assert own.shape == peer.shape
    np.testing.assert_allclose(own @ own.T, peer @ peer.T, atol=1e-12)


# Verdicts


N_STUDIES, SEEDS_OF_STUDY = 200, 5
MOST = binom.ppf(0.999, N_STUDIES, 0.025)  # wrong verdicts on one side, if 2.5 % are expected
N_LEAKED, N_NEVER = 9, 30


def verdicts_of(claim, table: pd.DataFrame) -> list[str]:
    """The verdicts of many studies of five seeds, from one table with all their seeds."""
    values = np.array(claim.statistic.estimate(table).values).reshape(N_STUDIES, SEEDS_OF_STUDY)
    return [judge(over_seeds(pd.Series(own)), claim)["verdict"] for own in values]


def separations(shifts: dict[float, float]) -> pd.DataFrame:
    """A table `separation` of many seeds; leaked strings are denser by the bandwidth's shift.

    Densities of the bandwidths are those of the same strings, and so depend on each other.
    """
    chance = np.random.default_rng(11)
    rows = []
    for seed in range(N_STUDIES * SEEDS_OF_STUDY):
        shared = chance.normal(size=2 * N_LEAKED + N_NEVER)
        for leak in LEAK_CONDITIONS:
            for bandwidth, shift in shifts.items():
                found = (shared + chance.normal(size=len(shared))) / np.sqrt(2)
                treated, placebo, never = np.split(found, [N_LEAKED, 2 * N_LEAKED])
                about = {"seed": seed, "bandwidth_or_k": bandwidth, **leak._asdict()}
                areas = auc(treated + shift, never), auc(placebo, never)
                rows.append({**about, "auc": areas[0], "placebo": areas[1]})
    return pd.DataFrame(rows).assign(embedding=NGRAMS, estimator=GAUSSIAN)


@pytest.mark.parametrize(
    ("words", "area"),
    [
        ("Paraphrases alone raise the density of n-grams", 0.5),
        ("A narrow bandwidth of the density of n-grams", 0.5),
        ("A narrow bandwidth of the density of n-grams", 0.8),
        ("One exact copy makes a test string highly separable by the density of n-grams", 0.9),
    ],
)
def test_verdicts_on_separation_are_seldom_wrong_at_the_bound(words, area):
    """The area under the curve is the bound, or the same in both conditions or bandwidths."""
    (claim,) = (each for each in CLAIMS if each.claim.startswith(words))
    assert claim.statistic.reads == kinds.SEPARATION.name
    shift = np.sqrt(2) * norm.ppf(area)
    found = verdicts_of(claim, separations({0.1: shift, 1.0: shift}))
    assert found.count(AGREES) <= MOST
    assert found.count(DISAGREES) <= MOST
