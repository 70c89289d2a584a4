"""The claims on information measures, on tables whose changes are known."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, kendalltau, pearsonr

from helpers import information_worlds as worlds
from palimpsest.claims import AGREES, CANNOT_TELL, DISAGREES, judge, judge_all
from palimpsest.estimates import lowest, over_seeds
from palimpsest.information import trends
from palimpsest.information.claims import CLAIMS, QUESTIONS
from palimpsest.information.claims import claim_statistics as claims
from palimpsest.information.kinds import INFORMATION, MARKERS, SHUFFLES
from palimpsest.statistics import student, student_p_value
from palimpsest.tables import write

SILENT = replace(worlds.EXPECTED, noise=0.0, random_markers={"entropy": -0.05})
REVERSED = replace(
    worlds.EXPECTED, markers=worlds.EXPECTED.shuffles, shuffles=worlds.EXPECTED.markers
)


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """All judged claims, by the claim."""
    return judge_all(CLAIMS, {INFORMATION.name: table}).set_index("claim")


@pytest.fixture(scope="module")
def expected() -> pd.DataFrame:
    """What the paper expects, in models of three depths."""
    return worlds.information(worlds.EXPECTED, 1, seeds=4, models=worlds.DEPTHS)


@pytest.fixture(scope="module")
def verdicts(expected) -> pd.DataFrame:
    """The verdicts on what the paper expects."""
    return judged(expected)


def test_the_tables_tested_on_are_of_their_kind(expected, tmp_path):
    write(tmp_path / "table.parquet", expected, INFORMATION)


# Statistics


@pytest.mark.parametrize(("intervention", "change"), [(MARKERS, -0.4), (SHUFFLES, 0.4)])
def test_changes_are_the_known_ones(intervention, change):
    """Levels of seeds and layers, and random markers, drop out of the slope."""
    table = worlds.information(SILENT, 0, seeds=3)
    found = claims.changed(table, intervention, "entropy")
    np.testing.assert_allclose(found.values, [change] * 3, atol=1e-12)
    expected = "random markers and wrong answers against neither: −0.05 (−0.05 to −0.05)"
    assert expected in found.remarks


def test_a_slope_is_that_of_least_squares():
    table = worlds.information(worlds.World(), 0, seeds=2)
    rows = table[(table["intervention"] == MARKERS) & (table["layer"] == 1)]
    found = trends.slopes(rows, "entropy")
    for (_, _, seed), slope in found.items():
        own = rows[rows["seed"] == seed]
        assert slope == pytest.approx(np.polyfit(own["share"], own["entropy"], 1)[0])
    assert trends.slopes(rows[rows["share"] == 1], "entropy").isna().all()
    assert trends.slopes(rows.assign(entropy=np.nan), "entropy").empty


def test_correlations_are_those_of_scipy():
    chance = np.random.default_rng(0)
    for n in (3, 5, 9):
        x, y = chance.integers(4, size=(2, n)).astype(float)
        x[:2], y[:2] = (0, 9), (9, 0)
        y += 1e6
        assert trends.pearson(x, y) == pytest.approx(pearsonr(x, y).statistic)
        assert trends.kendall(x, y) == pytest.approx(kendalltau(x, y).statistic)
    for association in (trends.pearson, trends.kendall, trends.fisher):
        assert np.isnan(association([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))
        assert np.isnan(association([1.0, 2.0], [1.0, 2.0]))
    assert np.isnan(trends.pearson([0.1 + 0.2, 0.3, 0.3], [1.0, 2.0, 3.0]))
    assert np.isfinite(trends.fisher([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]))


def test_accuracies_that_differ_by_chance_are_equal():
    np.testing.assert_array_equal(
        trends.levels([1.0, 255 / 256, 0.3, 1.0], [256] * 4), [1, 1, 0, 1]
    )
    np.testing.assert_array_equal(trends.levels([0.9, 0.5, 0.7], [1000] * 3), [2, 0, 1])
    # Each is near the next one.
    np.testing.assert_array_equal(trends.levels([0.50, 0.54, 0.58], [256] * 3), [0, 0, 0])


def test_a_switch_orders_no_models():
    """All models but the last are right, so accuracy says nothing of the others' order."""
    table = worlds.information(worlds.EXPECTED, 1, seeds=3)
    is_last = table["share"] == 1
    switch = table.assign(accuracy=np.where(is_last, 0.3, 1.0 - table["seed"] / worlds.ANSWERS))
    for found in (
        claims.ordered(switch, MARKERS, "entropy"),
        claims.ordered_better(switch, MARKERS, "entropy"),
        claims.ordered_by_norms(switch, MARKERS),
    ):
        assert found.values == ()
        assert found.remarks[0].startswith("3 of 3 series of models")
    # Seeds whose accuracies have levels still count.
    mixed = switch.assign(accuracy=switch["accuracy"].where(table["seed"] > 0, table["accuracy"]))
    found = claims.ordered(mixed, MARKERS, "entropy")
    assert found.values == (claims.ordered(table, MARKERS, "entropy").values[0],)
    assert found.remarks[0].startswith("2 of 3 series of models")


