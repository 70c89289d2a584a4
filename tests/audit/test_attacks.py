"""Scores of attacks by hand, and on worlds in which members are known."""

import os
import re
import subprocess
import sys
import zlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, norm, rankdata
from sklearn.metrics import roc_auc_score, roc_curve

from helpers.experiments import ROOT
from palimpsest import audit
from palimpsest.audit.membership import ATTACKS, Given
from palimpsest.audit.membership.attack import (
    LOWERCASE,
    NEIGHBOURS,
    PREFIXED,
    SECRETS,
    Retrained,
)
from palimpsest.audit.passes import Pass
from palimpsest.audit.versions import versions
from palimpsest.records.classifiers import blind, can_learn, combined
from palimpsest.records.roc_curves import auc, roc, statistics, tpr_at, unanimous

TEXTS = ["Ann Ek was born in Lund.", "x x x x x x x x x x x x"]
N_TOKENS = np.array([3, 5])


def made(log_prob, rank=None, n_tokens=N_TOKENS) -> Pass:
    log_prob = np.asarray(log_prob, dtype=float)
    ends = np.concatenate([np.arange(1, n + 1) for n in n_tokens]).astype(float)
    rank = np.ones(len(log_prob)) if rank is None else np.asarray(rank, dtype=float)
    return Pass(
        np.asarray(n_tokens), log_prob, np.full_like(log_prob, -2.0), rank * 0 + 0.5, rank, ends
    )


LOG_PROB = [-1.0, -2.0, -3.0, -0.1, -0.2, -0.3, -4.0, -0.4]
TARGET = made(LOG_PROB, rank=[1, 2, 3, 1, 1, 1, 9, 1])
REFERENCE = made([-1.5, -1.0, -5.0, -1.0, -1.0, -1.0, -1.0, -1.0])
CHANGED = {
    LOWERCASE: made(np.array(LOG_PROB) * 2),
    NEIGHBOURS: made(
        np.repeat([[-4.0] * 3, [-2.0] * 3], 1, axis=0).ravel().tolist() + [-3.0] * 10,
        n_tokens=[3, 3, 5, 5],
    ),
    PREFIXED: made(np.array(LOG_PROB) * 1.5),
    SECRETS: made([-1.0, -3.0, -5.0, -2.0, -2.0, -2.0], n_tokens=[1] * 6),
}
# Probabilities per token: 1/2 where others have 1/3 and 1/5; and 1/9 where both have 1/2
RETRAINED = Retrained(np.log([2.0, 9.0]), np.log([[3.0, 2.0], [5.0, 2.0]]))
GIVEN = Given(TEXTS, TARGET, REFERENCE, CHANGED, np.array([False, True]), RETRAINED)
N_BYTES = np.array([len(text) for text in TEXTS])
ZLIB = np.array([len(zlib.compress(text.encode())) for text in TEXTS])
BY_HAND = {
    "loss": [-2.0, -1.0],
    "zlib": [-2.0, -1.0] / ZLIB,
    "min_k": [-3.0, -4.0],
    "min_k_plus": [(-3 + 2) / 0.5, (-4 + 2) / 0.5],
    "lowercase": [2.0, 2.0],
    "recall": [1.5, 1.5],
    "neighbours": [(4.0 + 2.0) / 2 - 2, 3 - 1.0],
    "reference": [(7.5 - 6.0) / 24, (5.0 - 5.0) / 23],
    # Losses 1 against 3 and 5: Student's t of 1 degree of freedom at -sqrt(3); and all equal
    "exposure": [np.log2(6), 1.0],
    # Errors of the first text: -2 after -1, and -3 after -5; of the second: -4 after -1
    "ez_mia": [2 / 3, 0.0],
    # Logits log 1 - mean of log 1/2 and log 1/4; log 1/8 - log 1. The variances are log(2)^2 / 2, 0
    "lira": np.array([1.5, -3.0]) * 2,
}


@pytest.mark.parametrize("name", list(BY_HAND))
def test_scores_by_hand(name):
    rtol = 1e-5 if name == "lira" else 1e-12  # the deviation of LiRA is never 0
    np.testing.assert_allclose(ATTACKS[name].score(GIVEN), BY_HAND[name], rtol=rtol)


