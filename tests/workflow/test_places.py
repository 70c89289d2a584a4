"""Names of files and folders that a path of a result, or a shell, cannot hold."""

import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from helpers.projects import ROOT, Project, refused, run_in
from palimpsest.launch import is_read_by_a_shell

LINE = "a b c d\n"
# A Python that makes no environment, so that a test sees whether one would be made
NO_VENV = '#!/bin/sh\ncase "$*" in *"-m venv"*) echo would make it; exit 1;; esac\nexec "{}" "$@"\n'


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [
        ("my work", True),
        ("tab\there", True),
        ("it's", True),
        ('say "so"', True),
        ("a$HOME", True),
        ("a&b", True),
        ("(copy)", True),
        ("[1]", True),
        ("a#b", True),
        ("back\\slash", True),
        ("plain_1.2-x", False),
        ("诗与é", False),
    ],
)
def test_make_says_before_installing_where_it_cannot_work(tmp_path, name, is_refused):
    """The same rule as when Snakemake starts."""
    python = tmp_path / "python"
    python.write_text(NO_VENV.format(sys.executable))
    python.chmod(0o755)
    folder = tmp_path / name
    folder.mkdir()
    for file in ("Makefile", "requirements.txt"):
        (folder / file).write_bytes((ROOT / file).read_bytes())
    done = run_in(folder, ["make", "run", f"PYTHON={python}"])
    said = (
        "a folder whose path has a blank or another sign with a meaning in a shell" in done.stdout
    )
    assert said == is_refused == is_read_by_a_shell(str(folder))
    assert ("would make it" in done.stdout) != is_refused
    assert done.returncode == 2


def test_snakemake_says_that_it_runs_no_script_there(project, tmp_path):
    """An environment in a folder with a blank in its path, and its Python."""
    there = Path(sys.prefix)
    environment = tmp_path / "my work/.venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin/python").symlink_to(Path(sys.executable).resolve())
    (environment / "lib").symlink_to(there / "lib")
    (environment / "pyvenv.cfg").write_text((there / "pyvenv.cfg").read_text())
    command = [environment / "bin/python", "-m", "snakemake", "--cores", "1", "--dry-run", "plan"]
    done = subprocess.run(
        command, cwd=project.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    line = refused(done)
    assert f"error: {environment}/bin/python: Snakemake runs no script with a Python" in line
    assert "move this folder" in line


@pytest.fixture(scope="module")
def languages(tmp_path_factory) -> Project:
    """A project with texts of unusual names, one of them with a decomposed letter."""
    project = Project.fresh(tmp_path_factory.mktemp("names"))
    for name in ("诗", "mo by", "cafe\u0301", "plain"):
        (project.folder / f"config/languages/{name}.txt").write_text(LINE * 3)
    return project


@pytest.mark.parametrize("name", ["诗", "mo by", "caf\u00e9", "cafe\u0301"])
@pytest.mark.parametrize(
    "target",
    [
        "results/runs/base/default/opt-1.3b-twin/{}/n16-seed0/trace.parquet",
        "results/figures/grammar-{}.svg",
    ],
)
def test_a_language_whose_name_is_in_no_path_is_refused(languages, name, target):
    line = refused(languages.snakemake("--dry-run", target.format(name)))
    assert f"{name!r} is not the name of a language; allowed are letters, digits" in (
        unicodedata.normalize("NFC", line).replace(unicodedata.normalize("NFC", name), name)
    )
    assert line.endswith("rename its file")


def test_other_targets_do_not_mind(languages):
    """A file that nobody asks for is in nobody's way."""
    target = "results/datasets/plain/n1-seed0/base/strings.parquet"
    given = "datasets={test_size: 1}"
    assert languages.jobs(target, "--config", given) == {"dataset": 1, "total": 1}
