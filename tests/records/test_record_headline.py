"""The rows of records in the table `headline`."""

import pandas as pd
import pytest

from helpers.record_worlds import shares
from palimpsest.records import headline, kinds
from palimpsest.records.report import part, share_rows


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


def page(n_unseen, **facts):
    found = part({kinds.SHARES.name: shares(["m"], [0]).assign(n_unseen=n_unseen)}, **facts)
    return "".join(chapter.before for chapter in found.chapters)


def test_the_page_says_that_no_record_can_be_found_with_too_few_unseen_ones():
    few = "mine (18). With fewer than 19, no p-value can be 0.05 or less"
    assert few in page(18)
    assert "Too few" not in page(19)
    assert "Too few" in page(19, false_alarms_of_records=0.01)
