"""Every claim on memorisation can be found right, wrong and open; and the statistics are right.

The planted studies are in `helpers.memorisation_worlds`.
"""

from functools import cache
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest

from helpers.memorisation_worlds import (
    MODELS,
    SEEDS,
    STUDIES,
    WORLDS,
    agreement,
    approximation,
    leave_one_out,
)
from palimpsest import tables
from palimpsest.claims import SEEDS as OVER_SEEDS
from palimpsest.claims import Estimate, each_language, judge, judge_all
from palimpsest.memorisation import claim_statistics as statistics
from palimpsest.memorisation import training_set_statistics as sets
from palimpsest.memorisation.claims import CLAIMS, QUESTIONS
from palimpsest.sections import KINDS
from palimpsest.statistics import DECIMALS, chance_of_equal_orders, student


def claims(studies, agreement=None, approximation=None, leave_one_out=None):
    cheap = {"agreement": agreement, "approximation": approximation}
    return judge_all(CLAIMS, {**studies, **cheap, "leave_one_out": leave_one_out})


@cache
def planted(world):
    studies = {name: study(world) for name, study in STUDIES.items()}
    return studies, agreement(world), approximation(world), leave_one_out(world)


@cache
def verdicts(world):
    return claims(*planted(world))


def key(claim):
    return f"{claim.question}: {claim.claim}"


def found(frame, claim):
    rows = frame[(frame["question"] == claim.question) & (frame["claim"] == claim.claim)]
    return set(rows["verdict"])


@pytest.mark.parametrize("claim", CLAIMS, ids=key)
def test_a_claim_agrees_where_it_holds(claim):
    assert found(verdicts("paper"), claim) == {"agrees"}


TESTED = [claim for claim in CLAIMS if not claim.by_construction]


@pytest.mark.parametrize("claim", TESTED, ids=key)
def test_a_claim_disagrees_where_it_does_not(claim):
    assert any("disagrees" in found(verdicts(world), claim) for world in WORLDS[1:])


@cache
def torn():
    """Three seeds as in the paper, and two as in a world where it is wrong."""

    def mix(paper, wrong):
        return pd.concat([paper[paper["seed"] < 3], wrong[wrong["seed"] >= 3]])

    made = []
    for world in WORLDS[1:]:
        (studies, *cheap), (other_studies, *other_cheap) = planted("paper"), planted(world)
        mixed = {name: mix(studies[name], other_studies[name]) for name in studies}
        made.append(claims(mixed, *map(mix, cheap, other_cheap)))
    return made


@pytest.mark.parametrize("claim", TESTED, ids=key)
def test_a_claim_is_open_where_the_seeds_are_torn(claim):
    assert any("cannot tell" in found(frame, claim) for frame in torn())


def test_the_table_is_of_its_kind(tmp_path):
    tables.write(tmp_path / "claims.parquet", verdicts("paper"), KINDS["claims"])
    again = tables.read(tmp_path / "claims.parquet", KINDS["claims"])
    assert set(again["question"]) == {
        *("RQ1", "RQ2", "RQ3", "RQ4", "RQ5", "RQ8", "RQ9", "approximation", "bayes")
    }
    assert set(again["question"]) <= set(QUESTIONS)
    assert (again["n_seeds"] == len(SEEDS)).all()
    assert set(again["interval_over"]) == {"seeds", statistics.SEEDS_OF_MODELS}


def test_one_row_per_claim_and_language():
    frame = verdicts("paper")
    assert not frame.duplicated(["question", "claim", "language"]).any()
    comparisons = {
        claim.claim for claim in CLAIMS if claim.cases is statistics.low_and_high_entropy
    }
    assert set(frame.loc[frame["claim"].isin(comparisons), "language"]) == {"low - high"}


IN_EXCESS = [
    claim
    for claim in CLAIMS
    if "minus" in claim.statistic
    and "strings never trained on" in claim.statistic
    and claim.reads in ("tradeoff", "deduplication")
]


def without_excess(more):
    """The paper's world, but untrained strings are memorised as well, and `more` of them."""
    chance, studies = np.random.default_rng(0), planted("paper")[0]
    changed = {name: studies[name].copy() for name in ("tradeoff", "deduplication")}
    for frame in changed.values():
        noise = more + 0.01 * chance.standard_normal(len(frame))
        for trained, unseen in (
            ("below_distinct", "below_unseen"),
            ("depth_distinct", "depth_unseen"),
            ("below_covered", "below_unseen_covered"),
        ):
            if trained in frame:
                frame[unseen] = (frame[trained] + noise).clip(0, 1)
    return claims(changed)


