"""The engine of claims: one rule for all verdicts, whatever an interval is over."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from palimpsest import tables
from palimpsest.claims import (
    CONSTANT,
    DIFFERENCE,
    LANGUAGE,
    NO_THRESHOLD,
    REFERENCE_MODEL,
    RETRAINING,
    SHARE,
    STAND_INS,
    TOO_FEW_ON_ONE_SIDE,
    Case,
    Claim,
    above,
    at_least,
    at_most,
    below,
    between,
    held_in,
    judge,
    judge_all,
    statistic,
)
from palimpsest.estimates import SEEDS as SEEDS_VARY
from palimpsest.estimates import Estimate, over_seeds
from palimpsest.sections import KINDS, SECTIONS
from palimpsest.statistics import DECIMALS, student


def of(values, models=None):
    return Estimate(tuple(values), *student(values, DECIMALS), SEEDS_VARY, models)


ABOVE_0 = above(0)


def claim(estimate=None, reads="one", region=ABOVE_0, by_construction=False, evidence=(), **more):
    declared = statistic(reads, "a number", evidence=evidence, **more)(estimate)
    return Claim("Q", "It is so.", declared, region, by_construction)


def table(**columns):
    return pd.DataFrame({"language": ["L1", "L1", "L2"], "model": ["m", "n", "m"], **columns})


def judged(values, region, **more):
    return judge(of(values), claim(region=region, **more))


@pytest.mark.parametrize(
    ("values", "region", "verdict"),
    [
        ((0.5, 0.6, 0.7), above(0), "agrees"),
        ((0.5, 0.6, 0.7), below(0), "disagrees"),
        ((-0.5, 0.6, 0.7), above(0), "cannot tell"),
        ((0.01, 0.02, 0.03), between(-0.1, 0.1), "agrees"),
        ((0.31, 0.32, 0.33), between(-0.1, 0.1), "disagrees"),
        ((0.3,), above(0), "cannot tell"),
        ((), above(0), "cannot tell"),
    ],
)
def test_the_rule(values, region, verdict):
    assert judged(values, region)["verdict"] == verdict


REGIONS = (above(0), at_least(0), at_most(0), below(0), at_most(0.1), between(-0.1, 0.1))


@pytest.mark.parametrize("region", REGIONS, ids=lambda region: region.text)
@given(value=st.sampled_from([-1.0, 0.0, 0.1, 1 / 3, 1.0]), n=st.integers(2, 6))
def test_seeds_that_are_alike_decide_from_five_on(value, n, region):
    """The sign test of the median seed; and 0.1 + 0.2 - 0.2 is 0.1 but for rounding."""
    values = [value] * (n - 1) + [value + 0.2 - 0.2]
    row = judged(values, region, limits=DIFFERENCE)
    assert row["lower"] == row["upper"] == row["estimate"]
    assert np.isnan(row["seeds_needed"])
    if n < 5:
        assert row["verdict"] == "cannot tell"
        assert row["note"].endswith("give the same value: 5 alike seeds would decide")
        assert np.isnan(row["p_value"])
    else:
        assert row["verdict"] == ("agrees" if region.holds(value) else "disagrees")
        assert row["note"] == "all seeds give the same value: the sign test"
        assert row["p_value"] == 2 / 2**n


@pytest.mark.parametrize(
    ("value", "region", "verdict"),
    [
        (1.0, above(0), "agrees"),
        (-1.0, above(0), "disagrees"),
        (-1.0, below(0.5), "agrees"),
        (1.0, at_least(0.5), "cannot tell"),  # more than no association is no strong one
        (1.0, below(0.5), "cannot tell"),
    ],
)
def test_orders_that_are_alike_decide_about_no_association(value, region, verdict):
    """Three seeds are enough, because random orders would hardly be the same in all of them."""
    estimate = of([value] * 3)._replace(p_of_chance=2 / 6**3)
    row = judge(estimate, claim(region=region, limits=DIFFERENCE))
    assert row["verdict"] == verdict
    if verdict != "cannot tell":
        assert row["p_value"] == 2 / 6**3
        assert row["note"].endswith("the exact test of orders")


def test_without_an_interval_there_is_no_test():
    """Seeds with undefined values may have lost it, whether the others are alike or not."""
    for values in ([0.2] * 5, [0.2, 0.3, 0.4, 0.5, 0.6]):
        row = judge(of(values)._replace(lower=np.nan, upper=np.nan), claim(region=above(0)))
        assert row["verdict"] == "cannot tell"
        assert np.isnan([row["p_value"], row["seeds_needed"]]).all()


def test_orders_that_come_up_by_chance_do_not_decide():
    estimate = of([1.0] * 3)._replace(p_of_chance=0.06)
    assert judge(estimate, claim(region=above(0), limits=DIFFERENCE))["verdict"] == "cannot tell"


def test_equal_seeds_decide_what_is_by_construction():
    row = judged([0.0, 0.0, 0.0], at_most(0), limits=SHARE, by_construction=True)
    assert (row["verdict"], row["by_construction"]) == ("agrees", True)
    assert np.isnan(row["p_value"])
    row = judged([0.2, 0.2, 0.2], at_most(0), limits=SHARE, by_construction=True)
    assert (row["verdict"], row["by_construction"]) == ("cannot tell", False)


SEED_VALUES = st.lists(st.floats(0, 1), min_size=2, max_size=6)
ANY_REGION = st.one_of(
    st.floats(0.05, 0.95).flatmap(
        lambda bound: st.sampled_from([above(bound), below(bound), at_least(bound), at_most(bound)])
    ),
    st.tuples(st.floats(0.1, 0.4), st.floats(0.6, 0.9)).map(lambda ends: between(*ends)),
)


@given(values=SEED_VALUES, region=ANY_REGION)
def test_clipping_narrows_the_interval_and_changes_no_verdict(values, region):
    """The bounds of these regions are inside the range, where both answers are possible."""
    whole, clipped = judged(values, region), judged(values, region, limits=SHARE)
    assert max(whole["lower"], 0) == clipped["lower"]
    assert min(whole["upper"], 1) == clipped["upper"]
    assert clipped["lower"] <= clipped["estimate"] <= clipped["upper"]
    for column in ("verdict", "note"):
        assert whole[column] == clipped[column]
    np.testing.assert_array_equal(whole["p_value"], clipped["p_value"])


@given(values=SEED_VALUES.filter(lambda values: np.ptp(np.round(values, DECIMALS)) > 0))
def test_a_bound_at_the_end_of_the_range_is_not_reached_by_clipping(values):
    """A share is never proved to be 0 or 1 by cutting off the rest of its interval."""
    assert judged(values, at_most(0), limits=SHARE)["verdict"] != "agrees"
    assert judged(values, at_least(1), limits=SHARE)["verdict"] != "agrees"
    assert judged(values, above(0), limits=SHARE)["verdict"] != "disagrees"
    assert judged(values, below(1), limits=SHARE)["verdict"] != "disagrees"


def test_a_bound_that_the_range_keeps_is_no_bound():
    """No share is below 0, so only 0.5 can be crossed."""
    half = between(0, 0.5)
    row = judged([0.0, 0.1, 0.2], half, limits=SHARE)
    assert (row["lower"], row["verdict"]) == (0, "agrees")
    assert row["p_value"] == pytest.approx(stats.ttest_1samp([0.0, 0.1, 0.2], 0.5).pvalue)
    assert judged([0.0, 0.1, 0.2], half)["verdict"] == "cannot tell"


def test_a_statistic_outside_its_limits_is_an_error():
    with pytest.raises(ValueError, match=r"It is so\.: the statistic is 1\.5, but its limits are"):
        judged([1.4, 1.6], above(0), limits=SHARE)


@given(values=SEED_VALUES, region=ANY_REGION)
@example(values=[0.0] * 5, region=above(0.5))
@example(values=[0.0] * 4, region=above(0.5))
def test_a_verdict_is_a_p_value_below_5_percent(values, region):
    """Of Student's test. Seeds that are all alike have the sign test, whose level is 1/16.

    Five seeds or more must also pass the sign test: all of five have to be on one side.
    """
    row = judged(values, region)
    if np.isnan(row["p_value"]):
        assert row["verdict"] == "cannot tell"
    elif row["lower"] == row["upper"]:
        assert row["p_value"] <= 1 / 16
        assert row["verdict"] != "cannot tell"
    elif abs(row["p_value"] - 0.05) > 1e-6:
        decides = row["p_value"] < 0.05
        if decides and row["verdict"] == "cannot tell":
            assert len(values) >= 5
            assert row["note"] == TOO_FEW_ON_ONE_SIDE
        else:
            assert decides == (row["verdict"] != "cannot tell")


def test_inside_two_bounds_the_p_value_is_that_of_the_test_of_equivalence():
    """TOST: the larger of the two one-sided p-values; doubled, because intervals are 95 %."""
    values, region = [0.0, 0.02, 0.06], between(-0.1, 0.1)
    sides = [
        stats.ttest_1samp(values, -0.1, alternative="greater").pvalue,
        stats.ttest_1samp(values, 0.1, alternative="less").pvalue,
    ]
    assert judged(values, region)["p_value"] == pytest.approx(2 * max(sides))


@pytest.mark.parametrize("values", [(0.1, 0.5, 0.3), (-0.1, 0.6, 0.7), (0.4, -0.2, 0.1, 0.2)])
def test_the_seeds_needed_are_the_fewest_that_would_decide(values):
    """With this mean and this spread, one seed less would not do."""
    row = judged(values, above(0))
    n = int(row["seeds_needed"])
    assert n > len(values)
    assert row["note"] == f"about {n} seeds would decide"

    def lower(n):
        reach = stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)
        return np.mean(values) - reach

    assert lower(n) > 0 >= lower(n - 1)


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ((-0.1, 0.0, 0.1), "the estimate is too near a bound: even 1,000 seeds would not tell"),
        ((-0.1, 0.0, 0.1001), "the estimate is too near a bound: even 1,000 seeds would not tell"),
        ((-0.1, 0.3), "two seeds are too few"),
        ((0.3,), "only one seed has a value: no interval"),
        ((), "the statistic is undefined here, or what it needs was not run"),
        ((0.5, 0.6, 0.7), ""),
    ],
)
def test_a_number_of_seeds_is_not_always_known(values, note):
    row = judged(values, above(0))
    assert row["note"] == note
    assert np.isnan(row["seeds_needed"])


@pytest.mark.parametrize(
    ("lower", "upper", "verdict", "over"),
    [
        (0.1, 0.5, "agrees", "strings"),
        (-0.5, -0.1, "disagrees", "strings"),
        (-0.1, 0.5, "cannot tell", "strings"),
        (0.3, 0.3, "cannot tell", "strings"),
        (np.nan, np.nan, "cannot tell", ""),
        (0.1, np.nan, "cannot tell", ""),
    ],
)
def test_a_claim_may_bring_an_interval_of_its_own(lower, upper, verdict, over):
    row = judge(Estimate((0.3,), 0.3, lower, upper, "strings"), claim())
    assert (row["n_seeds"], row["estimate"]) == (1, 0.3)
    assert (row["verdict"], row["interval_over"]) == (verdict, over)
    assert np.isnan(row["p_value"])
    assert bool(row["note"]) == (verdict == "cannot tell")


def test_cases_that_are_certain_one_by_one_need_no_width():
    estimate = Estimate((1.0,), 1.0, 1.0, 1.0, "splits", counts_certain=True)
    row = judge(estimate, claim(region=at_least(0.9), limits=SHARE))
    assert (row["verdict"], row["note"]) == (
        "agrees",
        "each case is certain by itself, so no spread is needed",
    )


def test_models_are_counted_by_their_own_means():
    models = {"a1": 0.1, "a2": -0.2, "b": 0.3}
    held = held_in(of([0.5, 0.6, 0.7], models=models), ABOVE_0, None)
    assert held["n_models_hold"] == 2
    assert np.isnan([held["n_families"], held["n_families_hold"]]).all()
    assert np.isnan(list(held_in(of([0.5, 0.6, 0.7]), ABOVE_0, {}).values())).all()


def test_families_are_counted_by_the_mean_over_their_models():
    """The models of family A have the mean -0.05."""
    models, families = {"a1": 0.1, "a2": -0.2, "b": 0.3}, {"a1": "A", "a2": "A", "b": "B"}
    held = held_in(of([0.5, 0.6], models=models), ABOVE_0, families)
    assert (held["n_models_hold"], held["n_families"], held["n_families_hold"]) == (2, 2, 1)
    # A statistic that compares the models of a family has no value for one model.
    within = Estimate((0.1, 0.3), *student([0.1, 0.3]), families={"A": 0.1, "B": -0.1})
    held = held_in(within, ABOVE_0, families)
    assert np.isnan(held["n_models_hold"])
    assert (held["n_families"], held["n_families_hold"]) == (2, 1)


def test_the_table_counts_models_and_families():
    of_models = claim(lambda table: of(table["x"], models=dict(zip("mn", table["x"], strict=True))))
    frame = judge_all([of_models], {"one": table(x=1.0).head(2)}, {"m": "M", "n": "N"})
    names = ["n_models", "n_models_hold", "n_families", "n_families_hold"]
    assert frame[names].iloc[0].tolist() == [2, 2, 2, 2]


def test_no_estimate_is_minus_zero():
    row = judged([-1e-17, -2e-17], above(0))
    assert not np.signbit([row["estimate"], row["lower"], row["upper"]]).any()


def test_marks_are_added_to_the_note():
    marked = of([0.5, 0.6, 0.7])._replace(remarks=("1 of 3 runs", "raw: 0.2"))
    assert judge(marked, claim())["note"] == "1 of 3 runs; raw: 0.2"
    open_row = judge(of([0.3])._replace(remarks=("1 of 3 runs",)), claim())
    assert open_row["note"] == ("only one seed has a value: no interval; 1 of 3 runs")


def test_coverage_is_shown_of_claims_that_rest_on_stand_ins():
    def estimate(table):
        return of(table["x"])._replace(coverage=0.75)

    rests_on = [(STAND_INS,), (STAND_INS, RETRAINING), (RETRAINING,), ()]
    frame = judge_all([claim(estimate, evidence=e) for e in rests_on], {"one": table(x=1.0)[:2]})
    np.testing.assert_array_equal(frame["coverage"], [0.75, 0.75, np.nan, np.nan])


def test_p_values_are_corrected_over_the_rows_that_are_tests():
    """Rows by construction, without spread, of one seed and not run are no tests."""
    values = [[0.5, 0.6, 0.7], [0.1, 0.5, 0.3], [0.2, 0.2, 0.2], [0.3], [0.4, 0.5, 0.6]]
    claims = [claim(lambda table, v=v: of(v)) for v in values[:-1]]
    claims += [claim(lambda table: of(values[-1]), by_construction=True)]
    claims += [claim(lambda table: of([1.0]), reads="absent")]
    frame = judge_all(claims, {"one": table(x=1.0).tail(1)})
    p = [stats.ttest_1samp(v, 0).pvalue for v in values[:2]]
    nothing = [np.nan] * 4
    np.testing.assert_allclose(frame["p_value"].astype(float), [*p, *nothing])
    np.testing.assert_allclose(frame["p_holm"].astype(float), [2 * p[0], p[1], *nothing])
    assert p[0] < p[1]


def test_the_table_is_written_with_its_nulls(tmp_path):
    frame = judge_all([claim(lambda table: of(table["x"]))], {"one": table(x=[1.0, 2.0, 4.0])})
    frame["seeds_needed"] = [4, *[None] * (len(frame) - 1)]
    tables.write(tmp_path / "claims.parquet", frame, KINDS["claims"])
    again = tables.read(tmp_path / "claims.parquet", KINDS["claims"])
    assert again["n_models_hold"].isna().all()
    assert again["seeds_needed"].tolist()[0] == 4


def test_every_language_is_tested_by_itself():
    frame = judge_all([claim(lambda table: of(table["x"]))], {"one": table(x=[1.0, 1.1, 2.0])})
    assert frame["language"].tolist() == ["L1", "L2"]
    assert frame["n_models"].tolist() == [2, 1]
    np.testing.assert_allclose(frame["estimate"], [1.05, 2.0])
    assert list(frame.columns) == KINDS["claims"].schema.names


def test_a_claim_may_read_two_tables():
    """It is tested on the languages that both have, and gets them in the order of `reads`."""
    given = {"one": table(x=1.0), "two": table(y=2.0).query("language == 'L1'")}
    made = judge_all(
        [claim(lambda one, two: of([one["x"].sum() - two["y"].sum()]), "one two")], given
    )
    assert made["language"].tolist() == ["L1"]
    assert made["estimate"].tolist() == [-2.0]


@pytest.mark.parametrize("given", [{}, {"one": None}, {"one": table(x=1.0).head(0)}])
def test_a_claim_without_its_table_has_one_open_row(given):
    row = judge_all([claim(lambda table: of([1.0]))], given).iloc[0]
    assert (row["language"], row["n_models"], row["n_seeds"]) == ("", 0, 0)
    assert row["verdict"] == "cannot tell"


def test_a_claim_may_choose_its_parts():
    whole = claim(lambda table: of(table["x"]), cases=lambda table: [Case("L1 - L2", 1, (table,))])
    frame = judge_all([whole], {"one": table(x=[1.0, 1.0, 4.0])})
    assert (frame["language"].item(), frame["estimate"].item()) == ("L1 - L2", 2.0)


def test_only_what_lies_where_the_definitions_put_it_is_by_construction():
    made = [claim(lambda table, v=v: of(v), by_construction=True) for v in ([1, 2], [-1, 2])]
    frame = judge_all(made, {"one": table(x=1.0)})
    assert frame["by_construction"].tolist() == [True, True, False, False]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_a_section_names_the_kinds_that_its_claims_read(section):
    """The workflow gives the claims these tables and no others."""
    read = {kind for made in section.load("claims") for kind in made.statistic.reads.split()}
    assert read <= {kind.name for kind in section.judged}


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_every_claim_says_what_it_rests_on(section):
    known = {CONSTANT, RETRAINING, STAND_INS, LANGUAGE, NO_THRESHOLD, REFERENCE_MODEL}
    for claim in section.load("claims"):
        evidence, words = claim.statistic.evidence, claim.statistic.words
        assert evidence, claim.claim
        assert set(evidence) <= known
        # Nothing rests on no threshold and on a threshold.
        assert NO_THRESHOLD not in evidence or len(evidence) == 1
        # The words of the statistic agree: by recollection, one constant serves all strings.
        if re.search(r", recollection\b", words) and "contextual" not in words:
            assert evidence == (CONSTANT,), claim.claim


# Statistics with arguments


def limits_of(column):
    return SHARE if column == "share" else DIFFERENCE


@statistic(
    "one", "{column} of {which}", limits=limits_of, evidence=lambda which: f"rests on {which}"
)
def mean_of_column(table, column):
    """The mean, as an estimate without an interval."""
    return Estimate((table[column].mean(),), table[column].mean())


def test_words_limits_evidence_and_the_function_get_the_arguments_that_they_name():
    chosen = mean_of_column.of(column="share", which="all")
    assert (chosen.words, chosen.limits, chosen.evidence) == (
        "share of all",
        SHARE,
        ("rests on all",),
    )
    assert chosen.estimate(table(share=[0.0, 0.5, 1.0])).mean == 0.5
    assert mean_of_column.of(column="x").of(which="some").limits == DIFFERENCE
    # Called, it is the function that was declared.
    assert mean_of_column(table(x=2.0), "x").mean == 2


def test_cases_get_the_arguments_that_they_name():
    def of_model(table, model):
        return [Case(model, 1, (table[table["model"] == model],))]

    declared = statistic("one", "mean", evidence=NO_THRESHOLD, cases=of_model)(
        mean_of_column.function
    )
    made = Claim("Q", "It is so.", declared.of(model="m", column="x"), ABOVE_0)
    frame = judge_all([made], {"one": table(x=[1.0, 5.0, 3.0])})
    assert (frame["language"].item(), frame["estimate"].item()) == ("m", 2.0)


def test_facts_go_to_the_statistics_that_have_an_argument_of_their_name():
    declared = [
        statistic("one", "number", evidence=NO_THRESHOLD)(function)
        for function in (lambda table, sides: of([sides["m"]]), lambda table: of([0.0]))
    ]
    made = [Claim("Q", "It is so.", one, ABOVE_0) for one in declared]
    frame = judge_all(made, {"one": table(x=1.0).tail(1)}, facts={"sides": {"m": 3.0}})
    assert frame["estimate"].tolist() == [3.0, 0.0]


def test_an_argument_that_nothing_uses_is_an_error():
    with pytest.raises(TypeError, match="mean_of_column: no argument colum"):
        mean_of_column.of(colum="x")


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.5, 0.6, 0.7, 0.8, 0.9], "agrees"),
        ([-0.01, 0.7, 0.7, 0.8, 0.9], "cannot tell"),
        ([0.4, 0.6, 0.7, 0.7], "agrees"),
        # With nine seeds, one may be on the other side.
        ([-0.01, 0.6, 0.7, 0.8, 0.9, 0.6, 0.7, 0.8, 0.9], "agrees"),
    ],
)
def test_five_seeds_or_more_pass_the_sign_test_as_well(values, verdict):
    """A seed below 0 leaves Student's interval of five seeds above 0."""
    row = judged(values, above(0))
    assert row["verdict"] == verdict
    if len(values) == 5:
        assert row["lower"] > 0
        assert row["note"] == ("" if verdict == "agrees" else TOO_FEW_ON_ONE_SIDE)


