"""The rows of records in the table `headline`."""

import re

import numpy as np
import pandas as pd
import pytest

from helpers.record_worlds import shares
from palimpsest.records import headline, kinds
from palimpsest.records.report import MOST, part, share_rows, surest_rows
from palimpsest.records.sentences import sentences


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


# The sentence of the first page


def test_a_model_says_the_share_of_its_records_that_is_told_apart_and_the_placebo():
    """By the measure with the strongest evidence; memorised in one world, and not in the other."""
    for memorised, share in ((True, 100), (False, 0)):
        table = shares(["m"], [0, 1], memorised=memorised)
        (said,) = sentences({kinds.SHARES.name: table})
        rows = table[table["measure"] == "contextual"]
        detected, lower, upper = rows[["detected", "detected_lower", "detected_upper"]].mean()
        numbers = re.findall(r"\d+", said.text.partition("of the")[0])
        expected = [round(100 * value) for value in (detected, lower, upper)]
        assert [int(number) for number in numbers] == expected
        assert abs(expected[0] - share) <= 15
        placebo = f"{100 * rows['detected_unseen'].mean():.0f}\u00a0%"
        assert f"Placebo: {placebo} of the others." in said.note
        assert "Measure: contextual (retraining); interval over groups" in said.note


@pytest.mark.filterwarnings("ignore:.*no record was never trained on")
def test_without_a_placebo_the_sentence_says_what_would_decide():
    (said,) = sentences({kinds.SHARES.name: shares(["m"], [0], placebo=False)})
    assert "nothing shows how many of these calls are wrong" in said.text
    assert "records of the same kind, never trained on, would decide" in said.note


def test_few_unseen_records_tell_shares_and_no_single_record():
    columns = ["detected", "detected_lower", "detected_upper", "detected_unseen"]
    table = shares(["m"], [0]).assign(**dict.fromkeys(columns, float("nan")))
    (said,) = sentences({kinds.SHARES.name: table})
    row = table[table["measure"] == "contextual"].iloc[0]
    assert f"{row['difference']:.3g} [" in said.text
    assert "more are called memorised than of others" in said.text
    assert "Too few records were never trained on" in said.note
    assert not [*sentences({})]


def test_the_report_names_the_records_with_the_smallest_p_values():
    """Of records trained on, by the measure that rests on most; the median over two seeds."""
    rows = [
        {
            "language": "mine", "model": "m", "seed": seed, "id": f"r{record}",
            "trained": record < 20, "measure": measure, "memorised": record < 2,
            "p_value": 0.5 if measure == "loss attack" else 0.01 * (20 - record) + 0.02 * seed,
            "score": 1.0,
        }
        for seed in (0, 1)
        for record in range(24)
        for measure in ("loss attack", "contextual")
    ]  # fmt: skip
    found = surest_rows(pd.DataFrame(rows))
    assert [row["record"] for row in found] == [f"r{19 - place}" for place in range(MOST)]
    assert {row["measure"] for row in found} == {"contextual"}
    assert found[0]["p"] == "0.02"
    assert found[0]["memorised"] == "0 of 2"
    unknown = pd.DataFrame(rows).assign(p_value=np.nan)
    assert surest_rows(unknown) == []
    given = {kinds.SHARES.name: shares(["m"], [0]), kinds.ANSWERS.name: pd.DataFrame(rows)}
    (chapter,) = [one for one in part(given).chapters if one.id == "records"]
    assert "r19" in chapter.before
