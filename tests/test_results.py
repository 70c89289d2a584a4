"""Results of all sections: which claims an experiment tests."""

import numpy as np
import pandas as pd
import pytest

from palimpsest.errors import UserError
from palimpsest.results import power_table, too_weak
from palimpsest.sections import SECTIONS

ROOT_TABLE = "config/power.tsv"
ROWS = pd.DataFrame(
    {
        "question": "RQ1",
        "claim": ["One.", "Two.", "Three."],
        "statistic": "a number",
        "language": "L1",
        "n_models": 1,
        "n_seeds": 5,
        "estimate": [0.123456, np.nan, 1.0],
        "power": [0.7999, 0.0, 1.0],
        "by_construction": [False, False, True],
    }
)


def test_a_table_of_powers_has_the_tests_that_count(tmp_path):
    power_table(ROWS, tmp_path / "power.tsv")
    table = pd.read_csv(tmp_path / "power.tsv", sep="\t")
    assert list(table["claim"]) == ["One.", "Two."]
    assert list(table["power"]) == [0.8, 0.0]


def test_tests_with_less_power_are_left_out(tmp_path):
    power_table(ROWS, tmp_path / "power.tsv")
    assert list(too_weak(tmp_path / "power.tsv", 0.8)["claim"]) == ["Two."]
    assert list(too_weak(tmp_path / "power.tsv", 0.0)["claim"]) == []
    assert too_weak([], 0.8) is None


@pytest.mark.parametrize(
    "text",
    ["claim\tpower\nOne.\t1\n", "question\tclaim\tstatistic\tlanguage\tpower\na\tb\tc\td\tx\n"],
)
def test_another_table_is_refused_by_name(tmp_path, text):
    (tmp_path / "mine.tsv").write_text(text)
    with pytest.raises(UserError, match=r"mine\.tsv: not a table of powers .*; it has: question"):
        too_weak(str(tmp_path / "mine.tsv"), 0.8)


def test_the_default_s_table_names_claims_that_there_are():
    known = {claim.claim for section in SECTIONS for claim in section.load("claims")}
    assert set(pd.read_csv(ROOT_TABLE, sep="\t")["claim"]) <= known


def test_the_tests_of_one_claim_on_several_methods_stay_together(tmp_path):
    rows = ROWS.assign(claim=["One.", "One.", "Three."], power=[0.1, 0.9, 1.0])
    power_table(rows, tmp_path / "power.tsv")
    assert too_weak(tmp_path / "power.tsv", 0.8).empty
    assert len(too_weak(tmp_path / "power.tsv", 0.95)) == 2
