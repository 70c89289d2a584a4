"""The engine of claims: one rule for all verdicts, whatever an interval is over."""

import numpy as np
import pandas as pd
import pytest

from palimpsest.claims import (
    Case,
    Claim,
    Estimate,
    above,
    at_least,
    at_most,
    below,
    between,
    judge,
    judge_all,
)
from palimpsest.sections import KINDS, SECTIONS
from palimpsest.statistics import DECIMALS, student


def of(values):
    return Estimate(tuple(values), *student(values, DECIMALS), "seeds")


def claim(estimate, reads="one", **more):
    return Claim("Q", "It is so.", reads, "a number", above(0), estimate, **more)


def table(**columns):
    return pd.DataFrame({"language": ["L1", "L1", "L2"], "model": ["m", "n", "m"], **columns})


@pytest.mark.parametrize(
    ("values", "region", "verdict"),
    [
        ((0.5, 0.6, 0.7), above(0), "agrees"),
        ((0.5, 0.6, 0.7), below(0), "disagrees"),
        ((-0.5, 0.6, 0.7), above(0), "cannot tell"),
        ((0.0, 0.0), above(0), "disagrees"),
        ((0.0, 0.0), at_most(0), "agrees"),
        ((0.0, 0.0), at_least(0), "agrees"),
        ((0.0, 0.0), below(0), "disagrees"),
        ((0.1, 0.1, 0.1), at_most(0.1), "agrees"),
        ((0.1, 0.1, 0.1), between(-0.1, 0.1), "agrees"),
        ((0.3, 0.3, 0.3), between(-0.1, 0.1), "disagrees"),
        ((0.3,), above(0), "cannot tell"),
        ((), above(0), "cannot tell"),
    ],
)
def test_the_rule(values, region, verdict):
    assert judge(of(values), region)["verdict"] == verdict


@pytest.mark.parametrize(
    ("lower", "upper", "verdict", "over"),
    [
        (0.1, 0.5, "agrees", "strings"),
        (-0.5, -0.1, "disagrees", "strings"),
        (-0.1, 0.5, "cannot tell", "strings"),
        (np.nan, np.nan, "cannot tell", ""),
        (0.1, np.nan, "cannot tell", ""),
    ],
)
def test_a_claim_may_bring_an_interval_of_its_own(lower, upper, verdict, over):
    row = judge(Estimate((0.3,), 0.3, lower, upper, "strings"), above(0))
    assert (row["n_seeds"], row["estimate"]) == (1, 0.3)
    assert (row["verdict"], row["interval_over"]) == (verdict, over)


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
    read = {kind for made in section.load("claims") for kind in made.reads.split()}
    assert read <= {kind.name for kind in section.judged}
