"""Every claim on unlearning can be found right, wrong and open; and intervals err rarely enough.

Planted worlds: one in which the claims are right, some in which they are wrong (because some claims
cannot fail together), and one in which chance is larger than any difference.
"""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.stats import binom

from helpers import unlearning_claim_worlds as worlds
from helpers.unlearning_claim_worlds import RIGHT, problem, scaled
from palimpsest.claims import judge_all
from palimpsest.statistics import student
from palimpsest.unlearning.claims import CLAIMS, QUESTIONS
from palimpsest.unlearning.claims import claim_statistics as statistics
from palimpsest.unlearning.claims import hardness_statistics as hardness
from palimpsest.unlearning.claims import ranking_statistics as rankings
from palimpsest.unlearning.claims import side_statistics as sides
from palimpsest.unlearning.methods import read_methods

ROOT = Path(__file__).parents[2]
WRONG = ("wrong", "also_wrong", "third_wrong")


SOURCES = {
    name: method.source
    for name, method in read_methods(ROOT / "config/unlearning.yaml").items()
    if method.source
}


PAPER = yaml.safe_load((ROOT / "config/paper.yaml").read_text())["unlearning"]
NEARLY_EQUAL_TEXT = re.compile(r"^[<>]= ")  # of the regions of equivalences


def judged(given):
    return judge_all(CLAIMS, given, facts={"sources": SOURCES})


@cache
def world(name):
    return getattr(worlds, name)()


@cache
def verdicts(name):
    return judged(world(name)).set_index("claim")


@pytest.mark.parametrize("claim", [claim.claim for claim in CLAIMS])
def test_a_claim_is_found_right(claim):
    row = verdicts("right").loc[claim]
    assert row["verdict"] == "agrees", row.to_dict()
    assert row["interval_over"] in ("seeds", statistics.SEEDS_OF_METHODS, sides.OVER)
    assert (row["n_seeds"], row["n_models"]) == (worlds.N_SEEDS, 1)
    assert row["lower"] - 1e-12 <= row["estimate"] <= row["upper"] + 1e-12


@pytest.mark.parametrize("claim", [claim.claim for claim in CLAIMS])
def test_a_claim_is_found_wrong(claim):
    found = {name: verdicts(name).loc[claim] for name in WRONG}
    assert "disagrees" in [row["verdict"] for row in found.values()], found


@pytest.mark.parametrize("claim", [claim.claim for claim in CLAIMS])
def test_a_claim_is_left_open_where_chance_is_larger(claim):
    assert verdicts("unclear").loc[claim, "verdict"] == "cannot tell"


def of_side(source):
    return [name for name in PAPER["methods"] if SOURCES.get(name) == source]


def test_the_papers_design_decides_all_but_equivalences():
    """A world in which the competition is ahead, with the methods, seeds and set-ups of paper.yaml.

    The world has fewer repetitions than paper.yaml.
    """
    assert set(PAPER["setups"]) >= {"full", "reuse-n-n", "bootstrap"}
    others = [name for name in PAPER["methods"] if not SOURCES.get(name)]
    competition = [name for name in of_side("competition") if name != "fanchuan"]
    assert {"fanchuan-seif", "kookmin-seif"} <= set(others)
    others = [name for name in others if name not in ("fanchuan-seif", "kookmin-seif")]
    order = [
        *others, *of_side("baseline"), *of_side("literature"),
        "fanchuan-seif", *competition, "fanchuan", "kookmin-seif",
    ]  # fmt: skip
    assert sorted(order) == sorted(PAPER["methods"])
    given = worlds.right(methods=order, seeds=PAPER["seeds"])
    found = judged(given).set_index("claim")["verdict"]
    open_rows = {claim for claim, verdict in found.items() if verdict != "agrees"}
    bounds = {made.claim: made.region.text for made in CLAIMS}
    assert all(NEARLY_EQUAL_TEXT.search(bounds[claim]) for claim in open_rows), open_rows
    assert "disagrees" not in set(found)