def test_every_attack_is_tested():
    assert set(ATTACKS) == {*BY_HAND, "rmia"}


def test_a_text_that_the_model_has_no_doubt_about():
    """No deviation, no error: no division by 0."""
    sure = made(np.zeros(8))
    sure = Pass(
        sure.n_tokens, sure.log_prob, sure.mean * 0, sure.deviation * 0, sure.rank, sure.end
    )
    certain = Retrained(np.zeros(2), np.zeros((4, 2)))
    given = Given(
        TEXTS, sure, REFERENCE, {**CHANGED, PREFIXED: sure}, np.array([True, True]), certain
    )
    for attack in ATTACKS.values():
        assert np.isfinite(attack.score(given)).all(), attack.name
    np.testing.assert_array_equal(ATTACKS["ez_mia"].score(given), [1.0, 1.0])


def test_rmia_is_a_rank_among_other_texts_of_the_population():
    """Share of z whose ratio p(z) / ((1 + a) q(z) / 2 + (1 - a) / 2) is at most that of x.

    Here a is 1.
    """
    chance = np.random.default_rng(0)
    n, population = 40, np.arange(40) >= 20
    target, reference = (made(-chance.exponential(1, n), n_tokens=np.ones(n, int)) for _ in "ab")
    found = ATTACKS["rmia"].score(Given(["a"] * n, target, reference, population=population))
    p, q = np.exp(target.log_prob), np.exp(reference.log_prob)
    ratio = p / q
    for place in range(n):
        others = [z for z in range(20, 40) if z != place]
        assert found[place] == pytest.approx(np.mean([ratio[place] >= ratio[z] for z in others]))


def test_lira_is_that_of_many_models():
    """The public function judges every model; the attack has one model and those of other seeds."""
    chance = np.random.default_rng(0)
    inside = np.arange(10) < 5
    loss = chance.gamma(2, 1, (10, 30))
    of_all = audit.lira_offline(loss, np.repeat(inside[:, None], 30, axis=1))
    given = replace(GIVEN, retrained=Retrained(loss[0], loss[5:]))
    np.testing.assert_allclose(ATTACKS["lira"].score(given), of_all[0], rtol=1e-9)


def test_rmia_uses_the_reference_where_tokens_are_improbable():
    """Texts differ in how hard they are, by far more than what training changed."""
    chance = np.random.default_rng(0)
    n, member = 400, np.arange(400) < 200
    hard = chance.normal(3, 1, n)
    target, reference = (
        made(-(hard + chance.normal(0, 0.2, n) - shift), n_tokens=np.ones(n, int))
        for shift in (0.4 * member, 0.0)
    )
    given = Given(["a"] * n, target, reference, population=~member)
    found = {name: auc(ATTACKS[name].score(given), member) for name in ("loss", "rmia")}
    assert found["rmia"] > 0.8 > 0.65 > found["loss"]


def test_roc_is_that_of_scikit_learn():
    chance = np.random.default_rng(1)
    for _ in range(20):
        member = chance.random(60) < 0.4
        score = np.round(chance.normal(member * 0.8, 1), chance.integers(0, 3))  # with ties
        curve = roc(score, member)
        fpr, tpr, _ = roc_curve(member, score, drop_intermediate=False)
        np.testing.assert_allclose(curve.fpr, fpr)
        np.testing.assert_allclose(curve.tpr, tpr)
        assert auc(score, member) == pytest.approx(roc_auc_score(member, score))
        # A rank promises less than the same share of false positives among those that are known.
        n_others = (~member).sum()
        limit = np.floor(0.1 * (n_others + 1)) - 1
        expected = tpr[fpr * n_others <= limit + 1e-9].max()
        assert tpr_at(score, member, 0.1) == pytest.approx(expected)


def test_so_few_false_positives_need_more_texts():
    member = np.arange(100) < 50
    assert np.isnan(tpr_at(np.arange(100.0), member, 0.01))
    with pytest.raises(ValueError, match="members and non-members"):
        roc(np.arange(3.0), np.ones(3, bool))


