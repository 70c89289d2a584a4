"""Every claim on memorisation can be found right, wrong and open; and the statistics are right.

The planted studies are in `helpers.memorisation_worlds`.
"""

from collections import Counter
from functools import cache
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest

from helpers.memorisation_verdicts import claims, found, planted, verdicts
from helpers.memorisation_worlds import (
    SEEDS,
    WORLDS,
    approximation,
)
from palimpsest import tables
from palimpsest.claims import each_language, judge
from palimpsest.estimates import SEEDS as OVER_SEEDS
from palimpsest.estimates import Estimate
from palimpsest.memorisation.claims import CLAIMS, QUESTIONS
from palimpsest.memorisation.claims import claim_statistics as statistics
from palimpsest.memorisation.claims.rows import STRONGER
from palimpsest.memorisation.claims.target_statistics import score_increases
from palimpsest.sections import KINDS
from palimpsest.statistics import DECIMALS, order_p_value, rank_association, student


def key(claim):
    return f"{claim.question}: {claim.claim}"


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
        *("RQ1", "RQ2", "RQ3", "RQ4", "RQ5", "RQ8", "RQ9", "adapters", "approximation", "bayes")
    }
    assert set(again["question"]) <= set(QUESTIONS)
    assert (again["n_seeds"] == len(SEEDS)).all()
    assert set(again["interval_over"]) == {"seeds", statistics.SEEDS_OF_MODELS}


def test_one_row_per_claim_and_language():
    frame = verdicts("paper")
    assert not frame.duplicated(["question", "claim", "language"]).any()
    comparisons = {
        claim.claim for claim in CLAIMS if claim.statistic.cases is statistics.low_and_high_entropy
    }
    assert set(frame.loc[frame["claim"].isin(comparisons), "language"]) == {"low - high"}


def test_what_the_definitions_decide_is_marked():
    decided = {claim.claim for claim in CLAIMS if claim.by_construction}
    told = {claim.claim for claim in CLAIMS if "by construction" in claim.statistic.words}
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
    (low, high, _), (least, most) = claim.region, claim.statistic.limits
    assert min(high, most) - max(low, least) > 0.01
    assert low - least > 0.01 or most - high > 0.01


def test_one_order_of_three_targets_in_three_seeds_is_a_verdict():
    """Random orders are all the expected one in (1/6)³ of cases; other values that tie are none."""
    sentence = "The more frequent a string, the earlier it is memorised by recollection."
    one = planted("paper")[0]["disagreement"].query("model == 'm5' and seed < 3")
    row = claims({"disagreement": one}).set_index("claim").loc[sentence]
    assert (row["estimate"], row["verdict"]) == (1, "agrees")
    assert row["p_value"] == pytest.approx(2 / 6**3)
    assert row["note"].startswith("all seeds give the same value: the exact test of orders")
    two = claims({"disagreement": one.query("seed < 2")}).set_index("claim").loc[sentence]
    assert two["verdict"] == "cannot tell"


def test_random_orders_of_three_targets_are_hardly_ever_a_verdict():
    """All studies of three seeds; three targets in random order."""
    (claim,) = [
        claim
        for claim in CLAIMS
        if claim.claim == "The more frequent a string, the earlier it is memorised by recollection."
    ]
    x, orders = [3, 2, 1], list(permutations(range(3)))
    found = Counter()
    for study in product(orders, repeat=3):
        values = [rank_association(x, -np.array(order)) for order in study]
        p_value = order_p_value([x] * 3, [-np.array(order) for order in study])
        estimate = Estimate(tuple(values), *student(values, DECIMALS), OVER_SEEDS)
        found[judge(estimate._replace(p_of_chance=p_value), claim)["verdict"]] += 1
    assert found == {"cannot tell": 6**3 - 2, "agrees": 1, "disagrees": 1}


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
    if claim.statistic.reads == "approximation" and "the ceiling)" not in claim.statistic.words
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
    assert len(OVER_STRINGS) == 3
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
        "and evidence == 'same-frequency' and statistic == 'mean_relative_error'"
    )
    expected = student(table.groupby("seed")["value"].mean())
    assert (row["lower"], row["upper"]) == pytest.approx(expected[1:])


def test_an_undefined_correlation_cannot_tell():
    table = approximation("paper")
    undefined = table["statistic"] == "correlation"
    table.loc[undefined, ["value", "lower", "upper"]] = np.nan
    frame = claims({}, None, table[table["seed"] == 0])
    ranks = frame[frame["claim"].str.contains("ranks")]
    assert len(ranks) == 6
    assert set(ranks["language"]) == {""}  # there is no language on which it can be tested
    assert set(ranks["verdict"]) == {"cannot tell"}
    assert (ranks["n_seeds"] == 0).all()


def test_one_language_has_no_higher_or_lower_entropy():
    one = planted("paper")[0]["tradeoff"].query("language == 'high'")
    frame = claims({"tradeoff": one}).set_index("claim")
    compared = [claim.claim for claim in CLAIMS if claim.statistic.cases is not each_language]
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
    other = study.assign(model="other " + study["model"], share_memorised_distinct=0.0)
    rows = claims({"frequency": pd.concat([study, other])}).set_index("claim")
    alone = claims({"frequency": study}).set_index("claim")
    name = "By recollection, frequent strings are memorised more than infrequent ones."
    assert (rows.loc[name, "n_models"], rows.loc[name, "n_models_hold"]) == (12, 6)
    assert rows.loc[name, "estimate"] == pytest.approx(alone.loc[name, "estimate"] / 2)


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
    (found,) = score_increases(frame, "contextual")
    assert found > 0.7
    (falling,) = score_increases(frame.assign(score=trembling[::-1]), "contextual")
    assert falling < -0.7
    (flat,) = score_increases(frame.assign(score=0.9), "contextual")
    assert flat == 0
    assert score_increases(frame.assign(start=np.nan), "contextual").empty


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
        name: [(case.language, case.n_models) for case in found]
        for name, found in (
            ("both", statistics.low_and_high_entropy(study)),
            ("low", statistics.of_entropy(study, "low")),
            ("high", statistics.of_entropy(study, "high")),
        )
    }
    assert cases["both"] == [("L2 - L1", 1), ("L4 - L3", 1)]
    assert cases["low"] == [("L2", 2), ("L4", 1)]
    assert cases["high"] == [("L1", 1), ("L3", 1)]


BY_RETRAINING = " (by retraining)"  # in the words of each claim by retraining


def test_retraining_follows_what_it_is_stronger_than():
    """Seven claims are tested both ways; the row with stand-ins names the stronger evidence."""
    names = [claim.claim for claim in CLAIMS]
    by_retraining = [name for name in names if BY_RETRAINING in name]
    twins = [name for name in by_retraining if name.replace(BY_RETRAINING, "") in names]
    assert (len(by_retraining), len(twins)) == (8, 7)
    for name in twins:
        assert names.index(name) == names.index(name.replace(BY_RETRAINING, "")) + 1
    notes = verdicts("paper").set_index("claim")["note"]
    weaker = {name.replace(BY_RETRAINING, "") for name in twins}
    assert set(notes.index[notes.str.contains(STRONGER)]) == weaker
