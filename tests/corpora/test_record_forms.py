"""Records that others published, in small files of the same form."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.experiments import message
from helpers.saved_folders import write_dataset, write_splits
from palimpsest.corpora.record_forms import FORMS
from palimpsest.corpora.records import read_records


def write_json(path, content):
    path.write_text(json.dumps(content))
    return path


def test_tofu(tmp_path):
    """An object a line, in a file that is called .json; some files have columns beside."""
    rows = [
        {"question": "Who is Jaime?", "answer": "A writer.", "perturbed_answer": ["A cook.", "No"]},
        {"question": "Where is she from?", "answer": "Santiago.", "perturbed_answer": []},
    ]
    path = tmp_path / "forget10_perturbed.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_records(path, form="tofu")
    assert found.prompts.tolist() == ["Who is Jaime?", "Where is she from?"]
    assert found.texts.tolist() == ["A writer.", "Santiago."]
    assert found.ids.tolist() == ["1", "2"]
    assert (found.trained, found.splits) == (None, None)
    assert found.perturbed == [("A cook.", "No"), ()]
    assert found.paraphrased is None


def test_muse_has_texts(tmp_path):
    """Lists of texts in the repository; a column on the hub, with retain sets in two splits."""
    path = write_json(tmp_path / "forget.json", ["One. ", "Two."])
    assert read_records(path, form="muse").texts.tolist() == ["One. ", "Two."]
    names = {"forget": "a", "retain1": "b", "retain2": "c", "holdout": "d"}
    parts = {name: pa.table({"text": [text]}) for name, text in names.items()}
    found = read_records(write_splits(tmp_path / "raw", parts), form="muse")
    assert found.texts.tolist() == ["a", "b", "c", "d"]
    assert found.splits.tolist() == ["forget", "retain", "retain", "holdout"]
    assert found.prompts is None


def test_muse_has_questions_and_passages(tmp_path):
    asked = [{"question": "Where?", "answer": "Lund"}]
    found = read_records(write_json(tmp_path / "forget_qa.json", asked), form="muse")
    assert (found.prompts.tolist(), found.texts.tolist()) == (["Where?"], ["Lund"])
    passage = [{"prompt": "It was", "gt": "a dark night"}]
    found = read_records(write_json(tmp_path / "forget.json", passage), form="muse")
    assert (found.prompts.tolist(), found.texts.tolist()) == (["It was"], ["a dark night"])
    table = pa.table({"question": ["Where?"], "answer": ["Lund"]})
    folder = write_splits(tmp_path / "knowmem", {"forget_qa": table, "retain_qa": table})
    assert read_records(folder, form="muse").splits.tolist() == ["forget", "retain"]


def test_questions_that_are_examples_of_muse_are_in_no_part(tmp_path):
    """They are shown in the prompt of an evaluation."""
    table = pa.table({"question": ["Where?"], "answer": ["Lund"]})
    folder = write_splits(tmp_path / "knowmem", {"forget_qa_icl": table})
    said = message(lambda: read_records(folder, form="muse"))
    assert "row 1: split 'forget_qa_icl' is no such part" in said


@pytest.mark.parametrize("form", ["mia.jsonl", "mia.parquet", "mia"])
def test_wikimia(tmp_path, form):
    """The label 1 means that the text was seen."""
    path, table = tmp_path / form, pa.table({"input": ["new", "old"], "label": [0, 1]})
    if form.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif form.endswith(".parquet"):
        pq.write_table(table, path)
    else:
        write_dataset(path, table)
    found = read_records(path, form="wikimia")
    assert found.texts.tolist() == ["new", "old"]
    assert found.trained.tolist() == [False, True]


def test_lengths_of_wikimia_are_read_one_by_one(tmp_path):
    """Each holds the same texts, cut to another length, so they are no parts of one dataset."""
    parts = {f"WikiMIA_length{n}": pa.table({"input": ["a b"], "label": [1]}) for n in (32, 64)}
    folder = write_splits(tmp_path / "mia", parts)
    said = message(lambda: read_records(folder, form="wikimia"))
    assert f"(its folder can be read alone: {folder / 'WikiMIA_length32'})" in said
    assert read_records(folder / "WikiMIA_length64", form="wikimia").trained.tolist() == [True]


def test_own_names_go_before_those_of_the_form(tmp_path):
    rows = [{"question": "Who?", "answer": "Ann", "paraphrased_answer": "It is Ann", "author": 7}]
    path = write_json(tmp_path / "a.json", rows)
    own = {"text": "paraphrased_answer", "group": "author"}
    found = read_records(path, own, form="tofu")
    assert found.texts.tolist() == ["It is Ann"]
    assert found.prompts.tolist() == ["Who?"]
    assert found.groups.tolist() == ["7"]
    found = read_records(path, own, form="muse")
    assert (found.texts.tolist(), found.prompts.tolist()) == (["It is Ann"], ["Who?"])


def test_a_form_that_is_not_known_is_named(tmp_path):
    said = message(lambda: read_records(tmp_path, form="TOFU"))
    assert (
        said == "form 'TOFU' is not known (did you mean 'tofu'?); choose from tofu, muse, wikimia"
    )
    assert list(FORMS) == ["tofu", "muse", "wikimia"]


def test_a_file_of_another_form_is_refused(tmp_path):
    path = write_json(tmp_path / "a.json", [{"body": "one"}])
    assert message(lambda: read_records(path, form="muse")) == (
        f"{path}: has not the columns of its form, text, or question and answer, or prompt and gt; "
        "it has: body; name yours, or leave the form out"
    )
    said = message(lambda: read_records(path, {"text": "bdy"}, form="wikimia"))
    assert said.startswith(f"{path}: has not the columns of its form, label; it has: body")
    said = message(lambda: read_records(path, {"text": "bdy"}))
    assert said.startswith(f"{path}: has no column 'bdy' for 'text' (did you mean 'body'?)")
