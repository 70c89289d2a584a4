"""The minimal files, planned and run, and targets that need less than everything."""

import re
import shlex
import shutil

import pandas as pd
import pytest

from helpers.projects import TOUR, Project, refused
from palimpsest.datasets.figures import FIGURES as LANGUAGE_FIGURES
from palimpsest.sections import NAMES, SECTIONS


def dry_run(project: Project, *arguments: str, configfiles=()):
    return project.snakemake("--dry-run", *arguments, configfiles=configfiles)


@pytest.mark.parametrize("name", NAMES)
def test_a_minimal_file_is_one_section_and_its_report(project, name):
    done = dry_run(project, configfiles=[f"config/minimal/{name}.yaml"])
    assert done.returncode == 0, done.stdout
    assert "write_report" in done.stdout
    folders = {line.split("/")[1] for line in done.stdout.split() if line.startswith("results/")}
    assert name in folders
    # Replicates of every section are in the folder of unlearning.
    assert not folders & {*NAMES} - {name}


@pytest.mark.parametrize("name", NAMES)
def test_a_minimal_file_runs_from_nothing_to_its_report(project, name):
    """With the small numbers of the tour, wherever the file gives none."""
    whole = ("--config", "short_report=false")
    done = project.snakemake(*whole, configfiles=(TOUR, f"config/minimal/{name}.yaml"))
    assert done.returncode == 0, done.stdout
    results = project.folder / "results"
    report = (results / "report.html").read_text()
    (section,) = (section for section in SECTIONS if section.name == name)
    shown = {path.name for path in (results / "figures").glob("*.svg")}
    assert all(name in report for name in shown)
    figures = {path.stem.partition("-")[0] for path in (results / "figures").glob("*.png")}
    of_section = {figure.name for figure in section.figures}
    assert figures
    assert figures <= of_section | {figure.name for figure in LANGUAGE_FIGURES}
    assert figures & of_section
    told = [pd.read_parquet(path) for path in results.rglob("foretelling.parquet")]
    assert len(told) == (name == "atlas")
    assert all(table["foretold_before"].all() for table in told)


def test_runs_are_trained_after_they_were_foretold(project):
    """Their strings wait for the predictions, which wait for no later run."""

    def jobs(path):
        return project.jobs(path, configfiles=("config/minimal/atlas.yaml",))

    run = "forgetting/opt-1.3b-twin/L2/n64-seed2"
    foretold = jobs(f"results/atlas/{run}/promise.json")
    training = "train_twins_on_base_and_removals_and_removals_again"
    assert foretold == {"dataset": 3, training: 1, "foretell": 1, "total": 5}
    trained = jobs(f"results/runs/foretold/{run}/trace.parquet")
    more = {"dataset_foretold": 1, "train_twins_on_foretold": 1, "total": 7}
    assert trained == {**foretold, **more}


def test_a_panel_of_ones_own_has_a_report_without_any_training(project):
    """The report's commands are of this experiment; only the report depends on its file's name."""
    file = "config/minimal/panel.yaml"
    done = project.snakemake(configfiles=(file,))
    assert done.returncode == 0, done.stdout
    results = project.folder / "results"
    drawing = "--force results/figures/panel_profile-mine.svg --configfile"
    commands = re.findall(
        "snakemake --cores 1 (--force [^<]+)", (results / "report.html").read_text()
    )
    assert f"{drawing} {file}" in commands
    first = (results / "report/index.html").read_text()
    assert "In the panel mine, training on strings changes their outcome by 5.9" in first
    assert "Placebo: of 4 mean effects before the training" in first
    assert "No claim was tested" not in first
    for command in commands:
        again = project.snakemake(*shlex.split(command), "--dry-run", configfiles=())
        assert set(re.findall(r"^rule (\w+)", again.stdout, re.MULTILINE)) == {"figure"}
    assert not (results / "runs").exists()
    shutil.copy(project.folder / file, project.folder / "my own.yaml")
    assert project.jobs(configfiles=("my own.yaml",)) == {"all": 1, "write_report": 1, "total": 2}
    assert project.snakemake("write_report", configfiles=("my own.yaml",)).returncode == 0
    report = (results / "report.html").read_text()
    assert f"{drawing} &#39;my own.yaml&#39;" in report
    assert "Since the last report of this folder:</b> nothing changed." in report
    assert project.snakemake("plan", configfiles=("config/minimal/panel.yaml",)).returncode == 0


def test_a_mistake_is_in_the_way_of_those_who_need_its_block_only(project):
    """The same mistake is one line for the section itself, and for everything."""
    mistake = ["--config", "unlearning={save_models: 999}"]
    done = dry_run(project, "information", *mistake)
    assert done.returncode == 0, done.stdout
    assert "unlearning" not in done.stdout.replace("unlearning={save_models: 999}", "")
    for targets in (["unlearning"], []):
        line = refused(dry_run(project, *targets, *mistake))
        assert "unlearning/save_models: 999 models are more than unlearning/n" in line
