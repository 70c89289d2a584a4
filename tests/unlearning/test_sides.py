"""The competition's methods against the literature's: sides, planted worlds, and error rates."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from helpers.unlearning_claim_worlds import problem
from palimpsest.claims import Claim, above, judge_all
from palimpsest.statistics import student, student_p_value
from palimpsest.unlearning.claims import side_statistics as sides
from palimpsest.unlearning.methods import read_methods

ROOT = Path(__file__).parents[2]
SOURCES = {
    name: method.source
    for name, method in read_methods(ROOT / "config/unlearning.yaml").items()
    if method.source
}
COMPETITION = ["fanchuan", "kookmin", "seif", "sebastian", "amnesiacs", "sun", "forget"]
LITERATURE = ["neggrad", "scrub", "random-label", "salun", "l1-sparse"]
CLAIM = Claim("forgetting", "Several are ahead.", sides.competition_forgets_more, above(0))


def quality(competition, literature=(0.4,) * 5, **others):
    """Forgetting quality by method."""
    return {
        **dict(zip(COMPETITION, competition, strict=False)),
        **dict(zip(LITERATURE, literature, strict=False)),
        **others,
    }


def tables(qualities, noise=0.02, n_seeds=4):
    chance = np.random.default_rng(n_seeds)
    return pd.concat(
        pd.DataFrame(
            {
                "method": list(qualities),
                "forgetting_quality": np.array(list(qualities.values()))
                + noise * chance.standard_normal(len(qualities)),
            }
        ).assign(**problem(seed))
        for seed in range(n_seeds)
    )


def row_on(table):
    (row,) = judge_all([CLAIM], {"unlearning_tests": table}, facts={"sources": SOURCES}).to_dict(
        "records"
    )
    return row


def test_the_table_of_methods_has_the_papers_sides():
    found = {side: [] for side in ("competition", "literature", "baseline")}
    for name, source in SOURCES.items():
        found[source].append(name)
    assert found == {
        "competition": COMPETITION,
        "literature": LITERATURE,
        "baseline": ["finetune"],
    }


def test_three_far_ahead_and_four_far_behind_are_several_methods_ahead():
    """The means of the sides have the other order: 0.4 and 0.4."""
    row = row_on(tables(quality((0.8, 0.8, 0.8, 0.1, 0.1, 0.1, 0.1))))
    assert row["verdict"] == "agrees"
    assert row["estimate"] == pytest.approx(0.4, abs=0.05)
    assert "ahead of all of the literature's: fanchuan, kookmin, seif;" in row["note"]


@pytest.mark.parametrize(
    ("competition", "verdict"),
    [
        ((0.8, 0.8, 0.1, 0.1, 0.1, 0.1, 0.1), "agrees"),
        ((0.8, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1), "disagrees"),
        ((0.1,) * 7, "disagrees"),
        ((0.4,) * 7, "cannot tell"),
        ((0.8, 0.8), "agrees"),
        ((0.8,), "cannot tell"),
    ],
)
def test_one_method_ahead_is_not_several(competition, verdict):
    assert row_on(tables(quality(competition)))["verdict"] == verdict


def test_every_method_of_the_literature_has_to_be_behind():
    """The mean of the literature is far below, and its best method is not."""
    literature = (0.1, 0.1, 0.1, 0.1, 0.6)
    assert row_on(tables(quality((0.4,) * 7, literature)))["verdict"] == "disagrees"


def test_the_baseline_and_methods_without_a_side_decide_nothing_and_are_named():
    others = {"finetune": 0.99, "mine": 0.99, "retrain": 1.0, "none": 0.0}
    row = row_on(tables(quality((0.8,) * 3, (0.4,) * 2, **others)))
    assert row["verdict"] == "agrees"
    assert "competition: fanchuan, kookmin, seif; literature: neggrad, scrub" in row["note"]
    assert "on neither side: finetune, mine" in row["note"]
    assert "retrain" not in row["note"]


def test_without_a_side_the_note_says_so():
    row = row_on(tables({"mine": 0.9, "finetune": 0.5}))
    assert (row["verdict"], row["n_seeds"]) == ("cannot tell", 0)
    assert "competition: none; literature: none; on neither side: mine, finetune" in row["note"]


def test_one_seed_gives_no_interval():
    row = row_on(tables(quality((0.8,) * 7), n_seeds=1))
    assert np.isnan([row["lower"], row["upper"]]).all()
    assert row["verdict"] == "cannot tell"


def test_two_methods_without_any_quality_do_not_decide():
    """The difference of two methods at the floor is 0 in all seeds."""
    table = tables(quality((0.0, 0.0, 0.8), (0.0, 0.4)))
    floor = ["fanchuan", "kookmin", "neggrad"]
    table.loc[table["method"].isin(floor), "forgetting_quality"] = 0.0
    row = row_on(table)
    assert row["verdict"] == "disagrees"  # both are behind scrub
    only = table[table["method"].isin(floor)]
    assert row_on(only)["verdict"] == "cannot tell"


def test_two_methods_and_one_other_by_hand():
    """Both must be ahead, so each lower end is Student's own."""
    one, other = np.array([0.3, 0.5, 0.4]), np.array([0.2, 0.3, 0.1])
    pairs = np.stack([one, other])[:, None, :]
    lower, upper = sides.interval_of_margin(pairs, 2)
    assert lower == pytest.approx(student(other).lower)
    assert upper == pytest.approx(student(other, confidence=1 - 0.05 / 2).upper)
    assert sides.p_of_margin(pairs, 2) == pytest.approx(student_p_value(other, 0.0))


