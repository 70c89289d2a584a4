"""The minimal files: short, one for each section and for two parts, and enough for a report."""

from pathlib import Path

import pytest

from helpers.experiments import DEFAULT, ROOT, experiment
from palimpsest.sections import NAMES

FOLDER = Path("config/minimal")
OF_PARTS = ("panel", "checkpoints")  # the second: tests/audit/test_checkpoint_sets.py


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    """Paths of a configuration are relative to where Snakemake runs."""
    monkeypatch.chdir(ROOT)


def test_every_section_has_a_minimal_file():
    assert sorted(path.stem for path in FOLDER.glob("*.yaml")) == sorted([*NAMES, *OF_PARTS])


def test_a_panel_of_ones_own_trains_nothing():
    path = FOLDER / "panel.yaml"
    assert len(path.read_text().splitlines()) < 15
    alone = experiment(DEFAULT, path)
    assert (alone.requests, alone.notes, alone.refused) == ([], [], {})
    assert {Path(file).stem for file in alone.figure_files("profiles")} == {"panel_profile-mine"}


@pytest.mark.parametrize("name", NAMES)
def test_a_minimal_file_is_short_and_makes_its_section_alone(name):
    """With models that it names, few runs, and something to test, to draw and to report."""
    path = FOLDER / f"{name}.yaml"
    assert len(path.read_text().splitlines()) < 15
    alone = experiment(DEFAULT, path)
    assert [section.name for section in alone.sections] == [name]
    assert alone.refused == {}
    assert alone.notes == []
    assert {runs.model for runs in alone.requests} == {"opt-1.3b-twin"}
    assert sum(len(runs.seeds) * runs.trainings for runs in alone.requests) <= 200
    # A section without claims tests nothing.
    has_claims = bool(alone.sections[0].load("claims"))
    assert any(map(alone.tables, alone.judged)) == has_claims
    assert any(alone.tables(kind) for kind in alone.reported)
    assert alone.figure_files(name)
