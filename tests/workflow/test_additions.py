"""docs/measures.md to the letter: a measure in one file, a study in two, a claim in one."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from helpers.projects import CONFIGFILES, Project, with_the_tests_of_the_project

ROOT = Path(__file__).parents[2]
WHOLE = ("sections", "experiment", "structure", "claims", "reference", "fingerprint")
OF_THE_ROOM = ("memorisation_tables", "measures")
QUICK = [
    *(f"tests/test_{name}.py" for name in WHOLE),
    *(f"tests/memorisation/test_{name}.py" for name in OF_THE_ROOM),
]


def pieces(heading):
    """The pieces of code under a heading of the page."""
    page = (ROOT / "docs/measures.md").read_text()
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```(?:python|yaml)\n(.*?)```", section, re.DOTALL)


FOLDER = "my_folder"
CONFIG = "mine.yaml"


@pytest.fixture
def project(copy_of_finished):
    """A copy of the finished tour."""
    return copy_of_finished


def write(project, path, piece):
    """Write a file of an extension."""
    target = project.folder / FOLDER / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(piece)


def configure(project, block=""):
    """The configuration that names the extension."""
    (project.folder / CONFIG).write_text(f"extensions: [{FOLDER}]\n{block}")


def add_measure(project):
    """Add a measure as the page says."""
    (measure,) = pieces("A measure")
    write(project, "memorisation/more_measures/half.py", measure)
    configure(project)


def add_study(project):
    """Add a study as the page says."""
    study, figure, block = pieces("A study")
    write(project, "memorisation/studies/earliest.py", study)
    write(project, "memorisation/figures/earliest.py", figure)
    configure(project, block)


def add_claim(project):
    """Add a claim as the page says."""
    (claim,) = pieces("A claim")
    write(project, "memorisation/claims/most.py", claim)
    configure(project)


def run(project, *targets):
    """Snakemake, to its end."""
    done = project.snakemake(*targets, configfiles=(*CONFIGFILES, CONFIG))
    assert done.returncode == 0, done.stdout


def test_a_measure(project):
    """It is in the tables of every run, and in a figure."""
    add_measure(project)
    run(project, "results/figures/tradeoff-L1.svg")
    folder = project.folder / "results"
    dataset = pd.read_parquet(
        folder / "memorisation/default/pythia-1b-twin/L1/n16/base/training_set.parquet"
    )
    assert "half" in set(dataset["measure"])
    assert ">half<" in (folder / "figures/tradeoff-L1.svg").read_text()


def test_a_study(project):
    """Its named target makes its table and its figure."""
    add_study(project)
    run(project, "earliest")
    results = project.folder / "results"
    assert (results / "figures/earliest-L2.svg").exists()
    assert len(pd.read_parquet(results / "studies/earliest/L2.parquet"))


def test_a_claim(project):
    """It is judged on every language of its study."""
    add_claim(project)
    run(project, "results/claims.parquet")
    table = pd.read_parquet(project.folder / "results/claims.parquet")
    found = table[table["claim"].str.startswith("At optimal learning most strings")]
    assert sorted(found["language"]) == ["L1", "L2"]


def test_quick_tests_pass_with_all_three(tmp_path):
    """None of those that know all measures, studies and claims has to be changed."""
    project = Project.fresh(tmp_path)
    add_measure(project)
    add_study(project)
    add_claim(project)
    with_the_tests_of_the_project(tmp_path)
    run_here = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True)
    run_here([sys.executable, "workflow/scripts/reference.py", "docs"], check=True)
    done = run_here([sys.executable, "-m", "pytest", "--quiet", *QUICK])
    assert done.returncode == 0, done.stdout