def test_the_gap_of_both_kinds_of_strings_is_that_of_the_highest_alpha():
    table = worlds.information(SILENT, 0, seeds=2)
    found = claims.shortcut_reliance(table)
    rows = table[(table["share"] == 1) & (table["layer"] == 0) & (table["intervention"] == MARKERS)]
    assert found.values == pytest.approx(rows["accuracy_agrees"] - rows["accuracy_disagrees"])
    assert found.remarks[0].startswith("alpha 0: ")
    without = claims.shortcut_reliance(table[table["share"] > 0])
    assert without.values == pytest.approx(found.values)
    assert without.remarks == ()


def test_every_depth_is_the_weakest_one():
    """The lower end is the lowest of the depths' own; the upper end is corrected for all depths."""
    table = worlds.information(worlds.EXPECTED, 1, seeds=3, models=worlds.DEPTHS)
    found = claims.at_every_depth(table, MARKERS, "entropy")
    values = -trends.trend(table, MARKERS, "entropy")
    assert found.lower == pytest.approx(min(student(own).lower for _, own in values.items()))
    careful = [student(own, confidence=1 - 0.05 / 3).upper for _, own in values.items()]
    assert found.upper == pytest.approx(min(careful))
    assert found.values == pytest.approx(values[values.mean().idxmin()])
    assert found.p_value == max(student_p_value(own, 0) for _, own in values.items())
    one_depth = table[table["n_layers"] == 2]
    assert claims.at_every_depth(one_depth, MARKERS, "entropy").values == ()


@pytest.mark.parametrize("draw", range(6))
@pytest.mark.parametrize("shift", [-2.0, -0.5, 0.0, 0.5, 2.0])
def test_p_values_of_several_means_agree_with_their_intervals(draw, shift):
    """Below 5 % exactly if the interval leaves out 0."""
    chance = np.random.default_rng(draw)
    parts = [pd.Series(own + shift) for own in chance.normal(size=(3, 5))]
    found = lowest(parts, "parts", bound=0)
    assert (found.p_value < 0.05) == (found.lower > 0 or found.upper < 0)
    assert lowest([], "parts", bound=0).values == ()
    alone = lowest([*parts, pd.Series([shift])], "parts", bound=0)
    assert np.isnan([alone.lower, alone.p_value]).all()


def test_constant_neurons_are_in_the_note():
    table = worlds.information(worlds.EXPECTED, 1)
    assert not any(
        "constant" in remark for remark in claims.changed(table, MARKERS, "entropy").remarks
    )
    some = table.assign(n_degenerate=np.where(table["share"] == 1, 64, 32))
    (remark,) = [m for m in claims.changed(some, MARKERS, "entropy").remarks if "constant" in m]
    assert "25\N{NO-BREAK SPACE}% at alpha 0, 50\N{NO-BREAK SPACE}% at 1" in remark