def test_what_holds_of_strings_never_trained_on_is_no_memorisation():
    assert len(IN_EXCESS) == 6
    none, less = without_excess(0.0), without_excess(0.1)
    for claim in IN_EXCESS:
        assert "agrees" not in found(none, claim), claim.claim
        assert (none.loc[none["claim"] == claim.claim, "estimate"].abs() < 0.02).all()
        assert found(less, claim) == {"disagrees"}, claim.claim


def test_without_strings_never_trained_on_the_excess_is_open():
    studies = planted("paper")[0]
    unseen = ("below_unseen", "depth_unseen", "below_unseen_covered")
    none = {name: frame.assign(**dict.fromkeys(unseen, np.nan)) for name, frame in studies.items()}
    frame = claims(none)
    for claim in IN_EXCESS:
        assert found(frame, claim) == {"cannot tell"}, claim.claim


def test_the_excess_before_optimal_learning_is_at_the_measurement_before():
    frame = pd.DataFrame(
        {
            "model": "m",
            "size": 64,
            "variant": "dedup",
            "seed": 0,
            "measure": "contextual",
            "epoch": [0, 2, 4, 6],
            "optimal_epoch": 4,
            "below_distinct": [0.0, 0.3, 0.6, 0.9],
            "below_unseen": [0.0, 0.1, 0.2, 0.3],
        }
    )
    np.testing.assert_allclose(sets.excess_before_optimum(frame, "contextual"), [0.2])
    np.testing.assert_allclose(sets.excess_at_optimum(frame, "below", "contextual"), [0.4])
    untrained = frame.assign(optimal_epoch=0)
    assert sets.excess_before_optimum(untrained, "contextual").empty


def test_what_the_definitions_decide_is_marked():
    decided = {claim.claim for claim in CLAIMS if claim.by_construction}
    told = {claim.claim for claim in CLAIMS if "by construction" in claim.statistic}
    assert decided == told
    assert len(decided) == 6
    frame = verdicts("paper")
    marked = frame["by_construction"].astype(bool)
    assert set(frame.loc[marked, "claim"]) == decided
    assert set(frame.loc[marked, "verdict"]) == {"agrees"}
    assert frame.loc[marked, "p_value"].isna().all()
    # Only a study that broke the definitions, or that starts at the first crossing, is tested.
    frame = verdicts("wrong")
    assert not (frame["by_construction"] & (frame["verdict"] == "disagrees")).any()


@pytest.mark.parametrize("claim", TESTED, ids=key)
def test_a_claim_can_hold_and_can_fail(claim):
    """Neither the region nor the rest of the range is a single value, or empty."""
    (low, high, _), (least, most) = claim.region, claim.limits
    assert min(high, most) - max(low, least) > 0.01
    assert low - least > 0.01 or most - high > 0.01


def test_random_orders_of_three_targets_that_are_alike_are_no_verdict():
    """Three equal values of D come up in 8.3 % of cases; no other three values are a verdict."""
    (claim,) = [
        claim
        for claim in CLAIMS
        if claim.claim == "The more frequent a string, the earlier it is memorised by recollection."
    ]
    rows = verdicts("paper").set_index("claim")["note"]
    assert rows[claim.claim] == (
        "if the 3 targets came in random order, the 5 seeds would give the same value in "
        f"{100 * chance_of_equal_orders(3, 5, len(MODELS)):.2g} % of cases"
    )
    one = planted("paper")[0]["disagreement"].query("model == 'm5' and seed < 3")
    note = claims({"disagreement": one}).set_index("claim")["note"][claim.claim]
    assert note.endswith("the 3 seeds would give the same value in 8.3 % of cases")
    values = [statistics.rank_association([3, 2, 1], -np.array(p)) for p in permutations(range(3))]
    studies = list(product(values, repeat=3))
    alike = [study for study in studies if len(set(study)) == 1]
    assert len(alike) / len(studies) == pytest.approx(0.083, abs=0.0005)
    assert 0 not in values
    told = {
        judge(Estimate(study, *student(study, DECIMALS), OVER_SEEDS), claim)["verdict"]
        for study in set(studies)
    }
    assert told == {"cannot tell"}


