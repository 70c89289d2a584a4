"""Every claim on unlearning can be found right, wrong and open; and intervals err rarely enough.

Planted worlds: one in which the paper is always right, two in which it is wrong (because some
claims cannot fail together), and one in which chance is larger than any difference.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from palimpsest.claims import judge_all
from palimpsest.statistics import student
from palimpsest.unlearning import claim_statistics as statistics
from palimpsest.unlearning.attackers import held_out_epsilon
from palimpsest.unlearning.claims import CLAIMS, QUESTIONS
from palimpsest.unlearning.quality import forgetting_quality

PROBLEM = {"model": "m", "language": "L", "size": 48, "seed": 0}
METHODS = ("finetune", "scrub", "kookmin", "sebastian")
RIGHT = {"none": 0.05, "finetune": 0.2, "scrub": 0.3, "kookmin": 0.5, "sebastian": 0.6}
RIGHT["retrain"] = 0.95
REVERSED = {"none": 0.95, "finetune": 0.6, "scrub": 0.5, "kookmin": 0.3, "sebastian": 0.2}
REVERSED["retrain"] = 0.05
SPLITS, REPETITIONS, STRINGS = 10, 5, 24


def scaled(values, factor):
    return {name: factor * value for name, value in values.items()}


def near(share, noise, chance):
    """A share near another share."""
    return np.clip(share + noise * chance.standard_normal(), 0, 1)


def effects(held_out, same, few, noise, seed=0):
    """Forgetting quality of every split; chance is drawn anew for every row."""
    chance = np.random.default_rng(seed)
    cases = {
        ("attacker", "held-out", 16.0): held_out,
        ("attacker", "same", 16.0): same,
        ("n", "held-out", 16.0): held_out,
        ("n", "held-out", 4.0): few,
    }
    return pd.DataFrame(
        {
            **PROBLEM,
            "method": method,
            "effect": effect,
            "attacker": attacker,
            "value": value,
            "repetition": split,
            "forgetting_quality": near(quality, noise, chance),
        }
        for (effect, attacker, value), qualities in cases.items()
        for method, quality in qualities.items()
        for split in range(SPLITS)
    )


def scores(full, cheap, utility, noise):
    chance = np.random.default_rng(1)
    rows = [
        {
            **PROBLEM,
            "method": method,
            "setup": setup,
            "repetition": repetition,
            "forgetting_quality": near(quality, noise, chance),
            "retain_accuracy": near(utility.get(method, 0.98), noise, chance),
            "test_accuracy": 0.8,
        }
        for setup, qualities in (("full", full), ("reuse-n-n", cheap))
        for method, quality in qualities.items()
        for repetition in range(REPETITIONS)
    ]
    frame = pd.DataFrame(rows).assign(retain_accuracy_retrained=1.0, test_accuracy_retrained=0.8)
    return frame.assign(final_score=frame["forgetting_quality"] * frame["retain_accuracy"])


def epsilons(hard, own, noise=1.0, flips=False, opposite=False, n_strings=STRINGS, seed=2):
    """Epsilons that a string's hardness raises: for all methods, for one of them, and by chance.

    With `flips`, a method finds strings easy in one repetition and hard in another. With
    `opposite`, a method finds strings easy that the next method finds hard. `retrain` is only
    chance, the same in every repetition, and shares the chance of the reference with the methods.
    """
    chance = np.random.default_rng(seed)
    for_all, reference = chance.standard_normal((2, n_strings))
    rows = []
    for place, method in enumerate((*METHODS, "retrain")):
        for_one, same = chance.standard_normal((2, n_strings))
        for repetition in range(3):
            sign = (-1) ** (repetition + place // 2) if flips else 1
            sign *= (-1) ** place if opposite else 1
            anew = chance.standard_normal(n_strings)
            value = sign * (hard * for_all + own * for_one) + 0.5 * reference + noise * anew
            if method == "retrain":
                value = 0.5 * reference + noise * same
            rows += [
                {
                    **PROBLEM,
                    "method": method,
                    "setup": "reuse-n-n",
                    "repetition": repetition,
                    "string_id": string,
                    "epsilon": np.exp(value[string] / 3),
                }
                for string in range(n_strings)
            ]
    return pd.DataFrame(rows)


def metrics(gaps, reach):
    return pd.DataFrame(
        {
            **PROBLEM,
            "method": method,
            "metric": metric,
            "estimate": gap,
            "lower": max(gap - reach, 0),
            "upper": gap + reach,
            "n_models": 32,
        }
        for metric in ("accuracy_gap", "mia_gap")
        for method, gap in gaps.items()
    )


@cache
def world(name):
    """The tables by their kinds."""
    if name == "also wrong":
        return {"epsilons": epsilons(2.0, 0.0, 0.3, flips=True)}
    noise = 0.6 if name == "open" else 0.005
    if name == "wrong":
        return {
            "unlearning_effects": effects(REVERSED, scaled(RIGHT, 3), RIGHT, noise),
            "unlearning_scores": scores(REVERSED | {"none": 0, "retrain": 1}, RIGHT, {}, noise),
            "epsilons": epsilons(2.0, 0.0, 0.3, opposite=True),
            "unlearning_metrics": metrics(scaled(RIGHT, 0.3), 0.01),
        }
    return {
        "unlearning_effects": effects(RIGHT, scaled(RIGHT, 0.5), RIGHT, noise),
        "unlearning_scores": scores(RIGHT, RIGHT, {"sebastian": 0.85}, noise),
        "epsilons": epsilons(0.0, 0.0, seed=3) if name == "open" else epsilons(2.5, 1.0),
        "unlearning_metrics": metrics(RIGHT, noise),
    }


@cache
def verdicts(name):
    return judge_all(CLAIMS, world(name)).set_index("claim")


@pytest.mark.parametrize("claim", [claim.claim for claim in CLAIMS])
@pytest.mark.parametrize(("name", "verdict"), [("right", "agrees"), ("open", "cannot tell")])
def test_a_claim_is_found_right_or_open(claim, name, verdict):
    row = verdicts(name).loc[claim]
    assert row["verdict"] == verdict, row.to_dict()
    assert row["interval_over"]
    assert (row["n_seeds"], row["n_models"]) == (1, 1)
    assert row["lower"] - 1e-12 <= row["estimate"] <= row["upper"] + 1e-12


@pytest.mark.parametrize("claim", [claim.claim for claim in CLAIMS])
def test_a_claim_is_found_wrong(claim):
    found = [verdicts(name).loc[claim, "verdict"] for name in ("wrong", "also wrong")]
    assert "disagrees" in found


def test_every_question_has_a_claim():
    assert [*dict.fromkeys(claim.question for claim in CLAIMS)] == list(QUESTIONS)


def test_tables_that_are_not_there_leave_open_rows():
    frame = judge_all(CLAIMS, {})
    assert set(frame["verdict"]) == {"cannot tell"}
    assert not frame["n_seeds"].any()
    without_full = world("right")["unlearning_scores"].query("setup != 'full'")
    frame = judge_all(CLAIMS, {**world("right"), "unlearning_scores": without_full})
    open_rows = frame[frame["verdict"] == "cannot tell"]["claim"]
    assert set(open_rows) == {made.claim for made in CLAIMS if made.reads == "unlearning_scores"}


@pytest.mark.parametrize("names", [(), ("none", "retrain"), ("npo", "rmu"), ("none", "finetune")])
def test_few_methods_are_no_error(names):
    """Claims on pairs of methods need 3 methods, or one of the competition's and one other."""
    few = {
        kind: frame[frame["method"].isin(names)] if names else frame.head(0)
        for kind, frame in world("right").items()
    }
    frame = judge_all(CLAIMS, few)
    assert len(frame) == len(CLAIMS)
    pairs = frame["statistic"].str.contains("pairs of")
    assert set(frame.loc[pairs, "verdict"]) == {"cannot tell"}