@pytest.mark.parametrize(("change", "verdict"), [(0.2, AGREES), (-0.2, DISAGREES)])
def test_norms_order_models_if_they_follow_accuracy(change, verdict):
    """Small norms first: norms that rise with beta say which model is accurate, and else not."""
    shuffles = worlds.EXPECTED.shuffles | {"two_norm": change, "frobenius": change}
    table = worlds.information(replace(worlds.EXPECTED, shuffles=shuffles), 1, seeds=4)
    found = claims.ordered_by_norms(table, SHUFFLES)
    (claim,) = (c for c in CLAIMS if c.claim.startswith("Small norms order"))
    assert judge(found, claim)["verdict"] == verdict
    assert any(remark.startswith("2-norm: ") for remark in found.remarks)


@pytest.mark.parametrize(("unseen", "verdict"), [(0.0, AGREES), (0.6, DISAGREES)])
def test_memorised_strings_count_beyond_held_out_ones(unseen, verdict):
    """Where held-out strings are below their loss as often, nothing is memorised."""
    table = worlds.information(worlds.EXPECTED, 1, seeds=5)
    rises = table["share"] * (table["intervention"] == SHUFFLES)
    table = table.assign(memorised_unseen=0.1 + (unseen + 0.3 * (unseen > 0)) * rises)
    (claim,) = (c for c in CLAIMS if c.claim.startswith("Where more answers are permuted"))
    assert judge(claims.changed(table, SHUFFLES, "memorised"), claim)["verdict"] == verdict


@pytest.mark.parametrize("ahead", [True, False])
def test_a_measure_may_order_better_or_worse_than_norms(ahead):
    """Where norms say what accuracy says and entropy nothing, and the other way round."""
    follows = {"entropy": -0.4} if ahead else {"two_norm": 0.2, "frobenius": 0.2}
    world = worlds.World(markers={"accuracy": -0.5, **follows})
    found = claims.ordered_better(worlds.information(world, 2, seeds=12), MARKERS, "entropy")
    (claim,) = (c for c in CLAIMS if c.claim.startswith("Entropy orders") and "better" in c.claim)
    assert judge(found, claim)["verdict"] == (AGREES if ahead else DISAGREES)


# Verdicts


def test_verdicts_where_all_is_as_expected(verdicts):
    """Nothing disagrees but what the world leaves out; orders that all seeds share agree."""
    assert set(verdicts["question"]) == set(QUESTIONS) - {"information_encoders"}
    tied = verdicts["lower"] == verdicts["upper"]
    assert set(verdicts.loc[tied, "verdict"]) <= {AGREES, CANNOT_TELL}
    decided = verdicts[~tied]
    assert set(decided["verdict"]) == {AGREES}
    assert len(decided) > 10
    assert len([claim for claim in CLAIMS if not claim.on_request]) < 20


def test_verdicts_where_all_is_reversed():
    found = judged(worlds.information(REVERSED, 1, seeds=4))
    for words in ("Entropy falls with heur", "Entropy rises with exam", "Mutual information "):
        some = found[found.index.str.startswith(words) & ~found.index.str.contains("depth|orders")]
        assert set(some["verdict"]) == {DISAGREES}, words


def test_notes_have_placebos(verdicts):
    of_information = verdicts[verdicts.index.str.startswith("Mutual information")]
    plain = of_information[~of_information.index.str.contains("better than norms")]
    assert len(plain) == 4
    assert plain["note"].str.contains("permuted strings").all()
    orders = verdicts[verdicts["question"] == "information_accuracy"]
    assert orders["note"].str.contains("share in place of the measure").all()
    (memorised,) = verdicts.loc[verdicts.index.str.startswith("Where more answers"), "note"]
    assert "held-out strings" in memorised
    slopes = verdicts[verdicts["question"].isin(["information_heuristic", "information_example"])]
    assert slopes["note"].str.contains("wrong answers against neither: ").all()
    heuristic = slopes["question"] == "information_heuristic"
    by_heart = slopes["note"].str.contains("learned by heart, beyond held-out ones: ")
    assert by_heart.tolist() == heuristic.tolist()


