"""The part of the report on information measures, with tables, with none and with one seed."""

import numpy as np
import pandas as pd
import pytest

from helpers import information_worlds as worlds
from palimpsest.estimates import with_interval
from palimpsest.information.claims import QUESTIONS
from palimpsest.information.kinds import (
    ENCODERS,
    EPOCHS,
    GIVEN_ASSOCIATIONS,
    GIVEN_LAYERS,
    INFORMATION,
    MARKERS,
    SCORES,
)
from palimpsest.information.report import part
from palimpsest.statistics import student

CHAPTERS = ["diversity", "comparison", "epochs", "encoders", "given"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """What the paper expects."""
    return worlds.information(worlds.EXPECTED, 3, seeds=3)


def chapters(table: pd.DataFrame) -> dict:
    """The text before the figures of each chapter."""
    return {chapter.id: chapter.before for chapter in part({INFORMATION.name: table}).chapters}


def test_the_report_says_what_was_found(table):
    found = chapters(table)
    assert list(found) == CHAPTERS
    assert found["diversity"].count("<td") > 1
    for share, is_shown in ((0, True), (0.5, False), (1, True)):
        rows = table[(table["intervention"] == MARKERS) & (table["share"] == share)]
        accuracy = with_interval(student(rows.groupby("seed")["accuracy"].mean()))
        assert (accuracy in found["comparison"]) == is_shown
    assert "nan" not in "".join(map(str, found.values()))
    # Runs with shuffled answers have no markers.


def test_the_report_without_tables_has_headings_only():
    found = part({})
    assert [chapter.id for chapter in found.chapters] == CHAPTERS
    assert not any(chapter.before for chapter in found.chapters)
    assert found.questions == QUESTIONS


def test_the_report_of_one_seed_has_no_intervals(table):
    found = chapters(table[table["seed"] == 0])
    assert "nan" not in "".join(map(str, found.values()))
    assert all('<td class="numbers">[' not in text and " [" not in text for text in found.values())


def test_the_report_says_what_encoders_do():
    """Of each alpha and beta, and of the placebo: the mean of each number over the seeds."""
    table = worlds.encoders(worlds.EXPECTED, 1).assign(compression_group=np.nan)
    text = {chapter.id: chapter.before for chapter in part({ENCODERS.name: table}).chapters}
    own = table[(table["variant"] == "marked-50") & (table["layer"] == 5)]
    for name in ("accuracy_disagrees", "compression_word"):
        values = own[own["position"] == "cls"].groupby("seed")[name].first()
        assert with_interval(student(values)) in text["encoders"]
    assert text["encoders"].count("random words (placebo)") == 2
    assert "nan" not in text["encoders"]


def test_the_report_says_what_changes_when_memorisation_starts():
    """By layer, of all layers, and of seeds in which it never starts."""
    table = worlds.epochs([0.5, 0.4, 0.6])
    text = {chapter.id: chapter.before for chapter in part({EPOCHS.name: table}).chapters}["epochs"]
    assert text.count("<td>3, 3, 3</td>") == 4
    beyond = with_interval(student(pd.Series([0.5, 0.4, 0.6])))
    assert text.count(beyond) == 4
    assert with_interval(student(pd.Series([0.3, 0.3, 0.3]))) in text
    never = worlds.epochs([0.5], start=9)
    text = {chapter.id: chapter.before for chapter in part({EPOCHS.name: never}).chapters}["epochs"]
    assert "<td>never</td>" in text
    assert "nan" not in text


def given_layers(doses: tuple, seeds: int) -> pd.DataFrame:
    """Two layers of a model for each seed and dose; entropy is 2 + dose + seed / 10."""
    return pd.DataFrame(
        [
            {
                "language": "mine",
                "model": f"model-{place}-{seed}",
                "seed": seed,
                "dose": dose,
                "layer_name": name,
                "n_samples": 60,
                "copies": 0.02,
                "n_neurons": 8,
                "n_degenerate": 2,
                **dict.fromkeys(SCORES, 2 + (dose or 0) + seed / 10),
            }
            for seed in range(seeds)
            for place, dose in enumerate(doses)
            for name in ("first", "second")
        ]
    ).astype({"dose": float})


def test_the_report_has_given_activations_by_dose_or_by_name():
    """A row for each dose and layer, over the seeds; without doses, for each model and layer."""
    tables = {GIVEN_LAYERS.name: given_layers((0.0, 0.5), 3)}
    text = {each.id: each.before for each in part(tables).chapters}["given"]
    assert text.count("<td>first</td>") == 2
    assert with_interval(student([2.5, 2.6, 2.7])) in text
    assert "25\N{NO-BREAK SPACE}%" in text
    named = {GIVEN_LAYERS.name: given_layers((None, None), 1)}
    text = {each.id: each.before for each in part(named).chapters}["given"]
    assert ">model-1-0</td>" in text
    assert "nan" not in text


def test_the_report_says_how_given_models_are_ordered():
    """What is compared with accuracy, dose or a given score; not the measures with each other."""
    row = {"language": "mine", "n_models": 5, "n_seeds": 1, "tau": 0.6, "p_value": 0.233}
    ends = ("tau", "pearson", "slope")
    row |= {f"{name}{end}": np.nan for name in ends for end in ("_lower", "_upper")}
    row |= {"pearson": 0.7, "slope": np.nan}
    pairs = [("entropy", "accuracy"), ("entropy", "two_norm"), ("entropy", "mutual_information")]
    rows = pd.DataFrame([{**row, "score": one, "other": other} for one, other in pairs])
    text = {each.id: each.before for each in part({GIVEN_ASSOCIATIONS.name: rows}).chapters}[
        "given"
    ]
    assert text.count("<td>entropy</td>") == 2
    assert "<td>two norm</td>" in text
    assert "0.233" in text
    assert "nan" not in text
