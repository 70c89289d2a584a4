"""The project as a module of another workflow."""

import shutil
import subprocess
from pathlib import Path

from helpers.projects import Project, run_in

WORKFLOW = """
configfile: "config/config.yaml"

module palimpsest:
    snakefile: {snakefile!r}
    config: config

use rule * from palimpsest
"""


def as_a_module(project: Project, folder: Path) -> subprocess.CompletedProcess:
    """A dry run of a workflow that trains with the rules of a project in another folder."""
    shutil.copytree(project.folder / "config", folder / "config")
    snakefile = str(project.folder / "Snakefile")
    (folder / "Snakefile").write_text(WORKFLOW.format(snakefile=snakefile))
    return run_in(folder, [*project.command(configfiles=()), "-np", "finetune"])


def test_rules_find_their_scripts_from_another_workflow(project, tmp_path):
    """The configuration and the results are in the folder of the other workflow."""
    here = tmp_path / "other"
    here.mkdir()
    done = as_a_module(project, here)
    assert done.returncode == 0, done.stdout
    scripts = {word for word in done.stdout.split() if word.endswith("finetune.py")}
    assert scripts
    for script in scripts:
        assert (here / script).resolve() == project.folder / "workflow/scripts/finetune.py"
    assert not (here / "results").exists()


def test_a_module_without_the_library_is_one_line(project, tmp_path):
    """A module from a registry has the rules and not the library."""
    here = tmp_path / "other"
    here.mkdir()
    (project.folder / "workflow/scripts/palimpsest").rename(tmp_path / "elsewhere")
    done = as_a_module(project, here)
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert "clone the whole project" in lines[0]
