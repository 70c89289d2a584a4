"""Records of a user's own: what is read from a file, and what is refused in one line."""

import json

import numpy as np
import pytest

from helpers.experiments import message
from palimpsest.corpora.records import SPLITS, Records, read_records


def write_jsonl(path, **columns):
    """A file with a line for each record; a value None leaves the field out."""
    rows = [
        {name: value for name, value in zip(columns, values, strict=True) if value is not None}
        for values in zip(*columns.values(), strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(folder, **columns) -> Records:
    return read_records(write_jsonl(folder / "mine.jsonl", **columns))


def test_what_a_file_does_not_say_is_none(tmp_path):
    """A part of the data does not say whether this model was trained on the record."""
    assert Records(np.array(["1"]), np.array(["one"]), None, np.array(["1"])).splits is None
    plain = read(tmp_path, text=["one"])
    assert (plain.splits, plain.copies, plain.prompts, plain.trained) == (None,) * 4
    parted = read(tmp_path, text=["one", "two"], split=["train", "test"])
    assert parted.splits.tolist() == ["train", "test"]
    assert parted.trained is None


def test_parts_copies_and_prompts_are_read(tmp_path):
    found = read(
        tmp_path,
        text=["one", "two", "three", "four", "five"],
        split=list(SPLITS),
        copies=[1, 2.0, "3", 40, 2**40],
        prompt=["Say one: ", None, "", " ", 7],
    )
    assert found.splits.tolist() == list(SPLITS)
    assert found.copies.tolist() == [1, 2, 3, 40, 2**40]
    assert found.copies.dtype == np.int64
    assert found.prompts.tolist() == ["Say one: ", "", "", " ", "7"]


def test_no_prompt_at_all_is_an_empty_text(tmp_path):
    assert read(tmp_path, text=["one", "two"], prompt=["", ""]).prompts.tolist() == ["", ""]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"split": ["train", "Train"]},
            "mine.jsonl:2: split 'Train' is no such part (did you mean 'train'?); mend the row or "
            "leave the record out: the column holds the part of the data (train, test, holdout, "
            "forget or retain)",
        ),
        ({"split": ["training", "test"]}, ":1: split 'training' is no such part (did you mean 'tr"),
        ({"split": ["test", "held_out"]}, ":2: split 'held_out' is no such part (did you mean 'ho"),
        ({"split": ["validation", "test"]}, ":1: split 'validation' is no such part; mend the row"),
        ({"split": ["train", None]}, "mine.jsonl:2: split is empty; mend the row"),
        (
            {"copies": [1, 0]},
            "mine.jsonl:2: copies 0 is not a whole number from 1; mend the row or leave the record "
            "out: the column holds how often the record is in the training data",
        ),
        ({"copies": [1.5, 1]}, "mine.jsonl:1: copies 1.5 is not a whole number from 1"),
        ({"copies": [1, -1]}, "mine.jsonl:2: copies -1 is not a whole number from 1"),
        ({"copies": [1, 2**53]}, "mine.jsonl:2: copies 9007199254740992 is not a whole number"),
        ({"copies": [1, "many"]}, "mine.jsonl:2: copies 'many' is not a finite number"),
        ({"copies": [1, None]}, "mine.jsonl:2: copies is empty"),
        ({"prompt": ["Say: ", ["a"]]}, "mine.jsonl:2: prompt ['a'] is not a name"),
        (
            {"prompt": ["Say: ", "\ud800"]},
            "mine.jsonl:2: prompt '\\ud800' is a text with half a character",
        ),
        ({"id": ["a", "\ud800"]}, "mine.jsonl:2: id '\\ud800' is a text with half a character"),
        (
            {"text": ["one", "\ud800"]},
            "mine.jsonl:2: text '\\ud800' is a text with half a character",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_row(tmp_path, columns, said):
    columns = {"text": ["one", "two"], **columns}
    assert said in message(lambda: read(tmp_path, **columns))
