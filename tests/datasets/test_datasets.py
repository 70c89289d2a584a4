"""Datasets: what is trained on in each variant, what is only measured, and the exact optimum."""

import hashlib
import itertools
import math
import re
import warnings
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.records import corpus as corpus_of_records
from palimpsest import tables
from palimpsest.corpora import GrammarCorpus, read_corpus
from palimpsest.corpora.corpus import COUNTERPART, stream
from palimpsest.datasets import build as building
from palimpsest.datasets import string_id, target_strings
from palimpsest.datasets.choices import candidates, placebo_of, sample_by_copies
from palimpsest.datasets.grammar import derivation_table, grammar_table, typical_string
from palimpsest.datasets.sampling import DISJOINT, Sampler
from palimpsest.datasets.strings import distinct_sample, summarise
from palimpsest.errors import Notice, UserError
from palimpsest.interventions import maker
from palimpsest.languages import Grammar
from palimpsest.memorisation import stand_ins
from palimpsest.memorisation.target_data import target_counts
from palimpsest.sections import INTERVENTIONS, KINDS

ROOT = Path(__file__).parents[2]
VARIANTS = ["base", "dedup", "dedup-matched", "with-s0", "with-s1", "without-s0", "without-s1"]

# Four strings: a b 0.5, a c 0.3, b b 0.15, c 0.05.
FOUR = """
S -> 'a' A [0.8] | 'b' 'b' [0.15] | 'c' [0.05]
A -> 'b' [0.625] | 'c' [0.375]
"""
# The string `a a` has two derivations, of 0.4 and of 0.2.
TWICE = """
S -> A A [0.4] | 'a' B [0.2] | 'b' [0.4]
A -> 'a' [1]
B -> 'a' [1]
"""


def build(sampler, variant, *others, **more):
    """A dataset of any section's intervention."""
    made_by = maker(INTERVENTIONS, variant)
    return building.build(sampler, variant, *others, made_by=made_by, **more)


@cache
def l2():
    """The language L2, compiled once."""
    return GrammarCorpus.from_file(ROOT / "config/languages/L2.pcfg")


@cache
def l1():
    """The language L1, the high-entropy counterpart of L2."""
    return GrammarCorpus.from_file(ROOT / "config/languages/L1.pcfg")


@cache
def targets(n=3):
    """Target strings of L2."""
    return target_strings(distinct_sample(l2().grammar, "L2", 2000, 0), n)


def corpus(grammar):
    """The corpus of a grammar in text."""
    return GrammarCorpus(Grammar.from_string(grammar))


def dataset(variant="base", size=64, seed=0, test_size=96, predict_end=False):
    """A dataset of L2 as a frame."""
    sampler = Sampler("L2", l2(), seed, l1())
    wanted = targets() if variant.startswith("with") else None
    return build(sampler, variant, size, test_size, predict_end, wanted)


def small(text, variant="base", size=6, test_size=8, predict_end=False, given=None):
    """A dataset of a small grammar."""
    sampler = Sampler("small", corpus(text), 0)
    return build(sampler, variant, size, test_size, predict_end, given)


def small_targets(**log_prob):
    """Targets of the grammar FOUR, by their texts with an underscore for the space."""
    rows = [
        (f"s{i}", t.replace("_", " "), math.log(p)) for i, (t, p) in enumerate(log_prob.items())
    ]
    frame = pd.DataFrame(rows, columns=["role", "text", "log_prob"])
    return frame.assign(language="small", string_id=[string_id(t.split()) for t in frame["text"]])


def multiset(frame, column="count"):
    """The strings with their counts in train, or in test."""
    counts = dict(zip(frame["text"], frame[column], strict=True))
    return Counter({text: int(count) for text, count in counts.items() if count})


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_a_table_of_strings(variant, tmp_path):
    """Every built variant can be written as the kind `strings`; each string has one row."""
    frame = dataset(variant)
    tables.write(tmp_path / "strings.parquet", frame, KINDS["strings"])
    back = tables.read(tmp_path / "strings.parquet", KINDS["strings"])
    assert back["text"].tolist() == frame["text"].tolist()
    assert frame["string_id"].is_unique
    assert set(frame["variant"]) == {variant}
    assert (frame["size"] == 64).all()