@pytest.mark.parametrize("rank", [1, 2, 4])
@pytest.mark.parametrize("seed", range(20))
def test_the_p_value_is_small_where_the_interval_excludes_0(seed, rank):
    chance = np.random.default_rng(seed)
    pairs = chance.standard_normal((4, 3, 4)) + 3 * chance.standard_normal((4, 1, 1))
    lower, upper = sides.interval_of_margin(pairs, rank)
    assert (sides.p_of_margin(pairs, rank) < 0.05) == (lower > 0 or upper < 0)


@pytest.mark.parametrize(("rank", "competition"), [(1, (0.0,) * 7), (7, (*(5.0,) * 6, 0.0))])
def test_the_largest_and_the_smallest_margin_are_rarely_found_wrong(rank, competition):
    """The true margin of this rank is 0, so both verdicts are wrong."""
    chance = np.random.default_rng(rank)
    n_studies, ahead, behind = 400, 0, 0
    literature = np.array((0.0, *(-5.0,) * 4))
    for _ in range(n_studies):
        of = [
            np.array(true)[:, None] + chance.standard_normal((len(true), 5))
            for true in (competition, literature)
        ]
        lower, upper = sides.interval_of_margin(of[0][:, None] - of[1][None], rank)
        ahead += lower > 0
        behind += upper < 0
    assert max(ahead, behind) <= binom.ppf(0.99, n_studies, 0.06)


def test_the_smallest_margin_is_that_of_all():
    table = tables(quality((0.8, 0.7, 0.5), (0.4, 0.2)))
    found = sides.margin_of_rank(
        lambda rows, sources: sides.differences(
            rows.set_index("method")["forgetting_quality"], sources
        ),
        {"sources": SOURCES},
        table,
    )
    assert found.mean == pytest.approx(0.1, abs=0.03)
    assert found.lower <= found.mean <= found.upper


@pytest.mark.parametrize("n_seeds", [3, 5])
@pytest.mark.parametrize(
    "competition", [(0.0,) * 7, (5.0, *(0.0,) * 6), (5.0, 0.0, *(-5.0,) * 5), (5.0, 0.0)]
)
def test_a_second_method_that_is_as_good_as_the_best_is_rarely_ahead_or_behind(
    competition, n_seeds
):
    """The second largest true margin is 0, so both verdicts are wrong."""
    chance = np.random.default_rng(n_seeds)
    n_studies, ahead, behind = 200, 0, 0
    for literature in ((0.0,) * 5, (0.0, *(-5.0,) * 4)):
        for _ in range(n_studies):
            of = [
                np.array(true)[:, None] + chance.standard_normal((len(true), n_seeds))
                for true in (competition, literature)
            ]
            lower, upper = sides.interval_of_margin(of[0][:, None] - of[1][None], 2)
            ahead += lower > 0
            behind += upper < 0
    assert max(ahead, behind) <= binom.ppf(0.99, 2 * n_studies, 0.06)