def test_models_in_which_a_claim_holds_are_counted():
    """In the torn world, some models are as in the paper, and the others as where it is wrong."""
    study = planted("paper")[0]["frequency"]
    other = planted("wrong")[0]["frequency"]
    mixed = [study[study["model"].isin(MODELS[:2])], other[other["model"].isin(MODELS[2:])]]
    rows = claims({"frequency": pd.concat(mixed)}).set_index("claim")
    name = "By recollection, frequent strings are memorised more than infrequent ones."
    assert (rows.loc[name, "n_models_hold"], rows.loc[name, "n_models"]) == (2, len(MODELS))


def of_models(values):
    """A table with one number per model and seed, from float[models, seeds]."""
    n_models, n_seeds = np.shape(values)
    return pd.DataFrame(
        {
            "model": np.repeat([f"m{number}" for number in range(n_models)], n_seeds),
            "size": 64,
            "seed": np.tile(np.arange(n_seeds), n_models),
            "x": np.ravel(values),
        }
    )


def lowest(values):
    """The estimate for the lowest of the models."""
    return statistics.in_lowest_model(lambda table: table.set_index(statistics.UNIT)["x"])(
        of_models(values)
    )


def test_the_lowest_model_has_its_own_interval():
    """One model is below 0 although the mean over the models is far above."""
    values = [[0.5, 0.6, 0.7], [-0.1, -0.2, -0.3], [0.6, 0.6, 0.9]]
    found = lowest(values)
    assert found.values == pytest.approx((-0.1, -0.2, -0.3))
    assert found.mean == pytest.approx(-0.2)
    assert found.lower == pytest.approx(student(values[1]).lower)
    assert found.upper == pytest.approx(student(values[1], confidence=1 - 0.05 / 3).upper)
    # A model that varies much can reach lower than the model with the lowest mean.
    assert lowest([*values, [-0.9, 0.1, 1.0]]).lower == pytest.approx(
        student([-0.9, 0.1, 1.0]).lower
    )
    assert found.models == pytest.approx({"m0": 0.6, "m1": -0.2, "m2": 0.7})
    for no_interval in ([[0.1], [0.2]], [[0.1, 0.2], [0.3, 0.3]]):
        assert np.isnan([lowest(no_interval).lower, lowest(no_interval).upper]).all()


@pytest.mark.parametrize("others", [0.0, 3.0])
def test_the_interval_of_the_lowest_model_is_rarely_wrong(others):
    """The lowest mean is 0; the seeds share half of their variance over the models."""
    chance, n_studies = np.random.default_rng(0), 400
    wrong = {"above": 0, "below": 0}
    for _ in range(n_studies):
        noise = chance.standard_normal((4, 5)) + chance.standard_normal(5)
        found = lowest(noise + np.array([0.0, others, others, others])[:, None])
        wrong["above"] += found.lower > 0
        wrong["below"] += found.upper < 0
    # 2.5 % on each side, and three standard errors of the simulation.
    assert max(wrong.values()) <= 0.05 * n_studies, wrong


def test_claims_on_stand_ins_say_how_many_strings_have_them():
    """The lowest coverage of the measure and of the variants that the claim uses."""
    studies = planted("paper")[0]
    study = studies["deduplication"].assign(coverage=1.0)
    by_contextual = study["measure"] == "contextual"
    for variant, coverage in (("base", 0.7), ("dedup", 0.9), ("dedup-matched", 0.8)):
        study.loc[by_contextual & (study["variant"] == variant), "coverage"] = coverage
    study.loc[by_contextual & (study["seed"] == 1), "coverage"] -= 0.1
    rows = claims({**studies, "deduplication": study}).set_index("claim")["coverage"]
    assert rows[
        "Deduplication delays contextual memorisation, counted in epochs."
    ] == pytest.approx(0.6)
    name = "Under deduplication contextual memorisation starts before optimal learning."
    assert rows[name] == pytest.approx(0.8)
    assert np.isnan(rows["Deduplication delays memorisation by recollection, counted in epochs."])
    assert np.isnan(rows["Deduplication delays learning, counted in epochs."])
    # A claim on all measures rests on the measure that covers least.
    name = "Some strings are memorised before optimal learning whichever measure is applied."
    assert set(rows[name]) == {0.9}


