"""A user's text through the workflow."""

import pytest

from helpers.projects import Project, refused
from palimpsest import tables
from palimpsest.sections import KINDS

RUN = "results/runs/base/default/opt-1.3b-twin/notes/n16-seed0/trace.parquet"


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    """A project with a text of 80 lines."""
    project = Project.fresh(tmp_path_factory.mktemp("text"))
    lines = [f"the {n % 7} and the {n % 11} make {n}" for n in range(80)]
    (project.folder / "config/languages/notes.txt").write_text("\n".join(lines))
    return project


def test_a_text_is_trained_on(project):
    """Its dataset has no probabilities, and its trace is like any other."""
    done = project.snakemake(RUN)
    assert done.returncode == 0, done.stdout
    strings = project.folder / "results/datasets/notes/n16-seed0/base/strings.parquet"
    assert tables.read(strings, KINDS["strings"])["log_prob"].isna().all()
    trace = tables.read(project.folder / RUN, KINDS["trace"])
    total = trace.groupby("epoch")["nll"].sum()
    assert total.iloc[-1] < total.iloc[0]


def test_copies_are_said_on_the_screen(project):
    """Once by each job that makes a dataset, and again in its log."""
    (project.folder / "config/languages/copies.txt").write_text("a b\n" * 3 + "c d\ne f\n")
    target = "results/datasets/copies/n1-seed0/base/strings.parquet"
    done = project.snakemake(target, "--config", "datasets={test_size: 1}")
    assert done.returncode == 0, done.stdout
    said = "warning: config/languages/copies.txt: 2 of its 5 lines are copies of others"
    assert done.stdout.count(said) == 1
    assert said in (project.folder / "logs/dataset/copies/n1-seed0.log").read_text()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("results/languages/notes/summary.json", "notes.txt: is a text; a sample, targets and"),
        (
            "results/memorisation/default/opt-1.3b-twin/notes/n16/base/starts.parquet",
            "notes/n16-seed0/base: the strings of a text have no known probabilities",
        ),
    ],
)
def test_a_file_that_needs_probabilities_is_refused(project, target, said):
    """It is asked for by its path, so that the job finds out."""
    assert said in refused(project.snakemake(target))


def test_records_are_unlearned(project):
    """The split of the file says how many there are, and what is forgotten."""
    parts = ["forget"] * 2 + ["retain"] * 6 + ["holdout"] * 48
    rows = [f"{number},word {number},{part}" for number, part in enumerate(parts)]
    (project.folder / "mine.csv").write_text("\n".join(["id,text,split", *rows]))
    block = "unlearning={languages: [mine], groups: record, size: 8}"
    jobs = project.jobs("unlearning", "--config", "corpora={mine: mine.csv}", block)
    assert jobs["corpus_of_records"] == jobs["dataset_forgetting"] == 1
    assert jobs["figure"] > 0


def test_a_text_is_unlearned(project):
    """The plan has all of it, from its datasets to figures that need no probabilities."""
    jobs = project.jobs("unlearning", "--config", "unlearning={languages: [notes]}")
    assert jobs["dataset_forgetting"] == 1
    assert jobs["figure"] > 0


@pytest.mark.parametrize(
    ("given", "key", "needs"),
    [
        ("languages=[L1,notes]", "languages[1]", "memorisation needs them"),
        (
            "memorisation={studies: {tradeoff: {languages: [notes]}}}",
            "memorisation/studies/tradeoff/languages[0]",
            "memorisation needs them",
        ),
        (
            "unlearning={languages: [notes], groups: derivation}",
            "unlearning/languages[0]",
            "unlearning/groups: derivation needs them",
        ),
    ],
)
def test_what_needs_probabilities_is_refused(project, given, key, needs):
    line = refused(project.snakemake("--dry-run", "--config", given))
    assert key in line
    assert "'notes' is a text (config/languages/notes.txt), whose strings have no known" in line
    assert needs in line
