"""docs/records.md: its table is read, and its code runs."""

import contextlib
import io
import json
import re

import yaml

from helpers.experiments import DEFAULT, experiment
from helpers.projects import ROOT
from helpers.tiny_language_models import write

PAGE = (ROOT / "docs/records.md").read_text()


def block(language: str, place: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[place]


def test_the_example_runs(tmp_path, monkeypatch):
    """One of the two trained records is memorised, and by no measure the third one, but one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "losses.csv").write_text(block("csv"))
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(block("python"), names)
    assert "share_unseen" in printed.getvalue()
    table = names["found"].table.set_index(["measure", "id"])["memorised"]
    assert table["recollection"].to_dict() == {"ann-1": True, "ben-1": False, "eve-1": False}
    assert table["counterfactual"].to_dict() == {"ann-1": True, "ben-1": True, "eve-1": False}


def test_the_example_with_a_checkpoint_runs(tmp_path, monkeypatch):
    """With a tiny model of random weights, and another one as its reference."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records.jsonl").write_text(block("json"))
    write(tmp_path / "my-model")
    write(tmp_path / "its-base-model", seed=1)
    names: dict = {}
    exec(block("python", 1), names)
    table = names["found"].table
    assert table["measure"].unique().tolist() == ["reference", "loss attack"]
    assert set(table["id"]) == {"ann-1", "eve-1"}


def test_the_question_of_the_readme_needs_nothing_else(tmp_path, monkeypatch):
    """Its lines of configuration ask two models about records, and train nothing on them."""
    part = (ROOT / "README.md").read_text().partition("## Which of your records")[2]
    (text,) = re.findall(r"```yaml\n(.*?)```", part.partition("\n## ")[0], re.DOTALL)
    for name in ("my-model", "its-base-model"):
        (tmp_path / name).mkdir()
        text = text.replace(f"{name}/", f"{tmp_path}/{name}/")
    row = {"text": "a note", "id": "a", "group": "g", "in_training": True}
    notes = [row, {**row, "text": "another", "id": "b", "group": "h", "in_training": False}]
    (tmp_path / "notes.jsonl").write_text("\n".join(map(json.dumps, notes)))
    text = text.replace("notes.jsonl", f"{tmp_path}/notes.jsonl")
    monkeypatch.chdir(ROOT)
    asked = experiment(DEFAULT, command_line=yaml.safe_load(text), targets=["records"])
    assert "results/records.csv" in asked.outputs["records"]
    assert not [runs for runs in asked.requests if runs.names["language"] == "mine"]


def test_every_measure_and_column_is_on_the_page():
    from palimpsest.records import answers
    from palimpsest.records.losses import NEEDED, OPTIONAL

    for column in (*NEEDED, *OPTIONAL):
        assert f"\n| `{column.name}` | " in PAGE
    for measure in ("recollection", "counterfactual", "contextual", "reference", "loss attack"):
        assert f"\n| {measure} | " in PAGE
        assert measure in answers.__doc__


def test_every_column_and_form_of_records_is_on_the_page():
    from palimpsest.corpora.record_forms import FORMS
    from palimpsest.corpora.records import NEEDED, OPTIONAL, SPLITS
    from palimpsest.tables.user_files import COMPRESSED, TEXTS, listed

    table = PAGE.partition("### Files of records")[2].partition("\n## ")[0]
    for column in (*NEEDED, *OPTIONAL):
        assert f"\n| `{column.name}` | " in table
    assert listed(SPLITS) in table
    for ending in (*TEXTS, *COMPRESSED):
        assert f"`{ending}`" in table
    for name, form in FORMS.items():
        row = table.partition(f"\n| `{name}` | ")[2].partition("\n")[0]
        for names in form.columns:
            assert all(f"`{column}`" in row for column in names.values())