def test_rows_with_runs_that_may_still_be_learning_are_marked():
    """Seed 2 of one of the six models; the study of deduplication has none."""
    rows = verdicts("paper").set_index("claim")
    name = "Memorisation is unavoidable when a language is learned optimally."
    assert set(rows.loc[name, "note"]) == {"1 of 30 runs may still be learning"}
    assert set(rows.loc[name, "verdict"]) == {"agrees"}
    # A pair of languages has the runs of both.
    name = (
        "The band of contextual starts is narrow for the high-entropy language and broad for the "
        "low-entropy one."
    )
    assert rows.loc[name, "note"] == "2 of 60 runs may still be learning"
    study = planted("paper")[0]["deduplication"]
    marked = study.assign(still_learning=study["variant"].eq("base") & study["seed"].eq(0))
    rows = claims({"deduplication": marked}).set_index("claim")["note"]
    assert (
        rows["Deduplication delays learning, counted in epochs."]
        == "6 of 60 runs may still be learning"
    )
    assert rows["Deduplication cannot avoid memorisation completely at optimal learning."] == ""


def test_the_lowest_excess_is_on_the_same_strings():
    """On the strings with stand-ins recollection is lower than over all strings."""
    frame = pd.DataFrame(
        {
            "model": "m",
            "size": 64,
            "seed": 0,
            "measure": ["recollection", "counterfactual", "contextual"],
            "epoch": 4,
            "optimal_epoch": 4,
            "below_distinct": [0.9, 0.8, 0.7],
            "below_unseen": [0.1, 0.1, 0.1],
            "below_covered": [0.5, 0.8, 0.7],
            "below_unseen_covered": [0.2, 0.1, 0.1],
        }
    )
    np.testing.assert_allclose(sets.least_excess_at_optimum(frame), [0.3])
    unknown = frame.assign(below_covered=[0.5, np.nan, 0.7])
    assert sets.least_excess_at_optimum(unknown).isna().all()


def test_the_other_number_is_in_the_note():
    """The paper's where false alarms are taken out, and that of unseen strings where not."""
    notes = verdicts("paper").set_index("claim")["note"]
    name = "A larger training set does not increase contextual memorisation of repeated strings."
    assert "as the paper counts, with false alarms: -0.0" in notes[name]
    name = "A larger training set increases recollection-based memorisation of repeated strings."
    assert notes[name] == "the same of strings never trained on: 0"
    name = "By recollection, frequent strings are memorised more than infrequent ones."
    assert notes[name] == "the same of unseen strings as probable: 0.35"
    name = (
        "By recollection no strings of the high-entropy language are memorised at optimal learning."
    )
    assert "the same of strings never trained on: 0.01" in notes[name]
    name = (
        "Almost all strings of the high-entropy language are contextually memorised at optimal "
        "learning, beyond false alarms."
    )
    assert "below the threshold: 0.95; of strings never trained on: 0.0091" in notes[name]


def test_what_unseen_strings_show_as_well_is_no_memorisation():
    """Frequency, training size and model size: the unseen strings change as the others do."""
    studies = planted("wrong")[0]
    frequency, sizes, models = (
        studies[name].copy() for name in ("frequency", "training_size", "model_size")
    )
    chance = np.random.default_rng(0)
    for frame in (frequency, sizes, models):
        for trained, unseen in (
            ("below_matched", "below_unseen_matched"),
            ("depth_matched", "depth_unseen_matched"),
            ("depth_distinct", "depth_unseen"),
            ("depth_repeated", "depth_repeated_unseen"),
        ):
            if trained in frame:
                frame[unseen] = frame[trained] + 0.01 * chance.standard_normal(len(frame))
    frame = claims({"frequency": frequency, "training_size": sizes, "model_size": models})
    before = verdicts("wrong")
    for name in (
        "Frequent and infrequent strings are almost equally susceptible to contextual "
        "memorisation.",
        "Frequent strings are, if anything, contextually memorised less.",
        "A larger training set does not increase contextual memorisation of repeated strings.",
        "A larger training set does not increase counterfactual memorisation of the training "
        "strings.",
        "Models of other sizes that learn better show less contextual memorisation.",
    ):
        (then,), (now,) = (
            before[before["claim"] == name].itertuples(),
            frame[frame["claim"] == name].itertuples(),
        )
        assert then.verdict == "disagrees", name
        assert abs(now.estimate) < abs(then.estimate) / 2, name
        assert now.verdict != "disagrees", name


