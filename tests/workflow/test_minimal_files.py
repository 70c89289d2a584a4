"""The minimal files, and targets that need less than everything, as Snakemake plans them."""

import pytest

from helpers.projects import Project, refused, run_in
from palimpsest.sections import NAMES


def dry_run(project: Project, *arguments: str, configfiles=()):
    return run_in(project.folder, [*project.command(configfiles=configfiles), "-n", *arguments])


@pytest.mark.parametrize("name", NAMES)
def test_a_minimal_file_is_one_section_and_its_report(project, name):
    done = dry_run(project, configfiles=[f"config/minimal/{name}.yaml"])
    assert done.returncode == 0, done.stdout
    assert "write_report" in done.stdout
    folders = {line.split("/")[1] for line in done.stdout.split() if line.startswith("results/")}
    assert name in folders
    # Replicates of every section are in the folder of unlearning.
    assert not folders & {*NAMES} - {name}


def test_a_mistake_is_in_the_way_of_those_who_need_its_block_only(project):
    """The same mistake is one line for the section itself, and for everything."""
    mistake = ["--config", "unlearning={save_models: 999}"]
    done = dry_run(project, "information", *mistake)
    assert done.returncode == 0, done.stdout
    assert "unlearning" not in done.stdout.replace("unlearning={save_models: 999}", "")
    for targets in (["unlearning"], []):
        line = refused(dry_run(project, *targets, *mistake))
        assert "unlearning/save_models: 999 models are more than unlearning/n" in line