def test_every_question_has_a_claim():
    assert [*dict.fromkeys(claim.question for claim in CLAIMS)] == list(QUESTIONS)


def test_intervals_over_the_seeds_have_p_values():
    frame = verdicts("right")
    assert (frame.loc[frame["interval_over"] == "seeds", "p_holm"] < 0.05).any()
    assert (frame.loc[frame["interval_over"] == sides.OVER, "p_value"] < 0.05).all()
    assert frame.loc[frame["interval_over"] == statistics.SEEDS_OF_METHODS, "p_value"].isna().all()


# Undefined cases.


def test_tables_that_are_not_there_leave_open_rows():
    frame = judged({})
    assert set(frame["verdict"]) == {"cannot tell"}
    assert not frame["n_seeds"].any()


def test_claims_on_full_need_full():
    table = world("right")["unlearning_scores"].query("setup != 'full'")
    frame = judged({**world("right"), "unlearning_scores": table})
    undefined = frame[frame["n_seeds"] == 0]["claim"]
    assert set(undefined) == {made.claim for made in CLAIMS if "(full)" in made.claim}


@pytest.mark.parametrize("names", [(), ("none", "retrain"), ("npo", "rmu"), ("none", "finetune")])
def test_few_methods_are_no_error(names):
    few = {
        kind: frame[frame["method"].isin(names)] if names else frame.head(0)
        for kind, frame in world("right").items()
    }
    frame = judged(few)
    assert len(frame) == len(CLAIMS)
    on_methods = frame["claim"].str.contains("rank|poor proxy|trades|competition|differ in what")
    assert set(frame.loc[on_methods, "verdict"]) == {"cannot tell"}


def test_one_seed_gives_no_interval():
    one = {kind: frame[frame["seed"] == 0] for kind, frame in world("right").items()}
    frame = judged(one)
    assert set(frame["verdict"]) == {"cannot tell"}
    assert frame["estimate"].notna().sum() >= len(CLAIMS) - 1


def test_what_is_at_its_floor_cannot_be_told():
    """Every attack succeeds: no quality, and all epsilons at the cap."""
    floor = scaled(RIGHT, 0)
    given = {
        "unlearning_tests": worlds.tests(floor, 0.0, worlds.errors(0.0, 0.0), 0.0, worlds.SEEDS),
        "unlearning_scores": worlds.scores(floor, floor, {}, 0.0, gain=0.0),
        "unlearning_effects": worlds.effects(floor, floor, floor, 0.0, (floor, floor)),
        "epsilons": world("right")["epsilons"].assign(epsilon=50.0),
        "unlearning_metrics": worlds.metrics(RIGHT, scaled(RIGHT, 0), 0.01),
        "unlearning_transfer": worlds.transfer(floor, 0.0, 0.0),
    }
    frame = judged(given).set_index("claim")
    relearned = frame.index.str.startswith("Unlearned models return")
    assert relearned.sum() == 1
    assert set(frame[~relearned]["verdict"]) == {"cannot tell"}


def test_an_undefined_problem_takes_away_the_interval():
    table = world("right")["unlearning_gap_summary"]
    hole = (table["seed"] == 1) & (table["method"] == "scrub")
    table = table.assign(share=table["share"].mask(hole))
    (row,) = judge_all(CLAIMS[:1], {"unlearning_gap_summary": table}).to_dict("records")
    assert row["verdict"] == "cannot tell"
    assert row["n_seeds"] == worlds.N_SEEDS - 1
    assert "undefined in 1 of 4 problems" in row["note"]


def test_several_models_are_averaged_within_a_seed():
    table = world("right")["unlearning_tests"]
    other = table.assign(model="n", forgetting_quality=table["forgetting_quality"] / 2)
    found = statistics.short_of_retraining.estimate
    both, alone, half = (found(each) for each in (pd.concat([table, other]), table, other))
    np.testing.assert_allclose(both.values, (np.array(alone.values) + half.values) / 2)
    assert both.models == {"m": pytest.approx(alone.mean), "n": pytest.approx(half.mean)}


