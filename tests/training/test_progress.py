"""What is said of a job that was interrupted, and of one that resumes."""

import pytest

from palimpsest import launch
from palimpsest.training.progress import NOTE, kept, note_work, say_resumed, telling_what_is_kept


@pytest.fixture
def note(tmp_path, monkeypatch):
    """The note of a job."""
    monkeypatch.setenv(NOTE, str(tmp_path / "note.json"))
    return tmp_path / "note.json"


def state(folder, *names):
    """A folder of state with some files."""
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    return folder


def test_epochs_of_several_runs_are_added_up(tmp_path, note):
    """A finished run has all of its epochs, a half-written checkpoint none."""
    wholes = {
        state(tmp_path / "finished", "manifest.json", "trace.parquet"): 50,
        state(tmp_path / "saved", "epoch-000005", "epoch-000010", "partial-000015"): 40,
        tmp_path / "not begun": 30,
    }
    note_work("3 runs of twin", "epochs", wholes)
    assert kept(note) == "60 of 120 epochs of 3 runs of twin are kept"


def test_only_whole_parts_of_models_count(tmp_path, note):
    """A part has a table of every kind; a part of an older job may overlap another."""
    names = ("0-3-a", "0-3-b", "2-5-a", "2-5-b", "6-9-a", ".6-9-b")
    folder = state(tmp_path / "parts", *(f"{name}.parquet" for name in names), "about.json")
    note_work("twin on L1", "models", {folder: 12}, n_tables=2)
    assert kept(note) == "6 of 12 models of twin on L1 are kept"


@pytest.mark.parametrize("content", [None, "", "{"])
def test_without_a_note_nothing_is_claimed(tmp_path, content):
    """As before the work began, or if the note is torn."""
    if content is not None:
        (tmp_path / "note").write_text(content)
    assert kept(tmp_path / "note") == ""
    assert str(launch.Interrupted(2)) == "interrupted; the same command continues"


def test_an_interruption_takes_the_note_along(tmp_path, monkeypatch):
    """The note is deleted however the job ends."""
    path = tmp_path / "progress" / "job.json"
    monkeypatch.setenv(NOTE, "")

    def work():
        with telling_what_is_kept(path):
            note_work("twin", "epochs", {state(tmp_path / "saved", "epoch-000002"): 5})
            raise launch.Interrupted(15)

    with pytest.raises(launch.Interrupted) as interrupted:
        work()
    assert not path.exists()
    assert str(interrupted.value) == (
        "interrupted; 2 of 5 epochs of twin are kept; the same command continues"
    )
    assert interrupted.value.status == 143


def test_a_resumed_job_says_from_where(capsys):
    """With the words that people search for."""
    say_resumed("twin, runs 1 to 4 of 4", "epoch", 30, 50, " or later, 3 of 4 runs")
    assert capsys.readouterr().err == (
        "twin, runs 1 to 4 of 4: resumed from epoch 30 of 50 or later, 3 of 4 runs\n"
    )
