"""How well measures agree with exact values, against published packages."""

import numpy as np
import pytest
from scipy import stats

from palimpsest.atlas.agreement import Agreement, MeanAgreement, auc, tpr
from palimpsest.atlas.distances import choice_distances, edit_distances
from palimpsest.atlas.kinds import AUC, RANK, TPR
from palimpsest.languages import Grammar
from palimpsest.records.roc_curves import auc as auc_of_audit

CHANCE = np.random.default_rng(0)
EXACT = CHANCE.standard_normal(40)
MEASURED = EXACT + CHANCE.standard_normal(40)
MOST = np.quantile(EXACT, 0.75) < EXACT


def test_the_statistics_are_those_of_other_code():
    found = Agreement(MEASURED, EXACT, MOST).statistics()
    assert found[RANK][0] == pytest.approx(stats.spearmanr(MEASURED, EXACT)[0])
    assert found[AUC][0] == pytest.approx(auc_of_audit(MEASURED, MOST))
    assert found[TPR][0] == np.mean(MEASURED[MOST] > MEASURED[~MOST].max())


def test_one_negative_in_a_hundred_may_be_found():
    score, positive = np.arange(250.0)[None], np.zeros((1, 250), dtype=bool)
    positive[0, [100, 246, 247]] = True  # 247 negatives: two of them may be above
    assert tpr(score, positive)[0] == pytest.approx(2 / 3)


def test_ties_count_half():
    assert auc(np.ones((1, 6)), np.arange(6)[None] < 2)[0] == 0.5


def test_a_string_without_a_value_is_left_out_of_its_own_measure_only():
    measured = np.where(np.arange(40) == 3, np.nan, MEASURED)
    agreement = Agreement(measured, EXACT)
    assert agreement.n_strings == 39
    expected = stats.spearmanr(np.delete(MEASURED, 3), np.delete(EXACT, 3))[0]
    assert agreement.statistics()[RANK][0] == pytest.approx(expected)
    assert Agreement(MEASURED, EXACT).n_strings == 40


def test_what_never_starts_ranks_last():
    starts = np.array([1.0, 2.0, np.inf, 3.0])
    found = Agreement(starts, np.array([1.0, 2.0, 9.0, 3.0])).statistics()
    assert found[RANK][0] == pytest.approx(1.0)


def test_what_is_all_alike_has_no_statistic():
    found = Agreement(np.ones(40), EXACT, np.ones(40, dtype=bool)).statistics()
    assert np.isnan([found[RANK][0], found[AUC][0], found[TPR][0]]).all()
    assert np.isnan(Agreement(EXACT[:2], EXACT[:2]).statistics()[RANK][0])


def test_resamples_are_around_the_statistic():
    agreement = Agreement(MEASURED, EXACT, MOST)
    draws = agreement.statistics(np.random.default_rng(1), 2000)
    for name, whole in agreement.statistics().items():
        assert draws[name].shape == (2000,)
        assert abs(np.nanmean(draws[name]) - whole[0]) < 0.05


def test_columns_have_correlations_of_their_own():
    one, other = CHANCE.random((2, 12, 5))
    expected = [stats.spearmanr(a, b)[0] for a, b in zip(one.T, other.T, strict=True)]
    agreement = MeanAgreement(one, other)
    assert agreement.correlations() == pytest.approx(expected)
    assert agreement.statistics()[RANK][0] == pytest.approx(np.mean(expected))
    with_gap = np.where(np.eye(12, 5, dtype=bool), np.nan, other)
    gapless = [
        stats.spearmanr(np.delete(a, n), np.delete(b, n))[0]
        for n, (a, b) in enumerate(zip(one.T, other.T, strict=True))
    ]
    assert MeanAgreement(one, with_gap).correlations() == pytest.approx(gapless)


def test_rows_apart_have_correlations_apart():
    one, other = CHANCE.random((2, 12, 3))
    apart = np.arange(12)[:, None] % 2 == np.array([0, 1, 0])
    expected = [
        np.mean([stats.spearmanr(a[of == side], b[of == side])[0] for side in (True, False)])
        for a, b, of in zip(one.T, other.T, apart.T, strict=True)
    ]
    assert MeanAgreement(one, other, apart).correlations() == pytest.approx(expected)


def test_resamples_of_matrices_are_of_rows_and_columns():
    """Effects of rows, which all columns share, widen the interval."""
    shared, own = CHANCE.standard_normal((40, 1)), CHANCE.standard_normal((2, 40, 6))
    agreement = MeanAgreement(*(shared + own))
    draws = agreement.statistics(np.random.default_rng(1), 300)[RANK]
    assert abs(draws.mean() - agreement.statistics()[RANK][0]) < 0.05
    assert draws.std() > 1.5 * agreement.correlations().std(ddof=1) / np.sqrt(6)


def test_the_placebo_of_shuffles_is_near_nothing():
    found = Agreement(MEASURED, EXACT, n_shuffles=200).statistics()[RANK][0]
    assert abs(found) < 0.05


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("a b c", "b c", 1), ("1 2 3", "3 2 1", 2)],
)
def test_the_edit_distance_counts_symbols(one, other, distance):
    found = edit_distances([one, other, "a b" if " " in one else "ab"])
    assert found[0, 1] == found[1, 0] == distance
    assert (np.diag(found) == 0).all()


def test_the_distance_by_a_grammar_counts_the_choices_that_differ():
    """As often as both make them; a forced rule is no choice."""
    grammar = Grammar.from_string(
        """
        S -> A B [0.5] | B [0.5]
        A -> C C [1]
        B -> 'x' [0.5] | 'y' [0.5]
        C -> 'c' [0.5] | 'd' [0.5]
        """
    )
    texts = ["c c x", "c d x", "d d y", "x", "y"]
    found = choice_distances(grammar, texts)
    assert found.tolist() == [
        [0, 1, 3, 3, 4],
        [1, 0, 2, 3, 4],
        [3, 2, 0, 4, 3],
        [3, 3, 4, 0, 1],
        [4, 4, 3, 1, 0],
    ]
    as_text = Grammar.from_string("%text\nS -> 'a ' B [1]\nB -> 'b' [0.5] | 'c' [0.5]")
    assert choice_distances(as_text, ["a b", "a c"]).tolist() == [[0, 1], [1, 0]]