def of_models(values, n_seeds=5):
    """The verdicts over seeds, and over models and seeds, of one value per model."""
    chance = np.random.default_rng(0)
    rows = [
        {"language": "L", "model": f"m{i}", "seed": seed, "value": value + chance.normal(0, 0.01)}
        for i, value in enumerate(values)
        for seed in range(n_seeds)
    ]

    def by_model(frame):
        return over_seeds(frame.set_index(["model", "seed"])["value"])

    row = judge_all([claim(by_model)], {"one": pd.DataFrame(rows)}).iloc[0]
    return row["verdict"], row["verdict_models"]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1, 2, 3, 4, 5], ("agrees", "agrees")),
        ([-1, -2, -3, -4, -5], ("disagrees", "disagrees")),
        ([-1, 2, 3, 4, 5, 6], ("agrees", "cannot tell")),
        ([-1, 2, 3, 4, 5, 6, 7, 8, 9], ("agrees", "agrees")),
        ([1, 2, 3, 4], ("agrees", "")),
        ([-1, 1, -1, 1, -1, 1], ("cannot tell", "cannot tell")),
    ],
)
def test_a_verdict_over_models_needs_the_sign_test_of_the_models(values, found):
    assert of_models(values) == found


def test_tests_of_little_power_are_left_out_before_the_others_are_corrected():
    claims = [claim(lambda table: of(table["x"]))]
    given = {"one": pd.concat([table(x=[1.0, 1.1, 2.0]).assign(language=name) for name in "AB"])}
    whole = judge_all(claims, given)
    weak = whole[whole["language"] == "A"]
    some = judge_all(claims, given, without=weak)
    assert list(some["language"]) == ["B"]
    # The power of other numbers of seeds or models says nothing of these.
    assert len(judge_all(claims, given, without=weak.assign(n_seeds=2))) == 2
    assert len(judge_all(claims, given, without=weak.assign(n_models=0))) == 2
    # Fewer seeds have less power, such as those in which a statistic is defined.
    assert len(judge_all(claims, given, without=weak.assign(n_seeds=9))) == 1
    assert list(whole["p_holm"]) == [2 * some["p_value"].item()] * 2