def test_an_order_that_all_seeds_share_is_a_verdict():
    """Random orders of five runs would share it, or its reverse, in 2 of 120³ cases."""
    table = worlds.information(SILENT, 1, seeds=3)
    estimate = claims.ordered(table, MARKERS, "entropy")
    assert estimate.values == (1, 1, 1)
    (claim,) = (c for c in CLAIMS if c.claim.startswith("Entropy orders") and "as their" in c.claim
                and "heuristic" in c.claim)  # fmt: skip
    found = judge(estimate, claim)
    assert found["verdict"] == AGREES
    assert found["p_value"] == pytest.approx(2 / 120**3)
    assert "the exact test of orders" in found["note"]


def test_one_seed_has_no_verdict(expected):
    found = judged(expected[expected["seed"] == 0])
    assert set(found["verdict"]) == {CANNOT_TELL}
    assert found[["lower", "upper", "p_value"]].isna().all(axis=None)


@pytest.mark.parametrize("left", [MARKERS, SHUFFLES])
def test_one_intervention_is_enough_for_its_own_claims(expected, left):
    some = expected[(expected["intervention"] == left) & (expected["n_layers"] == 2)]
    found = judged(some)
    other = "example-level" if left == MARKERS else "heuristic"
    about_other = found.index.str.contains(other)
    assert set(found.loc[about_other, "verdict"]) == {CANNOT_TELL}
    assert AGREES in set(found.loc[~about_other, "verdict"])


def test_one_value_of_the_share_has_no_verdict():
    """As in the tour: two alphas, one beta, one seed, two depths; and a table without pairs."""
    models = {"opt-125m-twin": 1, "opt-1.3b-twin": 2}
    table = worlds.information(worlds.EXPECTED, 1, seeds=1, models=models, shares=(0.0, 1.0))
    table = table[(table["intervention"] == MARKERS) | (table["share"] == 1)]
    none = table.assign(mutual_information=np.nan, mutual_information_permuted=np.nan, n_pairs=0)
    for own in (table, none):
        assert set(judged(own)["verdict"]) == {CANNOT_TELL}


def test_another_site_is_not_in_the_claims():
    table = worlds.information(worlds.EXPECTED, 1, seeds=2)
    elsewhere = table.assign(place="residual")
    assert (judged(elsewhere)["n_seeds"] == 0).all()
    both = pd.concat([table, elsewhere.assign(entropy=0.0, accuracy=0.0)])
    for statistic in (claims.changed, claims.ordered, claims.ordered_better):
        assert statistic(both, MARKERS, "entropy") == statistic(table, MARKERS, "entropy")


# Error rates

N_WORLDS, N_SEEDS = 150, 3
OF_SLOPES = {
    "slope": partial(claims.changed, intervention=MARKERS, column="entropy"),
    "tau": partial(claims.ordered, intervention=MARKERS, column="entropy"),
}


@pytest.fixture(scope="module")
def of_nothing() -> pd.DataFrame:
    """Many seeds in which only accuracy depends on the share; heavy tails and uneven noise."""
    world = worlds.World(markers={"accuracy": -0.5}, df=2.0, uneven=3.0)
    return worlds.information(world, 7, seeds=N_WORLDS * N_SEEDS)


@pytest.mark.parametrize("name", OF_SLOPES)
def test_nothing_is_claimed_where_nothing_changes(of_nothing, name):
    """A verdict is wrong in 2.5 % of the studies on either side; the bound fails once in 1000."""
    values = np.array(OF_SLOPES[name](of_nothing).values)
    studies = [over_seeds(pd.Series(own)) for own in values.reshape(N_WORLDS, N_SEEDS)]
    most = binom.ppf(0.999, N_WORLDS, 0.025)
    studies = [own for own in studies if own.lower < own.upper]
    assert sum(own.lower > 0 for own in studies) <= most
    assert sum(own.upper < 0 for own in studies) <= most
