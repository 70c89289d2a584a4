"""The rows of records in the table `headline`."""

import pandas as pd
import pytest

from helpers.record_worlds import shares
from palimpsest.records import headline, kinds
from palimpsest.records.report import share_rows


def test_shares_and_intervals_are_averaged_over_the_seeds():
    table = shares(["m", "n"], seeds=[0, 1, 2])
    rows = headline.rows(table)
    assert rows["measure"].tolist()[:2] == ["contextual"] * 2, "the best evidence comes first"
    assert rows["measure"].tolist()[-1] == "recollection"
    row = rows[(rows["model"] == "n") & (rows["measure"] == "counterfactual")].iloc[0]
    of_model = table[(table["model"] == "n") & (table["measure"] == "counterfactual")]
    for name, column in {"trained": "share_trained", "unseen": "share_unseen"}.items():
        assert row[name] == pytest.approx(of_model[column].mean())
    for name in ("difference", "lower", "upper"):
        assert row[name] == pytest.approx(of_model[name].mean())
    assert row["difference"] == pytest.approx(row["trained"] - row["unseen"])
    assert (row["n_seeds"], row["interval_over"], row["evidence"]) == (3, "groups", "retraining")


def test_one_seed_has_the_interval_over_its_groups():
    (row,) = headline.rows(shares(["m"], [0]).query("measure == 'contextual'")).to_dict("records")
    assert row["n_seeds"] == 1
    assert row["lower"] < row["difference"] < row["upper"]


@pytest.mark.filterwarnings("ignore:.*no record was never trained on")
def test_without_a_placebo_there_is_no_difference():
    rows = headline.rows(shares(["m"], [0, 1], placebo=False))
    assert rows["trained"].notna().all()
    assert rows[["unseen", "difference", "lower", "upper"]].isna().all(axis=None)
    assert set(rows["interval_over"]) == {""}


def test_a_model_that_was_not_trained_here_has_no_seeds():
    table = shares(["m"], [0]).assign(seed=pd.array([pd.NA], "Int64")[[0] * 4])
    assert set(headline.rows(table)["n_seeds"]) == {0}


def test_no_records_no_rows():
    assert headline.rows(kinds.SHARES.schema.empty_table().to_pandas()).empty


def test_the_chapter_of_the_report_has_the_same_numbers():
    table = shares(["m"], [0, 1])
    (row,) = [row for row in share_rows(table) if row["measure"] == "contextual"]
    of_table = headline.rows(table).iloc[0]
    assert of_table["measure"] == "contextual"
    assert row["trained"] == f"{100 * of_table['trained']:.0f}\u00a0%"
    shown = row["difference"].replace("−", "-").strip("]").replace("[", "").replace(",", "")
    numbers = [float(number) for number in shown.split()]
    expected = of_table[["difference", "lower", "upper"]].tolist()
    assert numbers == pytest.approx(expected, rel=5e-3)