# The statistics, by hand.


def of_one_seed(rows, columns):
    return pd.DataFrame(rows, columns=columns).assign(**problem(0))


def test_forgetting_counts_at_most_as_the_whole_gap_and_not_on_placebos():
    rows = [("a", "forget", 0.6), ("a", "placebo", 0.1), ("b", "forget", 9.0),
            ("b", "placebo", 2.0), ("none", "forget", 0.0), ("none", "placebo", 0.0)]  # fmt: skip
    table = of_one_seed(rows, ["method", "string_role", "share"])
    assert statistics.forgets(table).item() == pytest.approx((0.5 + 1.0) / 2)


def test_damage_to_all_strings_is_no_forgetting():
    rows = [("a", "forget", 3.0), ("a", "placebo", 3.0), ("a", "retained", 0.0)]
    table = of_one_seed(rows, ["method", "string_role", "share"])
    assert statistics.forgets(table).item() == 0


def test_the_spread_of_retraining_is_scaled_to_the_uncertainty_of_the_method():
    rows = [(m, "forget", s, k * s, k * s - k, k * s + k)
            for m, k in (("a", 3), ("retrain", 1)) for s in range(5)]  # fmt: skip
    table = of_one_seed(rows, ["method", "string_role", "string_id", "share", "lower", "upper"])
    assert statistics.unevenness(table).item() == 0


def test_share_alike_compares_different_repetitions():
    one = pd.DataFrame([[1, 2, 3], [3, 2, 1]], columns=list("abc"))
    assert rankings.share_alike(one, one) == 0
    outside = one.head(1).set_axis([rankings.OUTSIDE])
    assert rankings.share_alike(outside, one) == 0.5
    ties = pd.DataFrame([[1, 1, 1], [1, 1, 1]], columns=list("abc"))
    assert rankings.share_alike(one, ties) == 0.5


@pytest.mark.parametrize(("setup", "expected"), [("reuse-n-n", 0.0), ("full", 0.5)])
def test_a_metric_is_compared_with_repetitions_of_other_models(setup, expected):
    """By hand: repetition 0 has the metric's order, and repetition 1 the reverse."""
    quality = {0: [1, 2, 3], 1: [3, 2, 1]}
    rows = [(setup, r, m, q) for r, of in quality.items() for m, q in zip("abc", of, strict=True)]
    columns = ["setup", "repetition", "method", "forgetting_quality"]
    gaps = [(m, "mia_gap", -q) for m, q in zip("abc", quality[0], strict=True)]
    metrics = of_one_seed(gaps, ["method", "metric", "estimate"])
    found = rankings.gap_ranks_as_quality(
        metrics,
        of_one_seed(rows, columns),
        gap="membership inference gap",
        agreement=rankings.ALONE,
    )
    assert found.item() == expected


def test_the_weakest_method_is_named():
    """It alone decides: all others are far above it, and one is at the ceiling in all seeds."""
    given = {"strong": [0.8, 0.7, 0.9], "capped": [1.0, 1.0, 1.0], "weak": [0.1, 0.11, 0.12]}
    table = pd.concat(
        of_one_seed(
            [(m, "forget", v[seed]), (m, "placebo", 0.0)], ["method", "string_role", "share"]
        )
        .assign(seed=seed)
        for m, v in given.items() for seed in range(3)
    )  # fmt: skip
    found = statistics.forgotten.estimate(table)
    assert found.remarks == ("weakest: weak",)
    assert found.values == pytest.approx(given["weak"])
    assert found.lower == pytest.approx(student(given["weak"]).lower)
    assert found.upper == pytest.approx(student(given["weak"], confidence=1 - 0.05 / 3).upper)


