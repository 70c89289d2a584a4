"""docs/measures.md to the letter: a measure in two files, a study in three, a claim in one."""

import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = "workflow/scripts/palimpsest"


def pieces(heading):
    """The pieces of code under a heading of the page."""
    page = (ROOT / "docs/measures.md").read_text()
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```(?:python|yaml)\n(.*?)```", section, re.DOTALL)


def insert(path, piece, before):
    """Put a piece of code before the only place where a text stands."""
    text = path.read_text()
    assert text.count(before) == 1, before
    path.write_text(text.replace(before, piece + before))


@pytest.fixture
def project(copy_of_finished):
    """A copy of the finished tour."""
    return copy_of_finished


def run(project, *targets):
    """Snakemake, to its end."""
    done = project.snakemake(*targets)
    assert done.returncode == 0, done.stdout


def test_a_measure(project):
    """It stands in the tables of every run, and in a figure."""
    function, line, row = pieces("A measure")
    measures = project.folder / LIBRARY / "memorisation/measures.py"
    insert(measures, f"{function}\n\n", "def every_measure(")
    insert(measures, line, '    measured["bayes", "language"]')
    insert(project.folder / LIBRARY / "figures/style.py", row, "}\n\nSETUPS")
    run(project, "results/figures/tradeoff-L1.svg")
    folder = project.folder / "results"
    dataset = pd.read_parquet(folder / "memorisation/pythia-1b-twin/L1/n16/base/dataset.parquet")
    assert "half" in set(dataset["measure"])
    assert ">half<" in (folder / "figures/tradeoff-L1.svg").read_text()


def test_a_study(project):
    """Its named target makes its table and its figure."""
    study, figure, block = pieces("A study")
    folder = project.folder / LIBRARY / "memorisation"
    (folder / "studies/earliest.py").write_text(study)
    (folder / "figures/earliest.py").write_text(figure)
    insert(project.folder / "config/tour.yaml", block, "    exact: {models")
    run(project, "earliest")
    results = project.folder / "results"
    assert (results / "figures/earliest-L2.svg").exists()
    assert len(pd.read_parquet(results / "studies/earliest/L2.parquet"))


def test_a_claim(project):
    """It is judged on every language of its study."""
    (claim,) = pieces("A claim")
    claims = project.folder / LIBRARY / "memorisation/claims.py"
    text = claims.read_text()
    place = text.rindex("]\n")
    claims.write_text(f"{text[:place]}{claim},\n{text[place:]}")
    run(project, "results/claims.parquet")
    table = pd.read_parquet(project.folder / "results/claims.parquet")
    found = table[table["claim"].str.startswith("At optimal learning most strings")]
    assert sorted(found["language"]) == ["L1", "L2"]
