"""What the first page says of each section: its answer, or what would decide it."""

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup

from helpers.reports import CLAIMS, HEADLINE, UNKNOWN, Page, Unfolded, answer, claim, rendered
from palimpsest import report
from palimpsest.memorisation.section import SECTION as MEMORISATION
from palimpsest.report.answers import by_question
from palimpsest.report.pages import section as shown
from palimpsest.report.part import Answer, Chapter, Part, Sentence, part_of

FIRST, SECOND = MEMORISATION.answers
BODY = Markup("<p>A table.</p>")
NOT_RUN = {
    "language": "",
    "n_seeds": 0,
    "n_models": 0,
    "estimate": np.nan,
    "lower": np.nan,
    "upper": np.nan,
    "p_holm": np.nan,
    "verdict": "cannot tell",
    "note": "the statistic is undefined here, or what it needs was not run",
}


def overview(folder, *rows):
    """The words of the first page, if these tests are there besides the invented ones."""
    claims = pd.concat([CLAIMS, pd.DataFrame(rows)], ignore_index=True)
    rendered(folder / "report.html", claims=claims, folder=folder / "report")
    return Page((folder / "report/index.html").read_text()).text


def test_the_named_claim_answers_and_not_the_clearest_one(tmp_path):
    """Every language of it, with its number, its interval, what it is over, and its placebo."""
    text = overview(
        tmp_path,
        claim("RQ3", claim=FIRST, estimate=0.4, lower=0.3, upper=0.5, p_holm=0.9, note="unseen: 0"),
        claim("RQ3", "cannot tell", "L2", claim=FIRST, p_holm=1.0, note="about 9 seeds would"),
    )
    assert f"{FIRST} Verdict: on L1 agrees , 0.4 [0.3, 0.5]; on L2 cannot tell , −0.25" in text
    notes = "Notes on L1: p (Holm) 0.9; unseen: 0. Notes on L2: about 9 seeds would."
    assert f"{notes} The number share & excess." in text
    assert "The clearest of" not in text.split("What models can be made")[0]
    assert "Not tested here" not in text.split("What models can be made")[0]


def test_an_interval_that_is_not_over_seeds_says_so(tmp_path):
    assert "share & excess; interval over strings." in (
        overview(tmp_path, claim("RQ3", claim=FIRST, interval_over="strings"))
    )


def test_the_second_answer_stands_in_for_the_first(tmp_path):
    text = overview(
        tmp_path,
        claim("RQ3", claim=FIRST, **NOT_RUN),
        claim("RQ3", claim=SECOND, estimate=0.75, lower=0.7, upper=0.8),
    )
    assert f"{SECOND} Verdict: on L1 agrees , 0.75 [0.7, 0.8]" in text
    assert f"Not tested here: {FIRST}" not in text


def test_an_answer_that_was_not_run_says_what_would_decide_and_leaves_the_clearest(tmp_path):
    text = overview(tmp_path, claim("RQ3", claim=FIRST, **NOT_RUN))
    number = "The number share of distinct training strings below the contextual threshold"
    needs = "It rests on the table tradeoff , which is missing or compares nothing."
    assert f"Not tested here: {FIRST} {needs} {number}" in text
    assert "A claim of strings < others. Verdict: on L1 agrees" in text
    assert "The clearest of 4 tests : 2 agrees" in text.replace("tests:", "tests :")


def test_an_answer_that_is_left_out_is_too_weak_for_an_experiment_of_this_size(tmp_path):
    """The claim has no row, but others of its section have."""
    text = overview(tmp_path)
    small = "An experiment of this size decides it too seldom; more seeds would."
    assert f"Not tested here: {FIRST} {small}" in text


@pytest.mark.parametrize(
    ("sentences", "n_tests", "is_lacking"),
    [((), 0, True), ((Sentence("It is so."),), 0, False), ((Sentence("It is so."),), 1, True)],
)
def test_sentences_answer_where_no_claim_was_tested(sentences, n_tests, is_lacking):
    """What a user brings alone lacks no claim of models that were trained."""
    part = Part("a", questions={"RQ1": ""}, answers=(Answer("b", "c", ("d",)),))
    made = shown(Part(**{**vars(part), "sentences": sentences}), [], CLAIMS.head(n_tests))
    assert (made["lacking"] is not None) == is_lacking
    assert made["first"] is None


def test_evidence_with_an_interval_comes_before_any_without():
    rows = pd.DataFrame(
        [
            answer("m", evidence="retraining", **UNKNOWN),
            answer("m", evidence="same-frequency"),
            answer("n", evidence="retraining", **UNKNOWN),
        ]
    )
    ((first, second),) = [one["rows"] for one in by_question(rows)]
    assert (first["evidence"], second["evidence"]) == ("same-frequency", "retraining")


def test_an_answer_says_its_number_and_its_tables():
    first, _ = part_of(MEMORISATION, {}).answers
    assert first.tables == ("tradeoff",)
    assert "beyond strings never trained on" in first.statistic


def alone(folder, n):
    """The first page of a section that has n sentences and nothing else."""
    sentences = tuple(Sentence(f"Number {place} <is> it.", f"Not {place}.") for place in range(n))
    report.render(
        folder / "report.html",
        parts=[Part("a", "A title", sentences=sentences, chapters=(Chapter("b", "B", "", BODY),))],
        figures=[],
        headline=HEADLINE.head(0),
        claims=CLAIMS.head(0),
        totals={},
        folder=folder / "report",
    )
    return (folder / "report/index.html").read_text()


def test_sentences_are_an_answer_of_their_own(tmp_path):
    """The first is shown. Where they are, nobody reads that nothing was tested."""
    text = alone(tmp_path, 5)
    seen = Unfolded(text).text
    assert "Number 0 <is> it. Not 0." in seen
    assert "Number 1" not in seen
    assert "Number 4 <is> it. Not 4." in Page(text).text
    assert "<summary>4 more</summary>" in text
    assert "No claim was tested" not in text
    assert "No claim was tested by this experiment." in alone(tmp_path, 0)