def test_tables_without_tests_leave_the_claims_open():
    """Models of one original model are not tested: their columns are null."""
    columns = ["null_quality", "joint_errors", "joint_models", "joint_p"]
    tests = world("right")["unlearning_tests"].assign(**dict.fromkeys(columns, np.nan))
    summary = world("right")["unlearning_gap_summary"].assign(lower=np.nan, upper=np.nan)
    gaps = world("right")["unlearning_gaps"].assign(lower=np.nan, upper=np.nan)
    given = {"unlearning_tests": tests, "unlearning_gap_summary": summary, "unlearning_gaps": gaps}
    frame = judged({**world("right"), **given}).set_index("claim")
    nulls = "fall short|attacker that sees all|close the gap unevenly"
    is_open = frame.index.str.contains(nulls)
    assert is_open.sum() == 3
    assert set(frame[is_open]["verdict"]) == {"cannot tell"}
    assert set(frame[~is_open]["verdict"]) == {"agrees"}
    assert statistics.share_told_by_joint_attack(tests).isna().all()


def test_hard_for_all_needs_models_that_methods_do_not_share():
    found = hardness.hard_for_all.estimate
    shared = worlds.epsilons(2.5, 1.0, setup="reuse-n-n")
    without = found(shared)
    assert without.mean > 0
    assert np.isnan([without.lower, without.upper]).all()
    assert "set-up full" in without.remarks[0]
    both = found(pd.concat([shared, world("right")["epsilons"]]))
    assert both == found(world("right")["epsilons"])
    assert both.lower > 0


def test_a_larger_pool_is_compared_with_the_smallest_by_hand():
    pools = [("a", "pool", n, q) for n, q in ((16, 0.2), (32, 0.3), (64, 0.6))]
    effects = of_one_seed(pools, ["method", "effect", "level", "forgetting_quality"])
    rows = [("a", "full", r, q) for r, q in enumerate((0.4, 0.6))]
    scores = of_one_seed(rows, ["method", "setup", "repetition", "forgetting_quality"])
    found = rankings.larger_pools_are_nearer(effects, scores)
    assert found.item() == pytest.approx((0.5 - 0.2) - (0.6 - 0.5))
    without = rankings.larger_pools_are_nearer(effects, scores.assign(setup="reuse-n-n"))
    assert without.isna().all()


def test_agreement_is_goodman_and_kruskals_gamma():
    """Two methods and two repetitions, by hand: across repetitions, without ties."""
    epsilon = {("a", 0): [1, 2, 3], ("a", 1): [1, 3, 2], ("b", 0): [3, 2, 1], ("b", 1): [1, 1, 2]}
    rows = [
        {"method": m, "repetition": r, "string_id": s, "epsilon": e, "setup": "full"}
        for (m, r), values in epsilon.items()
        for s, e in enumerate(values)
    ]
    orders = hardness.StringOrders(pd.DataFrame(rows))
    # a0 with b1: + + of two untied pairs; a1 with b0: - - and + of three
    assert orders.agreement(orders.between) == pytest.approx((2 - 1) / 5)
    # a0 with a1 and the other way round: + + -
    assert orders.agreement([(0, 0)]) == pytest.approx(1 / 3)


# Error rates. Each of the two verdicts may be wrong in at most 6 % of the studies.


def false_verdicts(values):
    """Numbers of studies whose Student interval over the seeds is above 0, and below 0.

    `values` is [studies, seeds].
    """
    ends = np.array([student(study)[1:] for study in values])
    return (ends[:, 0] > 0).sum(), (ends[:, 1] < 0).sum()


def most_false(n_studies):
    """A rate of 6 % gives more false verdicts than this in 1 % of simulations only."""
    return binom.ppf(0.99, n_studies, 0.06)


@pytest.mark.parametrize("n_seeds", [3, 5])
def test_a_largest_difference_is_not_found_where_there_is_none(n_seeds):
    chance = np.random.default_rng(n_seeds)
    null, real = [], []
    for _ in range(1000):
        costs = chance.standard_normal((n_seeds, 6))
        for kept, moved in ((null, 0.0), (real, np.linspace(0, 12, 6))):
            pairs = pd.DataFrame((costs + moved) @ ALL_PAIRS)
            kept.append(statistics.largest_of_previous_seed(pairs).to_numpy())
    assert max(false_verdicts(null)) <= most_false(1000)
    assert np.mean(null) == pytest.approx(0, abs=0.15)
    assert false_verdicts(real)[0] >= 900