def test_base_is_the_first_strings_of_the_stream():
    """n = 16 is nested in n = 64, and both are the first strings that the language gives."""
    large, small_one = multiset(dataset(size=64)), multiset(dataset(size=16))
    assert small_one <= large
    first = Sampler("L2", l2(), 0).train(64)
    assert multiset(dataset(size=16)) == Counter(" ".join(s) for s in first[:16])
    assert large == Counter(" ".join(s) for s in first)


@pytest.mark.parametrize("size", [1, 16, 64])
def test_counts_sum_to_the_sizes(size):
    """`size` counts copies, in train and in test."""
    frame = dataset(size=size, test_size=50)
    assert frame["count"].sum() == size
    assert frame["test_count"].sum() == 50


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("size", [16, 64])
def test_the_test_set_is_the_same_for_all_sizes_and_variants(variant, size):
    """Losses on the test set can be compared over sizes and variants."""
    assert multiset(dataset(variant, size=size), "test_count") == multiset(dataset(), "test_count")


def test_train_and_test_are_different_streams():
    """The test set is drawn independently; another seed gives other training and test sets."""
    frame = dataset(size=96, test_size=96)
    assert multiset(frame) != multiset(frame, "test_count")
    other = dataset(size=96, test_size=96, seed=1)
    assert multiset(frame) != multiset(other)
    assert multiset(frame, "test_count") != multiset(other, "test_count")
    assert multiset(frame) != multiset(other, "test_count")


@pytest.mark.parametrize("role", ["s0", "s1", "s2"])
@pytest.mark.parametrize("size", [16, 64])
def test_with_is_without_and_the_target(role, size):
    """D is D' and the expected copies of the target; nothing else differs."""
    target = targets().set_index("role").loc[role, "text"]
    copies = target_counts(targets(), size)[role]
    with_it, without = dataset(f"with-{role}", size), dataset(f"without-{role}", size)
    assert multiset(with_it) - multiset(without) == Counter({target: copies})
    assert multiset(without) - multiset(with_it) == Counter()
    assert with_it["count"].sum() == size
    assert without["count"].sum() == size - copies


@pytest.mark.parametrize("role", ["s0", "s1", "s2"])
def test_without_measures_the_target_and_never_trains_on_it(role):
    """The left-out string has a row, held out, even where the test set has it."""
    row = dataset(f"without-{role}").set_index("role").loc[role]
    assert row["text"] == targets().set_index("role").loc[role, "text"]
    assert (row["split"], row["count"]) == ("held_out", 0)
    assert dataset(f"with-{role}").set_index("role").loc[role, "split"] == "train"


def test_a_target_that_is_nowhere_is_measured():
    """A target that neither stream gives is still measured in the variant without it."""
    given = small_targets(a_b=0.5, c_c=1e-9)
    frame = small(FOUR, "without-s1", given=given.assign(text=["a b", "b b"]), test_size=1)
    assert frame.set_index("text").loc["b b", ["split", "count"]].tolist() == ["held_out", 0]


def test_other_targets_stay_where_the_stream_puts_them():
    """Only the target in question is put in or left out; the others keep their role and count."""
    frame = dataset("without-s2").set_index("role")
    assert frame.loc["s0", "count"] > 0
    assert frame.loc["s0", "split"] == "train"


