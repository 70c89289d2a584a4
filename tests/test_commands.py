"""The commands that messages and pages print are of the same experiment."""

import shlex

import pytest

from palimpsest import commands


@pytest.fixture(autouse=True)
def _without_files(monkeypatch):
    monkeypatch.setenv(commands.VARIABLE, "")


def test_a_command_names_the_files_of_the_experiment_last(tmp_path, monkeypatch):
    """As seen from the folder in which Snakemake runs, and each as one word."""
    monkeypatch.chdir(tmp_path)
    commands.use([tmp_path / "mine.yaml", "its own/more.yaml"])
    command = commands.snakemake("--force", "results/a.svg", cores="all")
    assert command == (
        "snakemake --cores all --force results/a.svg --configfile mine.yaml 'its own/more.yaml'"
    )
    assert shlex.split(command)[-2:] == ["mine.yaml", "its own/more.yaml"]


def test_without_files_there_is_no_flag(tmp_path):
    commands.use([])
    assert commands.configfiles() == ""
    assert commands.snakemake("plan") == "snakemake --cores 1 plan"


def test_a_broken_file_is_deleted_and_made_again_by_the_same_experiment(monkeypatch):
    monkeypatch.setenv(commands.VARIABLE, "mine.yaml")
    assert commands.remake("results/a.parquet") == (
        "delete it and rerun: snakemake --cores 1 results/a.parquet --configfile mine.yaml"
    )