ALL_PAIRS = np.array(
    [np.eye(6)[one] - np.eye(6)[other] for one in range(6) for other in range(one)]
).T


def test_a_largest_difference_needs_three_seeds():
    two = pd.DataFrame([[1.0, 2.0], [1.0, 2.0]])
    assert statistics.largest_of_previous_seed(two).isna().all()


@pytest.mark.parametrize("n_seeds", [3, 5])
def test_a_weakest_method_that_forgets_nothing_is_rarely_said_to_forget(n_seeds):
    """Of six methods, one or all are exactly at the bound: both verdicts are wrong."""
    chance = np.random.default_rng(n_seeds)
    for others in (0.0, 0.5):
        holds = fails = 0
        for _ in range(150):
            share = 0.1 * chance.standard_normal((n_seeds, 6))
            share[:, 1:] += others
            table = pd.concat(
                pd.DataFrame({"name": list("abcdef"), "share": row}).assign(**problem(seed))
                for seed, row in enumerate(share)
            )
            found = statistics.lowest_of_methods(
                lambda rows: rows.set_index("name")["share"], {}, table
            )
            holds += found.lower > 0
            fails += found.upper < 0
        assert max(holds, fails) <= most_false(150)


@pytest.mark.parametrize("n_seeds", [3, 5])
def test_a_method_far_from_full_is_rarely_called_near(n_seeds):
    """One method of six is exactly at the bound: both verdicts are wrong."""
    chance = np.random.default_rng(n_seeds)
    near = far = 0
    for _ in range(200):
        distance = 0.05 * chance.standard_normal((n_seeds, 6))
        distance[:, 0] += 0.1
        table = pd.concat(
            pd.DataFrame({"name": list("abcdef"), "distance": row}).assign(**problem(seed))
            for seed, row in enumerate(distance)
        )
        found = statistics.within_in_every_method(
            lambda rows: rows.set_index("name")["distance"], {}, table
        )
        near += found.upper <= 0.1
        far += found.lower > 0.1
    assert max(near, far) <= most_false(200)


def false_in_studies(statistic, of_problem, n_studies=150, n_seeds=3):
    """`false_verdicts` of studies whose problems have the tables `of_problem(chance)`."""
    chance = np.random.default_rng(13)
    problems = [of_problem(chance).assign(**problem(i)) for i in range(n_studies * n_seeds)]
    values = statistic(pd.concat(problems, ignore_index=True)).to_numpy()
    return false_verdicts(values.reshape(n_studies, n_seeds))


def uniform_shares(chance):
    """All strings have the same true share; methods differ in their noise, strings in their gap."""
    noise = {"a": 0.05, "b": 0.1, "c": 0.2, "retrain": 0.1}
    scale = np.exp(0.5 * chance.standard_normal(9))
    parts = []
    for method, sd in noise.items():
        share = 0.6 + sd * scale * chance.standard_normal(9)
        width = sd * scale * np.exp(0.12 * chance.standard_normal(9))
        parts.append(pd.DataFrame({"method": method, "string_id": range(9), "share": share,
                                   "lower": share - width, "upper": share + width}))  # fmt: skip
    return pd.concat(parts).assign(string_role="forget")


@pytest.mark.slow
def test_noise_is_not_taken_for_uneven_forgetting():
    false = false_in_studies(statistics.unevenness, uniform_shares)
    assert max(false) <= most_false(150)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "hard"),
    [(hardness.hard_for_all, 0.0), (hardness.hard_for_some, 0.0), (hardness.hard_for_some, 1.0)],
)
def test_chance_is_not_taken_for_hardness(statistic, hard):
    """All epsilons share the chance of the retrained models.

    No string is hard, or the same strings are hard for all methods.
    """

    def of_problem(chance):
        return worlds.epsilons_of(chance, hard, 0.0, n_strings=9)

    assert max(false_in_studies(statistic, of_problem)) <= most_false(150)