def test_a_band_that_the_end_of_training_cuts_decides_nothing():
    """One band of one model in one language or variant is cut."""
    studies = planted("paper")[0]
    changed = {name: studies[name].copy() for name in ("tradeoff", "deduplication")}
    for frame, cut in (
        (changed["tradeoff"], changed["tradeoff"]["language"] == "low"),
        (changed["deduplication"], changed["deduplication"]["variant"] == "dedup"),
    ):
        frame.loc[cut & (frame["model"] == "m2") & (frame["seed"] == 3), "start_p90"] = 11.0
    frame = claims(changed)
    on_bands = frame[frame["statistic"].str.contains("width of the|epochs in the|cuts a band")]
    assert len(on_bands) == 9
    assert set(on_bands["verdict"]) == {"cannot tell"}
    for note in on_bands["note"]:
        assert note.startswith("no interval: the statistic is undefined in some cases")
        assert note.endswith("undefined in 1 of 30 cases, which are left out")
    before = verdicts("paper")
    assert set(before.loc[before["claim"].isin(on_bands["claim"]), "verdict"]) == {"agrees"}


def test_cases_that_are_left_out_are_counted():
    studies = planted("paper")[0]["deduplication"].copy()
    studies.loc[(studies["model"] == "m0") & (studies["seed"] < 2), "test_spread"] = np.nan
    row = (
        claims({"deduplication": studies})
        .set_index("claim")
        .loc["Deduplication does not lead to an equal learning of test strings."]
    )
    assert (row["verdict"], row["n_seeds"]) == ("agrees", len(SEEDS))
    assert row["note"] == "undefined in 2 of 30 cases, which are left out"


def test_studies_that_were_not_run_leave_open_rows(tmp_path):
    frame = claims({})
    tables.write(tmp_path / "claims.parquet", frame, KINDS["claims"])
    assert len(frame) == len(CLAIMS)
    assert set(frame["verdict"]) == {"cannot tell"}
    assert set(frame["language"]) == {""}
    assert not frame[["n_seeds", "n_models"]].any(axis=None)


OVER_STRINGS = [
    claim
    for claim in CLAIMS
    if claim.reads == "approximation" and "the ceiling)" not in claim.statistic
]


def of_one_seed(world):
    """All claims on the runs of seed 0; and which claims use a model retrained for each string."""
    studies, *cheap = planted(world)
    one = {name: frame[frame["seed"] == 0] for name, frame in studies.items()}
    frame = claims(one, *(table[table["seed"] == 0] for table in cheap))
    return frame, frame["claim"].isin([claim.claim for claim in OVER_STRINGS])


def test_one_seed_never_tells_unless_every_string_was_retrained():
    frame, over_strings = of_one_seed("paper")
    assert set(frame.loc[~over_strings, "verdict"]) == {"cannot tell"}
    assert set(frame.loc[~over_strings, "interval_over"]) == {""}
    assert frame.loc[~over_strings, ["lower", "upper"]].isna().all(axis=None)
    assert (frame["n_seeds"] == 1).all()
    assert frame["estimate"].notna().all()


def test_one_seed_with_every_string_retrained_is_judged_over_the_strings():
    assert len(OVER_STRINGS) == 9
    for world, verdict in (("paper", "agrees"), ("wrong", "disagrees")):
        frame, over_strings = of_one_seed(world)
        judged = frame[over_strings]
        assert set(judged["verdict"]) == {verdict}
        assert set(judged["interval_over"]) == {"training strings"}
        np.testing.assert_allclose(judged["upper"] - judged["lower"], 0.01)
        assert judged["p_value"].isna().all()
    # Of several seeds it is the spread of these that counts.
    name = (
        "The same-frequency threshold is the threshold of exact contextual memorisation, over the "
        "training strings left out."
    )
    row = verdicts("paper").set_index("claim").loc[name]
    table = planted("paper")[2].query(
        "measure == 'contextual' and quantity == 'threshold' and group == 'all' "
        "and evidence == 'same-frequency' and statistic == 'mean_absolute_error'"
    )
    expected = student(table.groupby("seed")["value"].mean())
    assert (row["lower"], row["upper"]) == pytest.approx(expected[1:])


def test_an_undefined_correlation_cannot_tell():
    table = approximation("paper")
    undefined = table["statistic"] == "correlation"
    table.loc[undefined, ["value", "lower", "upper"]] = np.nan
    frame = claims({}, None, table[table["seed"] == 0])
    ranks = frame[frame["claim"].str.contains("ranks") & (frame["language"] == "L")]
    assert len(ranks) == 10
    assert set(ranks["verdict"]) == {"cannot tell"}
    assert (ranks["n_seeds"] == 0).all()