def test_one_repetition_and_one_split_give_no_interval():
    one = {
        kind: frame[frame["repetition"] == 0] if "repetition" in frame else frame
        for kind, frame in world("right").items()
    }
    assert set(judge_all(CLAIMS, one)["verdict"]) == {"cannot tell"}


def test_what_is_at_its_floor_cannot_be_told():
    """Every attack succeeds: no quality, and all epsilons at the cap."""
    floor = dict.fromkeys(RIGHT, 0.0)
    given = {
        "unlearning_effects": effects(floor, floor, floor, 0.0),
        "unlearning_scores": scores(floor, floor, {}, 0.0),
        "epsilons": epsilons(2.0, 1.5).assign(epsilon=50.0),
        "unlearning_metrics": metrics(RIGHT, 0.01),
    }
    assert set(judge_all(CLAIMS, given)["verdict"]) == {"cannot tell"}


def test_hardness_that_retraining_shares_is_chance():
    """All epsilons share the reference: methods agree as much with retrain as with each other."""
    found = statistics.hard_for_all(epsilons(0.0, 0.0, noise=0.5, n_strings=40))
    orders = statistics.StringOrders(epsilons(0.0, 0.0, noise=0.5, n_strings=40))
    assert orders.agreement(orders.between)(np.arange(40)) > 0.2
    assert found.lower < 0 < found.upper


def test_agreement_is_goodman_and_kruskals_gamma():
    """Two methods and two repetitions, by hand: across repetitions, without ties."""
    epsilon = {("a", 0): [1, 2, 3], ("a", 1): [1, 3, 2], ("b", 0): [3, 2, 1], ("b", 1): [1, 1, 2]}
    rows = [
        {"method": m, "repetition": r, "string_id": s, "epsilon": e, "setup": "full"}
        for (m, r), values in epsilon.items()
        for s, e in enumerate(values)
    ]
    orders = statistics.StringOrders(pd.DataFrame(rows))
    # a0 with b1: + + of two untied pairs; a1 with b0: - - and + of three
    assert orders.agreement(orders.between)(np.arange(3)) == pytest.approx((2 - 1) / 5)
    # a0 with a1 and the other way round: + + -
    assert orders.agreement([(0, 0)])(np.arange(3)) == pytest.approx(1 / 3)


