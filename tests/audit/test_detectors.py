"""Detectors by hand and on simulated records with a known truth; the error rates of intervals."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from scipy.stats import binomtest

from helpers.detector_worlds import judged, pairs_of
from helpers.experiments import message
from palimpsest.audit.canaries import guesses, one_run_epsilon, sees_no_coin
from palimpsest.audit.detectors import judgements, threshold
from palimpsest.audit.figures.planted_secrets import planted_secrets
from palimpsest.audit.kinds import DETECTORS, EPSILON
from palimpsest.audit.planting import planted
from palimpsest.corpora.records import read_records
from palimpsest.languages import Grammar
from palimpsest.statistics import clopper_pearson
from palimpsest.tables import write

FILE, GRAMMAR = "config/records/planted.jsonl", "config/languages/people.pcfg"
PAIRS = {1: 24, 4: 16, 16: 12, 64: 8}


def of(rows, statistic, copies=0):
    return next(r for r in rows if r["statistic"] == statistic and r["copies"] == copies)


def test_the_shipped_secrets_are_planted_by_a_coin():
    made = planted(Grammar.from_file(GRAMMAR), PAIRS, seed=0)
    shipped = read_records(FILE)
    assert shipped.ids.tolist() == made["id"].tolist()
    assert shipped.texts.tolist() == made["text"].tolist()
    np.testing.assert_array_equal(shipped.trained, made["trained"])
    np.testing.assert_array_equal(shipped.copies, made["copies"])
    assert made["text"].is_unique
    assert made.groupby("group")["trained"].agg(["size", "sum"]).eq([2, 1]).all(axis=None)
    assert made.groupby("copies")["trained"].sum().to_dict() == PAIRS
    assert 0.3 < made["trained"].iloc[::2].mean() < 0.7


def test_a_language_with_too_few_strings_for_the_pairs():
    few = Grammar.from_string("%text\nS -> 'ab' [0.5] | 'cd' [0.5]\n")
    assert planted(few, {1: 1}, seed=0)["text"].is_unique
    said = message(lambda: planted(few, {1: 2}, seed=0))
    assert said == (
        "planted secrets: 400 draws hold only 2 of the 4 strings needed that differ from one "
        "another; the language is too small: plant fewer pairs, or name a richer language"
    )


def test_a_detector_by_hand():
    """Of 39 others, the second highest score is the threshold at 0.05, and one is above."""
    unseen = np.arange(39.0)
    assert threshold(unseen, unseen, 0.05) == (37.0, 2, 1)
    assert threshold(unseen, unseen, 0.02) == (np.inf, 0, 0)
    members = pd.DataFrame(
        {"score": [40.0, 38.0, 37.0, 3.0], "trained": True, "copies": [2, 2, 1, 1]}
    )
    others = pd.DataFrame({"score": unseen, "trained": False, "copies": 1})
    rows = pd.concat([members, others], ignore_index=True)
    found = list(judgements(rows.assign(group=rows.index), 0.05))
    alarms = of(found, "false alarms")
    assert (alarms["n"], alarms["n_found"], alarms["value"]) == (39, 1, 1 / 39)
    assert [of(found, "recall", n)["value"] for n in (0, 1, 2)] == [0.5, 0.0, 1.0]
    exact = binomtest(2, 2).proportion_ci()
    assert of(found, "recall", 2)["lower"] == pytest.approx(exact.low)
    assert of(found, "precision")["value"] == pytest.approx(0.5 / (0.5 + 1 / 39))
    assert np.isnan(of(list(judgements(rows.assign(group=rows.index), 0.01)), "recall")["value"])


def test_ranks_count_groups():
    """Three scores each of 19 groups: only the highest group may be above, at 0.05."""
    unseen, group = np.arange(57.0), np.arange(57) // 3
    assert threshold(unseen, group, 0.05) == (56.0, 1, 0)
    assert threshold(unseen, group, 0.10) == (53.0, 4, 3)
    assert threshold(unseen, group, 0.04).score == np.inf
    assert threshold(unseen, np.zeros(57), 0.4).score == np.inf


@pytest.mark.parametrize("n_groups", [6, 20])
def test_records_of_few_groups_promise_no_more_false_alarms(n_groups):
    """Scores of 60 records with a share of 0.7 in common in a group, 200 times.

    Ranks of records would find 8 % of the records of further groups at a rate of 0.05 with six
    groups, where no threshold keeps it, and 6 % with 20.
    """
    from scipy.stats import norm

    chance, group, alarms = np.random.default_rng(0), np.arange(60) % n_groups, []
    for _ in range(200):
        score = np.sqrt(0.7) * chance.normal(size=n_groups)[group]
        score += np.sqrt(0.3) * chance.normal(size=60)
        alarms.append([norm.sf(threshold(score, group, rate).score) for rate in (0.05, 0.2)])
    assert (np.mean(alarms, axis=0) <= [0.05, 0.2]).all()
    assert np.mean(alarms, axis=0)[1] > 0.1
    assert (np.max(alarms, axis=0)[0] == 0) == (n_groups == 6)


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (3, 7), (7, 7), (1, 120)])
def test_exact_intervals_are_those_of_scipy(hits, n):
    exact = binomtest(hits, n).proportion_ci()
    np.testing.assert_allclose(clopper_pearson(hits / n, n), [exact.low, exact.high], rtol=1e-7)


@pytest.mark.parametrize("is_rounded", [False, True])
def test_error_rates_of_intervals(is_rounded):
    """Each interval misses its truth in at most 5 % of 500 simulations (8 % is 3 sigma more).

    The truth of a threshold is known, because the scores are normal; also if they are rounded, so
    that many are equal.
    """
    from scipy.stats import norm

    chance, missed = np.random.default_rng(0), {"false alarms": 0, "recall": 0, "precision": 0}
    shift, draws = 1.5, 500
    for _ in range(draws):
        rows = pairs_of(60, chance, shift)
        if is_rounded:
            rows["score"] = rows["score"].round()
        found = list(judgements(rows, 0.05))
        unseen = rows[~rows["trained"]]
        limit = threshold(unseen["score"].to_numpy(), unseen["group"].to_numpy(), 0.05).score
        limit += 0.5 * is_rounded  # beyond which a score is rounded to a higher one
        truth = {"false alarms": norm.sf(limit), "recall": norm.sf(limit - shift)}
        truth["precision"] = truth["recall"] / sum(truth.values())
        for name, value in truth.items():
            row = of(found, name)
            missed[name] += not row["lower"] <= value <= row["upper"]
    assert all(n / draws < 0.08 for n in missed.values()), missed
    assert missed["recall"] > 0


def test_bounds_of_epsilon_by_hand():
    """Without an error, the bound is the logit of alpha ** (1 / n)."""
    least = 0.05 ** (1 / 64)
    assert one_run_epsilon(64, 64) == pytest.approx(np.log(least / (1 - least)))
    assert one_run_epsilon(32, 64) == 0
    assert one_run_epsilon(0, 0) == 0
    exact = binomtest(50, 64, alternative="greater").proportion_ci().low
    assert one_run_epsilon(50, 64) == pytest.approx(np.log(exact / (1 - exact)))
    with pytest.raises(ValueError, match="n_right"):
        one_run_epsilon(3, 2)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("n", [8, 60])
def test_the_bound_of_epsilon_is_above_the_truth_in_at_most_5_percent(epsilon, n):
    """Randomised response, which is exactly as private as it says: exact, over all numbers right.

    It is also below by less than a guess would change in many cases: the bound is no trivial one.
    """
    from scipy.stats import binom

    right = np.arange(n + 1)
    bounds = np.array([one_run_epsilon(k, n) for k in right])
    chance = binom.pmf(right, n, 1 / (1 + np.exp(-epsilon)))
    error = chance[bounds > epsilon + 1e-12].sum()
    assert error <= 0.05
    assert error > 0.001 or n < 10


def test_the_bound_holds_if_the_least_sure_guesses_are_left_out():
    """The mechanism says how sure it is, and hard ones are passed over: 1,000 runs of epsilon 1."""
    chance, epsilon, above = np.random.default_rng(0), 1.0, 0
    for _ in range(1000):
        coins = chance.random(60) < 0.5
        is_sure = chance.random(60) < 0.4
        is_true = chance.random(60) < np.where(is_sure, 1 / (1 + np.exp(-epsilon)), 0.5)
        said = np.where(is_true, coins, ~coins)
        right = (said == coins)[is_sure]
        above += one_run_epsilon(int(right.sum()), len(right)) > epsilon
    assert 0.005 < above / 1000 < 0.07


def test_guesses_about_pairs():
    rows = pd.DataFrame(
        {
            "group": ["p", "p", "q", "q", "r", "r", "alone", "s", "s"],
            "trained": [True, False, False, True, True, False, True, True, True],
            "score": [2.0, 1.0, 2.0, 1.0, 1.0, 1.0, 5.0, 1.0, 2.0],
            "copies": [4, 4, 1, 1, 1, 1, 1, 1, 1],
        }
    )
    found = guesses(rows)
    assert found["copies"].tolist() == [4, 1, 1]
    assert found["right"].tolist()[:2] == [True, False]
    assert found["right"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("detector", "holds"),
    [
        ("loss", True),
        ("reference/base", True),
        ("rmia/base", False),
        ("lira", False),
        ("combined", False),
    ],
)
def test_detectors_that_are_given_other_records_show_no_epsilon(detector, holds):
    """Guesses that look at each other's coins can all be right by one stroke of luck."""
    assert sees_no_coin(detector) == holds