@given(
    log_probs=st.lists(st.floats(-30, 0), min_size=1, max_size=20),
    size=st.integers(1, 100_000),
)
def test_target_frequencies_are_expected_and_decrease(log_probs, size):
    """s0 occurs more often than s1, and so on; each at least once, and as expected if possible."""
    log_probs = sorted(log_probs, reverse=True)
    roles = [f"s{i}" for i in range(len(log_probs))]
    counts = target_counts(pd.DataFrame({"role": roles, "log_prob": log_probs}), size)
    decreasing = [counts[role] for role in roles]
    assert all(a > b for a, b in pairwise(decreasing))
    assert decreasing[-1] == max(1, round(size * math.exp(log_probs[-1])))
    for i, (count, log_prob) in enumerate(zip(decreasing, log_probs, strict=True)):
        expected = round(size * math.exp(log_prob))
        below = decreasing[i + 1] if i + 1 < len(decreasing) else 0
        assert count == max(expected, below + 1, 1)


def test_targets_run_from_the_most_probable_to_a_typical_string():
    """s0 is the mode, the last is as probable as the entropy says, and all differ."""
    sample = distinct_sample(l2().grammar, "L2", 2000, 0)
    chosen = target_strings(sample, 3)
    tables.check_columns("targets", list(chosen.columns), KINDS["targets"])
    assert chosen["role"].tolist() == ["s0", "s1", "s2"]
    assert chosen["log_prob"].iloc[0] == sample["log_prob"].max()
    assert chosen["string_id"].is_unique
    typical = np.average(sample["log_prob"], weights=sample["count"])
    nearest = (sample["log_prob"] - typical).abs().min()
    assert abs(chosen["log_prob"].iloc[-1] - typical) <= nearest + 1e-9


@pytest.mark.parametrize("n_targets", [1, 2, 3, 4])
def test_no_two_targets_are_equally_probable(n_targets):
    """L2's strings have few probabilities: those of 1,024 strings occur 162, 8.5, 0.4 times."""
    chosen = target_strings(distinct_sample(l2().grammar, "L2", 2000, 0), n_targets)
    assert (np.diff(chosen["log_prob"]) < -1).all()
    expected = 1024 * np.exp(chosen["log_prob"].to_numpy())
    if n_targets == 3:
        np.testing.assert_allclose(expected, [161.6, 8.5, 0.45], rtol=0.02)


def test_targets_may_be_equally_probable_where_the_language_leaves_no_choice():
    sample = distinct_sample(Grammar.from_file(ROOT / "config/languages/L1.pcfg"), "L1", 50, 0)
    assert target_strings(sample, 3)["string_id"].is_unique


def test_more_targets_than_strings_are_refused():
    """A language with too few strings says so in one line with the key to change."""
    sample = distinct_sample(Grammar.from_string(FOUR), "four", 500, 0)
    assert len(target_strings(sample, 4)) == 4
    with pytest.raises(UserError, match="only 4 distinct strings, too few for 5 targets; ask"):
        target_strings(sample, 5)


@pytest.mark.parametrize("seed", [0, 1])
def test_dedup_has_each_string_of_base_once(seed):
    """Same distinct strings, one copy of each."""
    base, dedup = dataset(seed=seed), dataset("dedup", seed=seed)
    assert multiset(dedup) == Counter(set(multiset(base)))
    assert max(multiset(base).values()) > 1


@pytest.mark.parametrize("seed", [0, 1])
def test_dedup_matched_has_as_many_strings_of_the_counterpart(seed):
    """As many distinct strings as base, once each, drawn as the counterpart gives them."""
    base, matched = dataset(seed=seed), dataset("dedup-matched", seed=seed)
    strings = multiset(matched)
    assert len(strings) == len(multiset(base)) == (matched["count"] > 0).sum()
    assert set(strings.values()) == {1}
    # L1 and L2 have the same strings; a sample of L1 is far less probable under L2.
    trained = matched[matched["count"] > 0]
    assert trained["log_prob"].mean() < dataset(seed=seed)["log_prob"].mean() - 10
    drawn = l1().grammar.sample(200, stream(seed, COUNTERPART))
    assert list(strings) == [" ".join(s) for s in dict.fromkeys(drawn)][: len(strings)]