def test_intervals_cover_the_truth():
    """Normal scores one deviation apart: an AUC of 0.7602, at 5 % false positives 26 % found."""
    chance, truth = np.random.default_rng(2), {"auc": 0.76025, "tpr@0.05": 0.25951}
    hits = dict.fromkeys(truth, 0)
    for _ in range(200):
        member = np.arange(200) < 100
        score = chance.normal(member, 1)
        found = statistics(score, member, np.arange(200), [0.05])
        for name, value in truth.items():
            hits[name] += found[name].lower <= value <= found[name].upper
    assert hits["auc"] >= 0.9 * 200
    assert hits["tpr@0.05"] >= 0.87 * 200


@pytest.mark.parametrize("n", [5, 23])
@pytest.mark.parametrize("truth", [0.5, 0.9, 0.97, 0.999])
def test_intervals_cover_a_truth_that_few_texts_hardly_tell_from_certainty(truth, n):
    """Two normal distributions, `n` members and as many others; 7 % are missed at most.

    With perfect separation, all draws of a bootstrap are alike: alone, it would miss 0.999 in 97 %
    of the cases. The bounds leave three standard errors of 200 simulations.
    """
    chance, member = np.random.default_rng(0), np.arange(2 * n) < n
    distance, missed = norm.ppf(truth) * np.sqrt(2), {"auc": 0, "tpr@0.2": 0}
    true = {"auc": truth, "tpr@0.2": norm.cdf(norm.ppf(0.2) + distance)}
    for _ in range(200):
        score = chance.normal(size=2 * n) + distance * member
        found = statistics(score, member, np.arange(2 * n), [0.2])
        for name, (value, lower, upper) in found.items():
            assert lower <= value <= upper
            assert lower < upper
            missed[name] += not lower <= true[name] <= upper
    assert missed["auc"] <= 200 * 0.12
    assert missed["tpr@0.2"] <= 200 * 0.12


@pytest.mark.parametrize(("n_members", "n_others"), [(2, 30), (30, 2), (3, 30), (30, 5), (5, 5)])
@pytest.mark.parametrize("truth", [0.5, 0.76, 0.95])
def test_intervals_of_few_groups_cover_the_truth(n_members, n_others, truth):
    """Scores of a group share half of their variance; 6 % are missed at most, of 200 simulations.

    A bootstrap over groups missed 19 to 27 % with two groups, and 5 to 15 % with five.
    """
    chance, missed = np.random.default_rng(0), 0
    group = np.concatenate([np.arange(60) % n_members, 100 + np.arange(60) % n_others])
    member, distance = np.arange(120) < 60, norm.ppf(truth) * np.sqrt(2)
    for _ in range(200):
        score = np.sqrt(0.5) * (chance.normal(size=200)[group] + chance.normal(size=120))
        found = statistics(score + distance * member, member, group, [])["auc"]
        assert found.lower < found.upper
        missed += not found.lower <= truth <= found.upper
    assert missed <= 200 * 0.1  # three standard errors above


def test_the_share_found_at_few_false_positives_is_not_too_high_and_its_interval_covers():
    """100 non-members at 1 %: the rank is one, and 37 % are found in truth.

    The best point of the curve within 1 % finds 44 % on average, and a bootstrap misses 20 %.
    """
    chance, member, found = np.random.default_rng(0), np.arange(200) < 100, []
    truth = norm.sf(norm.isf(0.01) - 2)
    for _ in range(200):
        score = chance.normal(2.0 * member, 1)
        found.append(statistics(score, member, np.arange(200), [0.01])["tpr@0.01"])
    values, lower, upper = np.array(found).T
    assert 0.8 * truth < values.mean() < truth
    assert ((lower <= values) & (values <= upper)).all()
    assert ((truth < lower) | (truth > upper)).sum() <= 200 * 0.1
    useless = [tpr_at(chance.normal(size=200), member, 0.01) for _ in range(400)]
    assert np.mean(useless) < 0.014  # of 1 %; the best point finds 2.1 %


