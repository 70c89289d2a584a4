"""Losses of records that users bring: what is read, and what is refused in one line."""

import pandas as pd
import pytest

from helpers.edits import changed_cell as cell
from helpers.experiments import message
from palimpsest import records

ROWS = [
    ("a", 0, 2.0, 2.5, "yes", "ann"),
    ("b", 0, 3.0, 3.0, "no", "ben"),
    ("b", 10, 2.9, 2.8, "no", "ben"),
    ("a", 10, 0.5, 2.0, "yes", "ann"),
]
COLUMNS = ["id", "checkpoint", "loss", "loss_without", "trained", "group"]


@pytest.fixture
def frame():
    return pd.DataFrame(ROWS, columns=COLUMNS)


def written(frame, path):
    """The frame as a file of the kind that its name says."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("name", ["mine.csv", "mine.jsonl", "mine.parquet"])
def test_a_file_is_read(frame, tmp_path, name):
    """In any order of its rows, and with names of its own."""
    path = written(frame.rename(columns={"id": "key", "loss": "nll"}), tmp_path / name)
    losses = records.read_losses(path, {"id": "key", "loss": "nll"})
    assert losses.ids.tolist() == ["a", "b"]
    assert losses.checkpoints.tolist() == [0, 10]
    assert losses.loss.tolist() == [[2.0, 3.0], [0.5, 2.9]]
    assert losses.without.tolist() == [[2.5, 3.0], [2.0, 2.8]]
    assert losses.reference is None
    assert losses.trained.tolist() == [True, False]
    assert losses.groups.tolist() == ["ann", "ben"]


def test_without_groups_every_record_is_a_group(frame):
    assert records.to_losses(frame.drop(columns="group")).groups.tolist() == ["a", "b"]


@pytest.mark.parametrize("words", [("true", "false"), (True, False), (1, 0), ("Yes", "NO")])
def test_whether_a_record_was_trained_on(frame, words):
    yes, no = words
    frame["trained"] = [yes if id == "a" else no for id in frame["id"]]
    assert records.to_losses(frame).trained.tolist() == [True, False]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (cell("loss", 2, -0.5), "losses: row 2: loss -0.5 is negative; mend the row or leave"),
        (cell("loss", 1, None), "losses: row 1: loss is empty; mend the row or leave the record"),
        (cell("loss_without", 3, "x"), "losses: row 3: loss_without 'x' is not a finite number"),
        (cell("id", 1, None), "losses: row 1: id is empty"),
        (cell("checkpoint", 2, float("inf")), "losses: row 2: checkpoint inf is not finite"),
        (
            cell("trained", 3, "maybe"),
            "losses: row 3: trained 'maybe' is not true or false; mend the row or leave the record "
            "out",
        ),
        (
            cell("trained", 4, "no"),
            "losses: row 4: trained is 'no', and in row 1 the same record has 'yes'; a record has "
            "one",
        ),
        (cell("group", 3, "bob"), "losses: row 3: group is 'bob', and in row 2 the same record"),
        (
            cell("checkpoint", 4, 0),
            "losses: row 4: the record 'a' has a loss at checkpoint 0 in row 1 already; delete one "
            "of the two rows",
        ),
        (
            lambda frame: frame.drop(index=2),
            "losses: row 2: the record 'b' has losses at 1 of 2 checkpoints; measure it at all of "
            "them, or leave the record out",
        ),
        (
            lambda frame: frame.assign(trained="no"),
            "losses: no record was trained on; add some to ask about",
        ),
        (
            lambda frame: frame.rename(columns={"loss": "lsos"}),
            "losses: has no column 'loss' (did you mean 'lsos'?); it has: id, checkpoint, lsos",
        ),
        (lambda frame: frame.head(0), "losses: has no rows; add them: a table of losses has one"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_line(frame, edit, said):
    """The line names the row, what is wrong, and the remedy."""
    found = message(lambda: records.to_losses(edit(frame)))
    assert found.startswith(said)
    assert "\n" not in found


def test_a_column_that_the_table_does_not_have_is_named(frame):
    found = message(lambda: records.to_losses(frame, columns={"loss_reference": "other"}))
    assert found.startswith("losses: has no column 'other' for 'loss_reference'")