@pytest.mark.parametrize(
    ("values", "least", "most"),
    [
        ([1.0, 1.1, 0.9, 1.0, 1.05], 0.999, 1),
        ([1.0, -1.1, 0.9, -1.0, 1.05], 0, 0.2),
        ([1.0] * 5, 1, 1),
        ([1.0] * 3, 0, 0),  # too few that are alike
        ([1.0], 0, 0),
    ],
)
def test_power_is_that_of_another_study_of_this_size(values, least, most):
    assert least <= judged(values, above(0))["power"] <= most


@pytest.mark.parametrize(("lower", "power"), [(0.0, 0.5), (-1.0, 0.16), (0.9, 1.0)])
def test_power_of_an_interval_over_something_else_is_that_of_a_normal_estimate(lower, power):
    estimate = Estimate((1.0,), 1.0, lower, 2 - lower, "strings", p_value=0.01)
    assert judge(estimate, claim(region=above(0)))["power"] == pytest.approx(power, abs=0.01)


def test_orders_of_which_too_few_are_counted_leave_the_sign_test():
    """Five seeds that are all alike decide, whatever the test of their orders says."""
    estimate = of([1.0] * 5)._replace(p_of_chance=0.07)
    row = judge(estimate, claim(region=above(0), limits=DIFFERENCE))
    assert (row["verdict"], row["p_value"]) == ("agrees", 2 / 2**5)