def test_test_strings_seen_in_training_are_marked():
    """A string of both sets is one row: split train, with one count for each set."""
    frame = dataset()
    seen = frame[(frame["count"] > 0) & (frame["test_count"] > 0)]
    assert len(seen) > 0
    assert set(seen["split"]) == {"train"}
    assert set(frame.loc[frame["count"] == 0, "split"]) == {"test"}
    assert (frame.loc[frame["split"] == "test", "test_count"] > 0).all()


def test_log_probabilities_are_exact():
    """Computed by hand for a small grammar; all derivations of a string are summed."""
    frame = small(FOUR, size=40, test_size=40).set_index("text")
    expected = {"a b": 0.5, "a c": 0.3, "b b": 0.15, "c": 0.05}
    for text, row in frame.iterrows():
        assert row["log_prob"] == pytest.approx(math.log(expected[text]), abs=1e-12)
    twice = small(TWICE, size=40).set_index("text").loc["a a"]
    assert twice["log_prob"] == pytest.approx(math.log(0.6), abs=1e-12)
    assert math.exp(twice["derivation_log_prob"]) == pytest.approx(0.4) or math.exp(
        twice["derivation_log_prob"]
    ) == pytest.approx(0.2)


def test_log_probabilities_are_those_of_the_grammar():
    """The grammar of the training strings; for L2's `dedup-matched`, this is L1's grammar."""
    for variant, grammar in (("base", l2()), ("dedup-matched", l1())):
        frame = dataset(variant)
        strings = [tuple(text.split()) for text in frame["text"]]
        np.testing.assert_array_equal(frame["log_prob"], grammar.log_probability(strings))


def test_a_counterpart_without_the_language_s_strings_is_refused():
    """A counterpart must give every string of the language a probability."""
    sampler = Sampler("L2", l2(), 0, corpus("S -> 'x' S [0.9] | 'y' [0.1]"))
    with pytest.raises(UserError, match="datasets/high_entropy_counterpart/L2"):
        build(sampler, "dedup-matched", 16, 20, False)


def test_the_optimal_loss_without_the_end():
    """Nats of the string as a prefix, over its symbols: what the language itself would predict.

    Of the strings of FOUR, `a b` costs -log 0.8 - log 0.625, and `c` only -log 0.05.
    """
    frame = small(FOUR, size=40, test_size=40).set_index("text")
    assert frame.loc["a b", "optimal_loss"] == pytest.approx(-math.log(0.5) / 2, abs=1e-12)
    assert frame.loc["c", "optimal_loss"] == pytest.approx(-math.log(0.05), abs=1e-12)
    assert frame.loc["a b", "n_tokens"] == 2
    # Where a string is also the beginning of another, its end is not predicted and costs nothing.
    shared = small("S -> 'a' [0.25] | 'a' 'b' [0.75]", size=40).set_index("text")
    assert shared.loc["a", "optimal_loss"] == pytest.approx(0.0, abs=1e-12)
    assert shared.loc["a b", "optimal_loss"] == pytest.approx(-math.log(0.75) / 2, abs=1e-12)


