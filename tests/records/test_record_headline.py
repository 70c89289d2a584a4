"""The rows of records in the table `headline`."""

import re

import numpy as np
import pandas as pd
import pytest

from helpers.record_worlds import answered, only_asked, shares
from palimpsest import records
from palimpsest.records import headline, kinds
from palimpsest.records.alike import BLIND_LOOK, told_apart
from palimpsest.records.found import found
from palimpsest.records.report import MOST, MOST_NAMED, part, share_rows, surest_rows
from palimpsest.records.sentences import are_told_apart, sentences
from palimpsest.records.tables import ITS_MODEL


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
    tables = answered(["m"], [0])
    few = {kinds.SHARES.name: tables[kinds.SHARES.name].assign(n_unseen=n_unseen)}
    return "".join(chapter.before for chapter in part({**tables, **few}, **facts).chapters)


def test_the_page_says_that_no_record_can_be_found_with_too_few_unseen_ones():
    few = "mine (18). With fewer than 19, no p-value can be 0.05 or less"
    assert few in page(18)
    assert "Too few" not in page(19)
    assert "Too few" in page(19, false_alarms_of_records=0.01)


# The sentence of the first page


def test_a_model_says_how_many_of_its_records_are_found_and_the_placebo():
    """By the main measure; memorised in one world, and not in the other."""
    for memorised in (True, False):
        tables = answered(["m"], [0, 1], memorised=memorised)
        (said,) = sentences(tables)
        rows = tables[kinds.SHARES.name].query("measure == 'contextual'")
        detected = rows[["detected", "detected_lower", "detected_upper"]].mean()
        assert abs(detected["detected"] - memorised) <= 0.15
        share, lower, upper = (f"{100 * value:.0f}" for value in detected)
        placebo = f"{100 * rows['detected_unseen'].mean():.0f}\u00a0%"
        of_detected = f"contextual: {share}\u00a0% [{lower}, {upper}]; placebo {placebo}"
        begin = "30 of 30" if memorised else "None of 30"
        assert said.text.startswith(f"{begin} records of mine in m’s training stand")
        n_found = "30 have" if memorised else "none has"  # by the median of two seeds
        assert f"at a false discovery rate of 5\u00a0%: {n_found} median p ≤ 0.05 (" in said.text
        assert f"≤ 0.05 ({of_detected})" in said.text
        assert "unseen records" not in said.text


def losses_of(n_found: int, n_unseen: int) -> dict:
    """The tables of losses: of 40 records, so many are lower than without training on them."""
    of_trained = np.where(np.arange(40) < n_found, 0.5, 1.5)
    loss = np.append(of_trained, np.full(n_unseen, 1.0))
    frame = pd.DataFrame({"id": [f"r{n}" for n in range(len(loss))], "checkpoint": 1, "loss": loss})
    frame = frame.assign(loss_without=1.0, trained=np.arange(len(loss)) < 40)
    found = records.answers(records.to_losses(frame), loss_threshold=None)
    about = {"language": "logged", "model": ITS_MODEL, "seed": pd.NA}
    looks = dict.fromkeys(BLIND_LOOK, np.nan)
    return {
        kinds.ANSWERS.name: found.table.assign(**about),
        kinds.SHARES.name: found.placebo.assign(**about, **looks),
    }


def test_a_correction_that_cannot_succeed_says_what_it_takes():
    """15 of 40 at the smallest p-value of 20 unseen records: 0.127 when corrected. 53 suffice."""
    (few,) = sentences(losses_of(15, 20))
    assert (
        "None of 40 records of logged in the model’s training stands at a false discovery rate of "
        "5\u00a0%: 15 have p ≤ 0.05 (contextual: 38\u00a0% ["
    ) in few.text
    assert few.text.endswith("; placebo 0\u00a0%), which takes 53 unseen records, not 20.")
    table = losses_of(15, 20)[kinds.ANSWERS.name].query("measure == 'contextual'")
    assert table["p_corrected"].min() == pytest.approx(40 / 15 / 21)
    assert "None of 40" in next(iter(sentences(losses_of(15, 52)))).text
    (enough,) = sentences(losses_of(15, 53))
    assert enough.text.startswith("15 of 40 records of logged in the model’s training stand at")
    assert "unseen records" not in enough.text
    (one,) = sentences(losses_of(2, 20))
    assert "None of 40" in one.text
    assert one.text.endswith("), no more than chance gives.")


def test_without_a_reference_the_sentence_says_how_alike_both_kinds_are():
    """The same losses: memorised if the texts are alike; if not, nobody can tell."""
    (alike,) = sentences(only_asked(lower=1))
    assert alike.text.startswith("40 of 40 records of mine in tuned’s training stand at a")
    assert "Without a reference model, this holds only if both kinds of records are" in alike.text
    auc = float(re.search(r"tells them apart with an AUC of ([\d.]+) \[", alike.text)[1])
    assert 0.3 < auc < 0.7
    (unlike,) = sentences(only_asked(lower=1, alike=False))
    assert "stand" not in unlike.text
    assert unlike.text.startswith("The losses cannot tell which of 40 records of mine")
    assert "are memorised: a blind look at the texts tells" in unlike.text
    assert "an AUC of 1 [" in unlike.text
    assert "A reference model, or unseen records of the same kind, would decide." in unlike.note
    without = only_asked(lower=1)
    without[kinds.SHARES.name].loc[:, list(BLIND_LOOK)] = np.nan
    assert "which no text shows here" in next(iter(sentences(without))).text