def test_one_language_has_no_higher_or_lower_entropy():
    one = planted("paper")[0]["tradeoff"].query("language == 'high'")
    frame = claims({"tradeoff": one}).set_index("claim")
    compared = [claim.claim for claim in CLAIMS if claim.cases is not each_language]
    assert set(frame.loc[compared, "verdict"]) == {"cannot tell"}
    assert (frame.loc[compared, "n_seeds"] == 0).all()


def test_missing_variants_and_measures_leave_open_rows():
    study = planted("paper")[0]["deduplication"]
    frame = claims({"deduplication": study[study["variant"] == "base"]})
    assert set(frame["verdict"]) == {"cannot tell"}
    target = planted("paper")[0]["disagreement"]
    frame = claims({"disagreement": target[target["measure"] == "recollection"]})
    assert "agrees" in set(frame["verdict"])


def test_rows_of_the_mean_over_seeds_are_not_a_seed():
    study = planted("paper")[0]["disagreement"]
    mean = study[study["seed"] == 0].assign(seed=np.nan)
    frame = claims({"disagreement": pd.concat([study, mean])})
    assert set(frame["n_seeds"]) == {0, len(SEEDS)}


def test_models_are_averaged_within_a_seed():
    study = planted("paper")[0]["frequency"]
    other = study.assign(model="other " + study["model"], fraction_distinct=0.0)
    rows = claims({"frequency": pd.concat([study, other])}).set_index("claim")
    alone = claims({"frequency": study}).set_index("claim")
    name = "By recollection, frequent strings are memorised more than infrequent ones."
    assert (rows.loc[name, "n_models"], rows.loc[name, "n_models_hold"]) == (12, 6)
    assert rows.loc[name, "estimate"] == pytest.approx(alone.loc[name, "estimate"] / 2)


def test_slower_training_is_at_equal_weights_and_equal_steps():
    """The losses are 1 - 0.01 t and 1 - 0.005 t after t trained strings; dedup has half of them."""
    base, dedup = (
        pd.DataFrame(
            {
                "model": "m",
                "size": 64,
                "seed": 0,
                "variant": name,
                "measure": "contextual",
                "epoch": [0, 1, 2, 3, 4],
                "n_train": n,
                "train_loss_distinct": 1 - rate * n * np.arange(5),
            }
        )
        for name, n, rate in (("base", 10, 0.01), ("dedup", 5, 0.005))
    )
    # Dedup reaches 20 trained strings: the differences after 0, 10 and 20 are 0, 0.05 and 0.1.
    found = sets.slower_training(pd.concat([base, dedup]))
    np.testing.assert_allclose(found, [0.05])
    assert found.index.names == statistics.UNIT
    assert sets.slower_training(base).isna().all()


def test_a_saturated_score_does_not_count_as_falling():
    """The score rises to 0.9 and then trembles: some of its steps fall."""
    trembling = [0.5, 0.6, 0.7, 0.8, 0.9, 0.91, 0.905, 0.912, 0.907, 0.913]
    frame = pd.DataFrame(
        {
            "model": "m",
            "size": 64,
            "seed": 0,
            "role": "s0",
            "measure": "contextual",
            "evidence": "retraining",
            "epoch": np.arange(10),
            "start": 2.0,
            "score": trembling,
        }
    )
    (found,) = statistics.score_increases(frame, "contextual")
    assert found > 0.7
    (falling,) = statistics.score_increases(frame.assign(score=trembling[::-1]), "contextual")
    assert falling < -0.7
    (flat,) = statistics.score_increases(frame.assign(score=0.9), "contextual")
    assert flat == 0
    assert statistics.score_increases(frame.assign(start=np.nan), "contextual").empty


def test_languages_are_compared_in_pairs():
    """A pair is a language and its counterpart; languages without a partner are left out."""
    study = pd.DataFrame(
        {
            "language": ["L2", "L2", "L1", "L3", "L4", "L6"],
            "counterpart": pd.array(["L1", "L1", None, None, "L3", "L9"], dtype="string"),
            "model": ["m", "n", "m", "m", "m", "m"],
        }
    )
    cases = {
        select: [(case.language, case.n_models) for case in select(study)]
        for select in (
            statistics.low_and_high_entropy,
            statistics.low_entropy,
            statistics.high_entropy,
        )
    }
    assert cases[statistics.low_and_high_entropy] == [("L2 - L1", 1), ("L4 - L3", 1)]
    assert cases[statistics.low_entropy] == [("L2", 2), ("L4", 1)]
    assert cases[statistics.high_entropy] == [("L1", 1), ("L3", 1)]