@pytest.mark.parametrize("n_groups", [1, 19])
def test_without_a_second_group_there_are_values_and_no_intervals(n_groups):
    """Neither perfect separation nor many texts of one group say how other groups would differ."""
    member, score = np.arange(135) < 40, -np.arange(135.0)
    group = np.where(member, np.arange(135), 200 + np.arange(135) % n_groups)
    for given in (group, np.where(member, 300, np.arange(135))):
        found = statistics(score, member, given, [0.05])
        is_single = n_groups == 1 or given is not group
        assert found["auc"].mean == 1
        assert np.isnan([found["auc"].lower, found["auc"].upper]).all() == is_single
        assert np.isnan(found["tpr@0.05"].mean) == (n_groups == 1 and given is group)
    assert np.isnan(statistics(score, member, group, [0.04])["tpr@0.04"].mean)


def test_ends_of_values_that_are_all_alike():
    """As of Clopper and Pearson; of ties, on both sides."""
    assert unanimous(1.0, 10) == pytest.approx((binomtest(10, 10).proportion_ci().low, 1))
    assert unanimous(0.0, 10) == pytest.approx((0, binomtest(0, 10).proportion_ci().high))
    assert unanimous(0.5, 10) == pytest.approx((0.5 - 0.1542, 0.5 + 0.1542), abs=1e-4)
    tied = statistics(np.ones(20), np.arange(20) < 10, np.arange(20), [])["auc"]
    assert tied == pytest.approx((0.5, *unanimous(0.5, 10)))


@pytest.mark.parametrize("n_others", range(3, 30))
def test_rounding_is_no_spread_of_a_saturated_auc(n_others):
    """With perfect separation, draws differ by rounding errors at some numbers of texts."""
    member = np.arange(8 + n_others) < 8
    score = -np.arange(float(len(member)))
    found = statistics(score, member, np.arange(len(member)), [])["auc"]
    assert found == pytest.approx((1.0, *unanimous(1.0, min(n_others, 8))))


def test_texts_of_a_group_count_once():
    """Ten copies of a text are no ten texts: the interval is as wide as of the texts alone."""
    chance = np.random.default_rng(3)
    member = np.arange(60) < 30
    score = chance.normal(member, 1)
    alone = statistics(score, member, np.arange(60), [])["auc"]
    copied = statistics(np.tile(score, 10), np.tile(member, 10), np.tile(np.arange(60), 10), [])
    assert copied["auc"].mean == pytest.approx(alone.mean)
    assert copied["auc"].upper - copied["auc"].lower == pytest.approx(
        alone.upper - alone.lower, rel=0.15
    )


def test_the_blind_attack_finds_another_kind_and_nothing_else():
    chance = np.random.default_rng(4)
    words = ["red", "blue", "green", "tall", "small", "old", "new"]
    texts = [" ".join(chance.choice(words, 8)) for _ in range(200)]
    member = chance.random(200) < 0.5
    group = np.arange(200)
    assert 0.35 < auc(blind(texts, member, group, 0), member) < 0.65
    dated = [
        f"{text} in {1990 if held else 2025}" for text, held in zip(texts, member, strict=True)
    ]
    assert auc(blind(dated, member, group, 0), member) > 0.95


def test_the_combined_attack_is_not_trained_on_what_it_scores():
    """On noise, it finds nothing; on two weak attacks, more than each."""
    chance = np.random.default_rng(5)
    member, group = np.arange(400) % 2 == 0, np.arange(400)
    noise = pd.DataFrame(chance.normal(size=(400, 30)))
    assert 0.4 < auc(combined(noise, member, group, 0), member) < 0.6
    weak = pd.DataFrame({"a": chance.normal(member, 1), "b": -chance.normal(member, 1)})
    assert auc(combined(weak, member, group, 0), member) > auc(weak["a"].to_numpy(), member)