def test_a_blind_look_is_at_chance_where_records_are_alike():
    """Of 40 worlds, few have an interval above one half."""
    draws = np.random.default_rng(0)
    n_apart = 0
    for _ in range(40):
        texts = [f"note {number}" for number in draws.integers(10, 1000, 60)]
        ids = np.array([f"r{n}" for n in range(60)], dtype=object)
        trained = draws.permutation(60) < 30
        losses = records.Losses(ids, np.zeros(1), np.ones((1, 60)), None, None, trained, ids)
        n_apart += are_told_apart(told_apart(dict(zip(ids, texts, strict=True)), losses))
    assert n_apart <= 5
    assert np.isnan(told_apart({}, losses).mean)


def test_a_model_named_model_is_named_once():
    said = next(iter(sentences(only_asked(lower=1, model="model")))).text
    assert "in the model’s training" in said


@pytest.mark.filterwarnings("ignore:.*no record was never trained on")
def test_without_a_placebo_the_sentence_says_what_would_decide():
    (said,) = sentences(answered(["m"], [0], placebo=False))
    assert "nothing shows how many of these calls are wrong" in said.text
    assert "records of the same kind, never trained on, would decide" in said.note


def test_few_unseen_records_tell_shares_and_no_single_record():
    columns = ["detected", "detected_lower", "detected_upper", "detected_unseen"]
    tables = answered(["m"], [0])
    table = tables[kinds.SHARES.name].assign(**dict.fromkeys(columns, float("nan")))
    (said,) = sentences({**tables, kinds.SHARES.name: table})
    row = table[table["measure"] == "contextual"].iloc[0]
    assert f"{row['difference']:.3g} [" in said.text
    assert "more are called memorised than of others" in said.text
    assert "Too few records were never trained on" in said.note
    assert not [*sentences({})]


# The page of the section


def test_the_page_names_all_records_that_are_found_and_shows_the_surest():
    """Of records trained on, by the main measure; the median over two seeds."""
    rows = [
        {
            "language": "mine", "model": "m", "seed": seed, "id": f"r{record}",
            "trained": record < 20, "measure": measure, "evidence": "retraining",
            "memorised": record < 2, "p_corrected": 0.2,
            "p_value": 0.5 if measure == "loss attack" else 0.003 * (20 - record) + 0.02 * seed,
            "score": 1.0,
        }
        for seed in (0, 1)
        for record in range(24)
        for measure in ("loss attack", "contextual")
    ]  # fmt: skip
    given = {kinds.ANSWERS.name: pd.DataFrame(rows)}
    (single,) = found(given, 0.05)
    assert single["ids"] == [f"r{19 - place}" for place in range(13)]
    assert (single["measure"], single["n_trained"], single["n_unseen"]) == ("contextual", 20, 4)
    table = surest_rows(single)
    assert [row["record"] for row in table] == [f"r{19 - place}" for place in range(MOST)]
    assert table[0]["p"] == "0.013"
    assert table[0]["corrected"] == "0.2"
    assert table[0]["memorised"] == "0 of 2"
    opening = part({**given, kinds.SHARES.name: shares(["m"], [0])}).opening
    assert f"the lowest first: {', '.join(single['ids'])}. All records: <code>" in opening
    assert "results/records.csv" in opening
    assert "13 have median p ≤ 0.05" in opening
    assert opening.index("r19") < opening.index("<table>")
    unknown = pd.DataFrame(rows).assign(p_value=np.nan, p_corrected=np.nan)
    (nothing,) = found({kinds.ANSWERS.name: unknown}, 0.05)
    assert surest_rows(nothing) == []


def test_many_records_are_counted_and_not_all_named():
    tables = losses_of(40, 60)
    opening = part(tables).opening
    assert f"r{MOST_NAMED - 21}" in opening
    assert "more" not in opening
    several = tables[kinds.ANSWERS.name]
    extra = several.assign(id="x" + several["id"])
    opening = part({**tables, kinds.ANSWERS.name: pd.concat([several, extra])}).opening
    assert f", and {80 - MOST_NAMED} more. All records" in opening


def test_the_page_says_where_texts_differ_in_kind():
    chapters = {alike: part(only_asked(lower=1, alike=alike)).chapters for alike in (True, False)}
    said = {alike: "".join(one.before for one in own) for alike, own in chapters.items()}
    assert "they differ in kind, so the loss attack says nothing of them" in said[False]
    assert "differ in kind" not in said[True]