def test_the_optimal_loss_with_the_end():
    """The end is one more token, and the whole costs minus the log probability of the string."""
    shared = small("S -> 'a' [0.25] | 'a' 'b' [0.75]", size=40, predict_end=True).set_index("text")
    assert shared.loc["a", "n_tokens"] == 2
    assert shared.loc["a", "optimal_loss"] == pytest.approx(-math.log(0.25) / 2, abs=1e-12)
    assert shared.loc["a b", "n_tokens"] == 3
    assert shared.loc["a b", "optimal_loss"] == pytest.approx(-math.log(0.75) / 3, abs=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_same_seed_builds_the_same_dataset(variant):
    """The result is the same if the sampler has built other variants before."""
    sampler = Sampler("L2", l2(), 3, l1())
    for _ in range(2):
        for name in VARIANTS:
            again = build(sampler, name, 16, 8, False, targets() if "-s" in name else None)
            if name == variant:
                fresh = dataset(variant, 16, 3, 8)
                measured = ["string_id", "count", "test_count", "split", "optimal_loss"]
                pd.testing.assert_frame_equal(again[measured], fresh[measured])


@given(st.lists(st.text("abc012", min_size=1, max_size=3), min_size=1, max_size=10))
def test_string_ids_are_hashes_of_the_text(string):
    """A string's name depends only on its terminals; other terminals give another name."""
    expected = hashlib.sha256(" ".join(string).encode()).hexdigest()[:12]
    assert string_id(string) == string_id(tuple(string)) == expected
    if len(string) > 1:
        assert string_id(string) != string_id(["".join(string)])


def test_string_ids_last():
    """The names are in tables on people's disks: they must never change."""
    assert string_id(("1", "2", "3")) == "7c8f50592903"


def test_the_sample_of_a_language():
    """Distinct strings whose counts sum to the sample, with exact probabilities."""
    grammar = Grammar.from_string(TWICE)
    sample = distinct_sample(grammar, "twice", 3000, 0)
    assert sample["count"].sum() == 3000
    assert sample["text"].is_unique
    rows = sample.set_index("text")
    assert rows.loc["a a", "count"] / 3000 == pytest.approx(0.6, abs=0.04)
    assert rows.loc["a a", "log_prob"] == pytest.approx(math.log(0.6), abs=1e-12)
    summary = summarise(grammar, "twice", sample)
    entropy = -0.6 * math.log(0.6) - 0.4 * math.log(0.4)
    assert abs(summary["entropy"] - entropy) < 4 * summary["entropy_standard_error"]
    assert summary["ambiguous"] is True
    assert summary["n_derivations"] == 3
    assert summary["sample_size"] == 3000


def test_the_rules_of_a_language():
    """A rule that stands twice is one row; the start symbol is first, wherever its rules stand."""
    grammar = Grammar.from_string(
        "A -> 'a' [0.25] | 'b' [0.5]\nA -> 'a' [0.25]\n%start S\nS -> A A [0.5] | A 'c' [0.5]"
    )
    found = grammar_table(grammar, "twice")
    assert list(found["rule"]) == [0, 1, 2, 3]
    assert list(found["lhs"]) == ["S", "S", "A", "A"]
    assert list(found["rhs"]) == ["A A", "A 'c'", "'a'", "'b'"]
    np.testing.assert_allclose(found["probability"], 0.5)
    np.testing.assert_allclose(found["expected_uses"], [0.5, 0.5, 0.75, 0.75])


def test_the_derivation_of_a_string():
    """The surprises are of the exact prefix probabilities; rules are numbered as in `grammar`."""
    grammar = Grammar.from_string("A -> 'a' [0.2] | 'b' [0.8]\n%start S\nS -> A [0.3] | A A [0.7]")
    found = derivation_table(grammar, "small", ("b", "a"))
    assert list(found["symbol"]) == ["S", "A", "b", "A", "a"]
    assert found["parent"].fillna(-1).tolist() == [-1, 0, 1, 0, 3]
    assert found["rule"].fillna(-1).tolist() == [1, 3, -1, 2, -1]
    numbered = grammar_table(grammar, "small").set_index("rule")["probability"]
    used = found.dropna(subset=["rule"])
    assert list(used["probability"]) == list(numbered.loc[used["rule"]]) == [0.7, 0.8, 0.2]
    assert list(zip(found["begin"], found["end"], strict=True))[3:] == [(1, 2), (1, 2)]
    surprise = found["surprise"].dropna()
    np.testing.assert_allclose(surprise, -np.log([0.8, 0.7 * 0.2]))
    np.testing.assert_allclose(found["log_prob"], math.log(0.7 * 0.8 * 0.2))


def test_the_typical_string_has_a_typical_probability():
    """The mean is -3.75, with copies; of two equally near strings, the shorter is taken."""
    sample = pd.DataFrame(
        {
            "string": [("a",), ("b", "b"), ("c",), ("d",)],
            "string_id": ["4", "1", "3", "2"],
            "length": [1, 2, 1, 1],
            "log_prob": [-1.0, -4.0, -4.0, -5.0],
            "count": [2, 1, 1, 4],
        }
    )
    assert typical_string(sample) == ("c",)


def message(error):
    """A user error's message, which is one line."""
    assert "\n" not in str(error.value)
    return str(error.value)


def test_dedup_matched_needs_a_counterpart():
    """The remedy is the key of the configuration."""
    with pytest.raises(UserError) as error:
        build(Sampler("L1", l1(), 0), "dedup-matched", 4, 4, False)
    assert "language L1: " in message(error)
    assert "datasets/high_entropy_counterpart" in message(error)


def test_a_language_too_small_for_distinct_strings_is_refused():
    """A counterpart of four strings cannot give five distinct ones."""
    rich = corpus("S -> 'a' S [0.9] | 'b' [0.1]")
    sampler = Sampler("rich", rich, 0, corpus(FOUR))
    with pytest.raises(UserError) as error:
        build(sampler, "dedup-matched", 8, 4, False)
    assert "draws hold only 4 of the" in message(error)
    assert "the language is too small" in message(error)


def test_a_language_too_small_for_two_sides_is_refused():
    """A smaller train size would not help if both strings are on the other side."""
    two = corpus("S -> 'a' [0.5] | 'b' [0.5]")
    said = set()
    for seed in range(8):
        try:
            build(Sampler("two", two, seed, split="disjoint"), "base", 16, 8, False)
        except UserError as error:
            said.add(str(error))
    for_training = next(text for text in said if "for training" in text)
    assert for_training == (
        "language two, one side of datasets/split disjoint: 0 draws hold only 0 of the 16 strings "
        "needed for training; a side has all copies of its strings, and the language has few "
        "strings, at most 2: set datasets/split to independent, or choose a richer language"
    )
    assert any("to set apart; a side has all copies" in text for text in said)


@pytest.mark.parametrize("kind", ["with", "without"])
def test_a_language_of_the_target_alone_is_refused(kind):
    """Without the language's only string, nothing can be drawn."""
    given = small_targets(a=1e-6)
    with pytest.raises(UserError) as error:
        small("S -> 'a' [1]", f"{kind}-s0", size=4, given=given)
    assert "draws hold only 0 of the 3 strings" in message(error)


@pytest.mark.parametrize("kind", ["with", "without"])
def test_copies_must_leave_room(kind):
    """A target expected to fill the whole training set is refused, with the keys to change."""
    given = small_targets(a_b=0.99)
    assert small(FOUR, f"{kind}-s0", size=6, given=small_targets(a_b=0.5))["count"].sum() > 0
    with pytest.raises(UserError) as error:
        small(FOUR, f"{kind}-s0", size=6, given=given)
    assert "size 6: 6 copies of the target s0 leave no room" in message(error)
    assert "studies/disagreement/targets" in message(error)


def test_an_unknown_role_is_refused():
    """The known roles are listed."""
    with pytest.raises(UserError) as error:
        small(FOUR, "with-s7", given=small_targets(a_b=0.5, a_c=0.3))
    assert "no target 's7'; known: s0, s1" in message(error)


@settings(max_examples=30, deadline=None)
@given(size=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_any_size_and_seed_of_a_small_language(size, seed):
    """Invariants for any size and seed, up to the largest seed that the configuration allows."""
    sampler = Sampler("four", corpus(FOUR), seed)
    base = build(sampler, "base", size, 10, False)
    dedup = build(sampler, "dedup", size, 10, False)
    assert base["count"].sum() == size
    assert multiset(dedup) == Counter(set(multiset(base)))
    assert multiset(base, "test_count") == multiset(dedup, "test_count")


# The split `disjoint`


def disjoint(variant="base", size=64, seed=0, test_size=96, language=l2):
    """A dataset of L2 whose strings are trained on or set apart, as a frame."""
    sampler = Sampler("L2", language(), seed, l1(), split=DISJOINT)
    wanted = targets() if variant.startswith("with") else None
    return build(sampler, variant, size, test_size, False, wanted)


@pytest.mark.parametrize("variant", VARIANTS)
def test_set_apart_strings_are_never_trained_on(variant):
    """A string of the split stand_in has no copy in training, and none in the test set."""
    strings = disjoint(variant)
    apart = strings[strings["split"] == "stand_in"]
    assert len(apart) > 10
    assert (apart[["count", "test_count"]] == 0).all(axis=None)
    independent = dataset(variant)
    tested = [frame.set_index("string_id")["test_count"] for frame in (strings, independent)]
    tested = [counts[counts > 0].sort_index() for counts in tested]
    pd.testing.assert_series_equal(*tested)


def test_a_string_is_on_one_side_whatever_the_size():
    """The training strings of a small dataset are among those of a large one, in order."""
    small_one, large = (disjoint(size=size) for size in (32, 256))
    ids = [frame[frame["count"] > 0]["string_id"].tolist() for frame in (small_one, large)]
    assert set(ids[0]) <= set(ids[1])
    for frame in (small_one, large):
        assert frame["count"].sum() == len(Sampler("L2", l2(), 0).train(frame["size"][0]))
    apart = [set(frame[frame["split"] == "stand_in"]["string_id"]) for frame in (small_one, large)]
    assert apart[0] == apart[1]


def test_frequent_strings_can_be_unseen():
    """Independent strings leave no frequent string unseen. Set apart, half of them are unseen."""
    seeds = range(6)
    unseen, apart = (
        max(frame[candidates(frame)]["log_prob"].max() for frame in frames)
        for frames in (
            [dataset(size=256, seed=seed) for seed in seeds],
            [disjoint(size=256, seed=seed) for seed in seeds],
        )
    )
    most_frequent = max(dataset(size=256, seed=seed)["log_prob"].max() for seed in seeds)
    assert unseen < most_frequent - 1
    assert apart == pytest.approx(most_frequent)


@pytest.mark.parametrize("name", ["L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8"])
@pytest.mark.parametrize("size", [64, 256])
def test_most_training_strings_have_stand_ins(name, size):
    """In each language of the paper; a perfect learner is below none of them.

    The most frequent string of L2 is alone with its probability. If it is trained on, a third of
    the training strings are its copies, and have no stand-in.
    """
    least = 0.6 if name == "L2" else 0.9
    language = GrammarCorpus.from_file(ROOT / f"config/languages/{name}.pcfg")
    for seed in range(2):
        sampler = Sampler(name, language, seed, split=DISJOINT)
        strings = build(sampler, "base", size, 96, False)
        train, unseen = strings[strings["count"] > 0], strings[candidates(strings)]
        chosen = stand_ins(train["optimal_loss"], unseen["optimal_loss"], train["n_tokens"])
        covered = train["count"][chosen.exist].sum() / train["count"].sum()
        assert covered >= least
        loss = chosen.loss(unseen["optimal_loss"].to_numpy()[None])[0, chosen.exist]
        assert not (train["optimal_loss"][chosen.exist] < loss).any()


def test_a_text_is_not_split(tmp_path):
    """Its strings have no probabilities to match them by."""
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{i} {i + 1}\n" for i in range(40)))
    sampler = Sampler("lines", read_corpus(path), 0, split=DISJOINT)
    assert len(sampler.train(30)) == 30
    assert sampler.unseen(5) == []


def test_a_sample_by_copies():
    """Half are repeated strings; within a group, every string is equally likely; few are all."""
    n, times = 4, 2000
    strings = pd.DataFrame(
        {"string_id": list("abcdefghijk"), "count": [1, 9, 1, 1, 2, 1, 5, 1, 1, 1, 2]}
    )
    samples = [sample_by_copies(strings, n, seed) for seed in range(times)]
    assert {len(set(sample["string_id"])) for sample in samples} == {n}
    assert {int((sample["count"] > 1).sum()) for sample in samples} == {2}
    times_chosen = pd.concat(samples)["string_id"].value_counts().reindex(strings["string_id"])
    expected = np.where(strings["count"] > 1, times * 2 / 4, times * 2 / 7)
    assert (np.abs(times_chosen - expected) < 4 * np.sqrt(expected)).all()
    assert sample_by_copies(strings, 11, 0).equals(strings)
    assert sample_by_copies(strings, n, 5).equals(samples[5])
    # With too few of one group, there are more of the other.
    repeated = [(sample_by_copies(strings, n, 0)["count"] > 1).sum() for n in (10, 9, 8)]
    assert repeated == [4, 4, 4]
    one = strings.assign(count=[3] + [1] * 10)
    assert (sample_by_copies(one, 4, 0)["count"] > 1).sum() == 1
    assert (sample_by_copies(strings.assign(count=2), 4, 0)["count"] > 1).sum() == 4


def test_equally_near_placebos_are_shared_out():
    """Twenty strings of one probability do not all have the same placebo."""
    strings = pd.DataFrame(
        {
            "string_id": [f"{i:012x}" for i in range(40)],
            "split": ["train"] * 20 + ["test"] * 20,
            "count": [1] * 20 + [0] * 20,
            "optimal_loss": [0.3] * 20 + [0.3, 0.3 + 1e-12] * 9 + [0.2, np.nan],
        }
    )
    found = [placebo_of(strings, name) for name in strings["string_id"][:20]]
    assert len(set(found)) > 5
    assert set(found) <= set(strings["string_id"][20:38])
    assert placebo_of(strings.assign(optimal_loss=np.nan), "0" * 12) is None


@settings(max_examples=150, deadline=None)
@given(
    groups=st.lists(st.integers(0, 7), min_size=4, max_size=20),
    size=st.integers(1, 20),
    test_size=st.integers(1, 20),
    seed=st.integers(0, 9),
)
def test_no_group_of_records_is_divided(groups, size, test_size, seed):
    """No test string has a group of which another string is trained on; each remedy works."""
    n_records = len(groups)
    size, test_size = min(size, n_records), min(test_size, n_records)
    mine = corpus_of_records([f"text {n}" for n in range(n_records)], [f"g{g}" for g in groups])
    sampler = Sampler("mine", mine, seed)

    def is_divided(size, test_size) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Notice)
            frame = build(sampler, "base", size, test_size, predict_end=False)
        name_of = mine.groups(mine.strings, "record")
        group = [name_of[(text,)] for text in frame["text"]]
        trained = set(itertools.compress(group, frame["count"] > 0))
        only_tested = (frame["count"] == 0) & (frame["test_count"] > 0)
        return not trained.isdisjoint(itertools.compress(group, only_tested))

    try:
        assert not is_divided(size, test_size)
    except UserError as error:
        said = str(error)
        cut = min(group for group in groups if f"the group 'g{group}' would be in" in said)
        assert groups.count(cut) > 1
        assert "add records" in said
        for key, value in re.findall(r"lower ([a-z_/ ]+) to (\d+)", said):
            sizes = {"the train size": size, "datasets/test_size": test_size, key: int(value)}
            assert not is_divided(*sizes.values())


def test_groups_that_a_file_divides_are_as_it_says():
    splits = ["train", "train", "test", "test"]
    mine = corpus_of_records(["one", "two", "three", "four"], ["g", "h", "g", "i"], splits=splits)
    frame = build(Sampler("mine", mine, 0), "base", 2, 2, predict_end=False)
    assert frame.loc[frame["count"] > 0, "text"].sort_values().tolist() == ["one", "two"]
    assert frame.loc[frame["test_count"] > 0, "text"].sort_values().tolist() == ["four", "three"]