def test_a_table_of_detectors(tmp_path):
    found = judged(2.0)
    write(tmp_path / "detectors.parquet", found, DETECTORS)
    names = {"loss", "rmia/base", "greedy", "longest span", "(n, p)", "greedy/base"}
    assert set(found["detector"]) == {*names, "contextual"}
    of_rate = found[(found["rate"] == 0.05) & (found["statistic"] == "recall")]
    recall = of_rate.pivot(index="detector", columns="copies", values="value")
    assert (recall.loc[["loss", "contextual", "(n, p)"], 4] > 0.9).all()
    assert (recall.loc["longest span"] == 0).all()
    assert found.loc[found["rate"] == 0.001, "value"].isna().all()
    epsilon = found[found["statistic"] == EPSILON].set_index(["detector", "copies"])["lower"]
    assert epsilon["loss", 4] > 1.5
    assert not {"rmia/base", "contextual"} & {*epsilon.index.get_level_values(0)}


def test_nothing_is_found_where_nothing_was_planted():
    found = judged(0.0)
    recall = found[(found["statistic"] == "recall") & (found["copies"] == 0)].dropna()
    assert (recall["lower"] <= 0.05).all()
    assert (found.loc[found["statistic"] == EPSILON, "lower"] < 0.5).all()


def test_the_figure_of_detectors():
    figure = planted_secrets(pd.concat([judged(2.0), judged(0.0).assign(model="base")]))
    assert len(figure.axes) == 6
    recall, _, epsilon = figure.axes[:3]
    names = [label.get_text() for label in recall.get_yticklabels()]
    assert names[0] == "the truth"
    assert names[-1] == "contextual"
    assert len(names) == 8
    assert max(line.get_xdata()[-1] for line in epsilon.get_lines()) > 1.5
    nothing = judged(2.0)
    nothing.loc[nothing["rate"].notna(), ["value", "lower", "upper"]] = np.nan
    assert "Too few records" in planted_secrets(nothing).get_suptitle()


def test_without_a_coin_the_figure_does_not_speak_of_epsilon():
    found = judged(2.0, coin=False)
    assert not (found["statistic"] == EPSILON).any()
    figure = planted_secrets(found)
    assert len(figure.axes) == 2
    assert all(axes.has_data() for axes in figure.axes)
    words = " ".join(text.get_text() for text in figure.findobj(Text)).lower()
    assert "precision" in words
    assert "epsilon" not in words
    assert "ε" not in words
    assert "pairs" not in words


def test_a_target_without_a_coin_beside_one_with_bounds():
    figure = planted_secrets(pd.concat([judged(2.0), judged(2.0, coin=False).assign(model="base")]))
    assert [axes.has_data() for axes in figure.axes] == [True] * 5