def test_several_models_are_averaged_end_by_end():
    table = world("right")["unlearning_effects"]
    other = table.assign(model="n", forgetting_quality=table["forgetting_quality"] / 2)
    both = judge_all(CLAIMS[:2], {"unlearning_effects": pd.concat([table, other])})
    alone = judge_all(CLAIMS[:2], {"unlearning_effects": table})
    assert both["n_models"].tolist() == both["n_models_hold"].tolist() == [2, 2]
    for column in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(both[column], 0.75 * alone[column])


def test_pairs_that_are_all_certain_are_a_verdict():
    """Such an interval has no width, but it is not a tie; and no interval here is over seeds."""
    frame = verdicts("right")
    pairs = frame["statistic"].str.contains("pairs of")
    certain = frame[frame["lower"] == frame["upper"]]
    assert not certain.empty
    assert certain["statistic"].str.contains("pairs of").all()
    assert set(certain["note"]) == {"every case is certain, one by one"}
    assert set(frame.loc[pairs, "verdict"]) == {"agrees"}
    assert frame[["p_value", "p_holm", "seeds_needed"]].isna().all(axis=None)


def splits_of(chance, names, n_models=32, n_strings=9):
    """The table of effects of real attackers on models that are all retrained ones."""
    n = n_models // 2
    shared, own = np.sqrt([0.3, 0.7])

    def models():
        noise = chance.standard_normal
        return shared * noise((n_models, 1)) + own * noise((n_models, n_strings))

    reference, unlearned = models(), {name: models() for name in names}
    rows = []
    for split in range(SPLITS):
        order = chance.permutation(n_models)
        fit, judge = order[:n], order[n:]
        for name, values in unlearned.items():
            found = held_out_epsilon(values[fit], reference[fit], values[judge], reference[judge])
            quality = forgetting_quality(found, n)
            rows.append({"method": name, "repetition": split, "forgetting_quality": quality})
    return pd.DataFrame(rows).assign(
        **PROBLEM, effect="attacker", attacker="held-out", value=float(n)
    )


@pytest.mark.slow
def test_a_placebo_is_rarely_told_from_retraining():
    """Retrained models stand in for a method's: 5 % false verdicts at most, Student's has more."""
    chance = np.random.default_rng(0)
    wrong = wrong_student = 0
    for _ in range(60):
        table = splits_of(chance, ("npo", "retrain"))
        found = statistics.short_of_retraining(table)
        wrong += found.lower > 0 or found.upper < 0
        quality = statistics.qualities(table)
        plain = student(quality["retrain"] - quality["npo"])
        wrong_student += plain.lower > 0 or plain.upper < 0
    assert wrong <= 6
    assert wrong_student >= 10


@pytest.mark.slow
def test_the_share_of_pairs_is_within_its_interval():
    """Simulated studies with the noise of a split, and with known true orders of the methods."""
    chance = np.random.default_rng(1)
    true, other = np.array([0.1, 0.12, 0.3, 0.5, 0.52]), np.array([0.1, 0.3, 0.12, 0.5, 0.3])
    names = [f"m{i}" for i in range(len(true))]
    pairs = statistics.pairs_of(names)
    orders = [np.sign([v[names.index(a)] - v[names.index(b)] for a, b in pairs])
              for v in (true, other)]  # fmt: skip
    expected = (1 + orders[0] * orders[1]).mean() / 2
    missed, width = 0, []
    for _ in range(100):
        one, two = (
            pd.DataFrame(
                v + 0.04 * (chance.standard_normal(5) + chance.standard_normal((SPLITS, 5))),
                columns=names,
            )
            for v in (true, other)
        )
        found = statistics.order_alike(one, two, statistics.of_splits, statistics.of_splits)
        missed += not found.lower <= expected <= found.upper
        width.append(found.upper - found.lower)
    assert missed <= 5
    assert np.mean(width) < 0.95


@pytest.mark.parametrize("statistic", [statistics.hard_for_all, statistics.hard_for_some])
def test_chance_alone_rarely_makes_strings_hard(statistic):
    """No string is hard: the claim is rarely found right, over forget strings drawn anew."""
    found = [statistic(epsilons(0.0, 0.0, n_strings=9, seed=seed)) for seed in range(60)]
    assert np.mean([of.lower > 0 for of in found]) <= 0.05


def test_one_hardness_for_all_is_not_taken_for_differences():
    found = [
        statistics.hard_for_some(epsilons(1.0, 0.0, n_strings=9, seed=seed)) for seed in range(60)
    ]
    assert np.mean([of.lower > 0 for of in found]) <= 0.05
