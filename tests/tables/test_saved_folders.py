"""Folders that `datasets` saved, without that package: what is read, and what is refused."""

import json

import pyarrow as pa
import pytest

from helpers.experiments import message
from helpers.saved_folders import write_dataset, write_splits
from palimpsest.tables import saved_folders

TABLE = pa.table({"text": ["a", "b", "c", "d", "e"], "score": [1, 2, 3, 4, 5]})


def rows(folder, *columns):
    """The columns of a folder, each as a list."""
    found = {name: [] for name in columns}
    for part in saved_folders.opened(folder).read(list(columns)):
        for name in columns:
            found[name] += part.cells[name].to_pylist()
    return found


@pytest.mark.parametrize("n_files", [1, 3])
def test_rows_are_in_the_order_of_the_dataset(tmp_path, n_files):
    """Whatever files and batches they are spread over."""
    folder = write_dataset(tmp_path / "mine", TABLE, n_files)
    assert len(list(folder.glob("*.arrow"))) == n_files
    assert saved_folders.opened(folder).columns == ["text", "score"]
    assert rows(folder, "score", "text") == {**TABLE.to_pydict()}


def test_files_are_in_the_order_that_the_state_names(tmp_path):
    folder = write_dataset(tmp_path / "mine", TABLE, 5)
    state = json.loads((folder / "state.json").read_text())
    state["_data_files"].reverse()
    (folder / "state.json").write_text(json.dumps(state))
    assert rows(folder, "text") == {"text": ["e", "d", "c", "b", "a"]}


def test_the_names_of_splits_are_a_column(tmp_path):
    """In the order of the dictionary; a split may have no row."""
    parts = {"train": TABLE[:2], "extra": TABLE[:0], "test": TABLE[2:]}
    folder = write_splits(tmp_path / "mine", parts)
    assert saved_folders.opened(folder).columns == ["text", "score", "split"]
    assert rows(folder, "text", "split") == {
        "text": ["a", "b", "c", "d", "e"],
        "split": ["train", "train", "test", "test", "test"],
    }


def test_a_column_of_splits_is_left_as_it_is(tmp_path):
    table = TABLE.append_column("split", pa.array(["forget"] * 5))
    folder = write_splits(tmp_path / "mine", {"train": table})
    assert saved_folders.opened(folder).columns == ["text", "score", "split"]
    assert rows(folder, "split") == {"split": ["forget"] * 5}


def test_a_dataset_without_rows_has_columns(tmp_path):
    opened = saved_folders.opened(write_dataset(tmp_path / "mine", TABLE[:0]))
    assert opened.columns == ["text", "score"]
    assert not list(opened.read(["text"]))


def changed(name, change):
    """An edit of one file's bytes."""

    def edit(folder):
        path = folder / name
        path.write_bytes(change(path.read_bytes()))

    return edit


FILE = "data-00000-of-00001.arrow"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            lambda folder: (folder / "state.json").unlink(),
            "mine: is no folder that `datasets` saved: it has no state.json and no "
            "dataset_dict.json; nor has it .txt files; name a file in it, or save it again with "
            "save_to_disk",
        ),
        (lambda folder: (folder / "dataset_info.json").unlink(), "dataset_info.json: cannot be re"),
        (lambda folder: (folder / FILE).unlink(), f"{FILE}: cannot be read as Arrow: [Errno 2]"),
        (changed("state.json", lambda data: data[:-5]), "state.json: is not JSON (Expecting"),
        (changed("state.json", lambda data: b"[]"), "state.json: is no JSON object; save it again"),
        (changed("state.json", lambda data: b"{}"), "state.json: is not as `datasets` saves it; s"),
        (
            changed("state.json", lambda data: data.replace(b"data-0", b"other-0")),
            "other-00000-of-00001.arrow: cannot be read as Arrow: [Errno 2]",
        ),
        (
            changed("dataset_info.json", lambda data: b'{"features": null}'),
            "dataset_info.json: is not as `datasets` saves it",
        ),
        (changed(FILE, lambda data: b""), f"{FILE}: cannot be read as Arrow: "),
        (changed(FILE, lambda data: b"x" * 100), f"{FILE}: cannot be read as Arrow: "),
        (changed(FILE, lambda data: data[:-1]), f"{FILE}: is cut off; copy it again, or save it"),
        (changed(FILE, lambda data: data[:-8]), f"{FILE}: is cut off; copy it again, or save it"),
        (changed(FILE, lambda data: data[: len(data) // 2]), f"{FILE}: is cut off; copy it again"),
    ],
)
def test_a_damaged_folder_is_refused_in_one_line(tmp_path, edit, said):
    """Arrow takes a file without its last bytes, and gives fewer rows."""
    folder = write_dataset(tmp_path / "mine", TABLE)
    edit(folder)
    assert said in message(lambda: rows(folder, "text"))


def test_a_dictionary_that_names_no_splits_is_refused(tmp_path):
    folder = write_splits(tmp_path / "mine", {"train": TABLE})
    (folder / "dataset_dict.json").write_text('{"splits": [1]}')
    said = message(lambda: saved_folders.opened(folder))
    assert said == (
        f"{folder}/dataset_dict.json: is not as `datasets` saves it; save it again with "
        "save_to_disk"
    )


def test_a_text_that_is_not_utf8_is_named_with_its_file_and_row(tmp_path):
    cells = pa.array([b"a", b"b", b"a\xff"]).view(pa.string())
    folder = write_dataset(tmp_path / "mine", pa.table({"text": cells}))
    assert message(lambda: rows(folder, "text")).startswith(
        f"{folder / FILE}: row 3: 'text' is not UTF-8 text (byte 0xff)"
    )


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (TABLE.drop_columns("score"), "has no column 'score', which is in {}/train; make them"),
        (
            TABLE.set_column(1, "score", pa.array(["1"] * 5)),
            "column 'score' is of the type string, and of int64 in {}/train; make them alike, or "
            "read the folder of one split",
        ),
    ],
)
def test_splits_with_different_columns_are_refused(tmp_path, other, said):
    """Where the column is asked for; other columns may differ."""
    folder = write_splits(tmp_path / "mine", {"train": TABLE, "test": other})
    found = message(lambda: rows(folder, "score"))
    assert found.startswith(f"{folder}/test: {said.format(folder)}")
    assert len(rows(folder, "text")["text"]) == 10
    assert len(rows(folder / "test", "text")["text"]) == 5