SIDES = np.arange(40) < 20
NAMED = np.arange(40).astype(str)
GROUPS = {
    "each its own": (NAMED, True),
    "sources": (np.where(SIDES, "A", "B"), False),
    "one source of non-members": (np.where(SIDES, NAMED, "web"), False),
    "one group": (np.full(40, "x"), False),
    "three groups of members": (np.where(SIDES, np.arange(40) % 3, 10 + np.arange(40)), False),
    "ten groups of each": (np.arange(40) // 2, True),
    "groups with both": (np.arange(40) % 8, True),
}


@pytest.mark.parametrize("name", list(GROUPS))
def test_where_labels_follow_groups_nothing_is_learned(name):
    group, is_enough = GROUPS[name]
    assert can_learn(SIDES, group, 0) == is_enough
    if is_enough:
        scores = pd.DataFrame({"a": np.random.default_rng(0).normal(size=40)})
        assert np.ptp(combined(scores, SIDES, group, 0)) > 0
        assert np.ptp(blind([f"word{n % 7} w{n % 9}" for n in range(40)], SIDES, group, 0)) > 0


def test_few_texts_teach_nothing():
    assert can_learn(np.arange(20) < 10, NAMED[:20], 0)
    assert not can_learn(np.arange(20) < 9, NAMED[:20], 0)


@pytest.mark.parametrize("texts", [["?!"] * 40, ["?!" if n % 2 else "" for n in range(40)]])
def test_texts_without_words_are_all_alike(texts):
    assert auc(blind(texts, SIDES, NAMED, 0), SIDES) == 0.5


def test_a_single_word_that_only_one_half_has():
    texts = ["word", *["?!"] * 39]
    assert 0.4 < auc(blind(texts, SIDES, NAMED, 0), SIDES) < 0.6


def test_copies_of_a_text_are_scored_together():
    """A group is never divided, so that a copy does not give its membership away."""
    chance = np.random.default_rng(6)
    score = np.repeat(chance.normal(size=100), 4)
    member, group = np.repeat(np.arange(100) % 2 == 0, 4), np.repeat(np.arange(100), 4)
    found = combined(pd.DataFrame({"a": score}), member, group, 0)
    assert 0.3 < auc(found, member) < 0.7
    assert (rankdata(found).reshape(100, 4).std(axis=1) == 0).all()


def test_other_digits_of_a_secret():
    """A text up to its last digit, with its own digits and with others; these are predicted."""
    made = versions(
        [SECRETS],
        ["Q1: call 55-0199 now", "no digit"],
        [3, 0],
        np.array([False, False]),
        neighbours=1,
        prefixes=1,
        secrets=3,
    )[SECRETS]
    assert made.n == 4
    assert made.texts[0] == "Q1: call 55-0199"
    assert made.prompts == [9] * 4 + [0] * 4
    others = made.texts[1:4]
    assert all(re.fullmatch(r"Q1: call \d\d-\d{4}", other) for other in others)
    assert made.texts[0] not in others
    assert len(set(others)) == 3
    assert made.texts[4:] == ["no digit"] * 4
    assert SECRETS not in versions(
        [SECRETS], ["5"], [0], np.array([True]), neighbours=1, prefixes=1, secrets=0
    )


def test_a_table_of_scores():
    """One column for each attack, and for each reference that it takes; none without its needs."""
    alone = audit.attacks(TEXTS, TARGET)
    assert set(alone) == {"loss", "zlib", "min_k", "min_k_plus"}
    np.testing.assert_allclose(alone["loss"], BY_HAND["loss"])
    other_tokens = replace(REFERENCE, end=REFERENCE.end + 1)
    found = audit.attacks(
        TEXTS,
        TARGET,
        references={"same": REFERENCE, "other": other_tokens},
        changed=CHANGED,
        unseen=GIVEN.population,
        names=["recall", "ez_mia", "reference", "rmia"],
    )
    of_reference = ["reference/same", "reference/other", "rmia/same", "rmia/other"]
    assert list(found) == ["recall", "ez_mia/same", *of_reference]
    np.testing.assert_allclose(found["reference/other"], BY_HAND["reference"])


def test_changed_texts_are_the_same_in_every_process():
    """The order of a set differs between processes, and the words that are drawn must not."""
    program = (
        "from palimpsest.audit.versions import versions; import numpy as np; "
        "texts = ['one two six ten', 'ash elm oak yew', 'cod eel ide ray']; "
        "made = versions(['neighbours'], texts, [0] * 3, np.zeros(3), neighbours=4, prefixes=1); "
        "print(made['neighbours'].texts)"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": "workflow/scripts"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    ]
    assert said[0] == said[1]