@given(values=SEED_VALUES, region=ANY_REGION)
def test_power_is_a_probability(values, region):
    assert 0 <= judged(values, region)["power"] <= 1


def test_a_bound_that_is_far_away_is_always_told():
    """Where scipy's distribution is too small for a number."""
    values = [0.0] * 4 + [0.078] * 2
    for bound in (0.875, 5.0, 1e6):
        assert judged(values, below(bound))["power"] == pytest.approx(1)


def test_a_region_without_a_bound_is_decided_always():
    assert judged([0.1, 0.2, 0.3], between(0, 1), limits=SHARE)["power"] == 1
    assert judged([0.1, 0.2, 0.3], between(-np.inf, np.inf))["power"] == 1


@pytest.mark.parametrize(("n", "verdict"), [(2, "cannot tell"), (5, "agrees")])
def test_lower_bounds_that_are_all_alike_need_the_sign_test(n, verdict):
    """The end of training cuts all values: the interval has no upper end, but nothing varies."""
    row = judge(of([0.5] * n)._replace(upper=np.inf), claim(region=above(0.2)))
    assert (row["verdict"], row["power"]) == (verdict, float(n == 5))
    row = judge(of([0.5] * n)._replace(upper=np.inf), claim(region=above(1)))
    assert (row["verdict"], row["power"]) == ("cannot tell", 0)
