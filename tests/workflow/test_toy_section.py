"""A section from outside the tree: its files and two lines make it part of everything.

A third line lets its jobs share submissions on a cluster.

docs/sections.md is this in words; its pieces of code are the files of `toy_section`.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from helpers.projects import Project, with_the_tests_of_the_project

ROOT = Path(__file__).parents[2]
TOY = Path(__file__).with_name("toy_section")
BLOCK = "\nrepetition:\n  model: opt-1.3b-twin\n  languages: [L1, L2]\n  size: 24\n"
OF_ALL_SECTIONS = ("sections", "experiment", "structure", "claims", "reference", "fingerprint")
RULE_OF_MANY = (
    "train_twins_on_base_and_dedup_and_dedup_matched_and_targets_and_leave_one_out"
    "_and_leave_one_out_again"
)
# Where it is registered, and where its jobs are put into a group: behind which line, and which.
ONE_LINE = {
    "workflow/scripts/palimpsest/sections.py": ('    "unlearning",\n', '    "repetition",\n'),
    "Snakefile": (
        'include: "workflow/rules/unlearning.smk"\n',
        'include: "workflow/rules/repetition.smk"\n',
    ),
    "config/profiles/slurm/config.yaml": (
        "  measure_leave_one_out: measures_{model}\n",
        "  count_repeated: data_{language}\n",
    ),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A fresh project with the toy section, and no other in its configuration."""
    project = Project.fresh(tmp_path_factory.mktemp("toy"))
    shutil.copytree(TOY, project.folder, dirs_exist_ok=True)
    for file, (after, added) in ONE_LINE.items():
        path = project.folder / file
        text = path.read_text()
        assert text.count(after) == 1
        path.write_text(text.replace(after, after + added))
    with open(project.folder / "config/config.yaml", "a") as config:
        config.write(BLOCK)
    (project.folder / "alone.yaml").write_text(
        "seeds: [0, 1]\nmemorisation: null\nunlearning: null\nprofiles: null\ndensity: null\n"
        "information: null\n"
        "repetition: {languages: [L2]}\n"
        "recipes: {default: {epochs: 1}}\ndatasets: {test_size: 20, language_sample: 100}\n"
    )
    return project


@pytest.fixture(scope="module")
def finished(project):
    """The same, run to its report and its plan."""
    for target in ("all", "plan"):
        done = project.snakemake(target, configfiles=("alone.yaml",))
        assert done.returncode == 0, done.stdout
    return project


def test_its_runs_are_trained_and_planned(finished):
    """The plan has a row for every seed, and each is done."""
    plan = pd.read_parquet(finished.folder / "results/plan.parquet")
    assert set(plan["size"]) == {24}
    assert sorted(zip(plan["language"], plan["seed"], strict=True)) == [
        ("L2", seed) for seed in (0, 1)
    ]


def test_its_table_figure_and_claim_are_made(finished):
    """The named target of the section is what `all` has made."""
    folder = finished.folder / "results"
    table = pd.read_parquet(folder / "repetition/L2.parquet")
    assert table["share_repeated"].between(0, 1).all()
    assert (folder / "figures/repeated_strings-L2.svg").exists()
    claims = pd.read_parquet(folder / "claims.parquet")
    assert claims["question"].tolist() == ["repetition"]
    assert set(claims["interval_over"]) == {"seeds"}
    assert (
        "Nothing to be done" in finished.snakemake("repetition", configfiles=("alone.yaml",)).stdout
    )


def test_the_report_shows_it(finished):
    """Its chapter, its figure and its verdict, and nothing of the sections that are left out."""
    report = (finished.folder / "results/report.html").read_text()
    for said in ("Are strings repeated?", "repeated_strings-L2", "occur once", "Repeated strings"):
        assert said in report, said
    assert "forget set" not in report


def test_its_runs_may_have_seeds_of_their_own(project):
    """Next to the same runs of other sections, and next to other runs of the same variant."""
    section = project.folder / "workflow/scripts/palimpsest/repetition/section.py"
    text = section.read_text()
    section.write_text(text.replace("seeds=settings.seeds", "seeds=(0, 7)"))
    try:
        jobs = project.jobs("finetune", configfiles=("config/tour.yaml",))
    finally:
        section.write_text(text)
    trained = {rule for rule in jobs if "twins" in rule}
    assert trained > {RULE_OF_MANY, "train_twins_on_base", "train_twins_on_base__2"}


def test_the_code_of_the_page_passes_the_checks_of_the_project(project, tmp_path):
    """The style, and the tests of what sections and rooms have to be."""
    with_the_tests_of_the_project(tmp_path)
    shutil.copytree(project.folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "tests/repetition").mkdir()
    with open(tmp_path / "config/tour.yaml", "a") as tour:
        tour.write(BLOCK)
    tests = [f"tests/test_{name}.py" for name in OF_ALL_SECTIONS]
    tests.append("tests/test_environments.py::test_what_takes_seconds_shares_a_submission")
    for command in (
        ["workflow/scripts/reference.py", "docs"],
        ["-m", "ruff", "check", "workflow"],
        ["-m", "ruff", "format", "--check", "workflow"],
        ["-m", "pytest", "--quiet", *tests],
    ):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout


def test_its_mistakes_are_told(project):
    """The message is one line, and it names the key."""
    done = project.snakemake(
        "--dry-run", "--config", "repetition={languages: [L9]}", configfiles=()
    )
    assert done.returncode == 1
    assert "error: --config: repetition/languages[0]: unknown language 'L9'" in done.stdout


def test_its_kinds_and_keys_are_in_the_reference_pages(project, tmp_path):
    """Written from what the section declares."""
    script = project.folder / "workflow/scripts/reference.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True)
    assert "## repeated" in (tmp_path / "tables.md").read_text()
    assert "`repetition/languages`" in (tmp_path / "configuration.md").read_text()


def test_the_page_on_sections_is_this_section():
    """Every piece of code of the page is one of the files, and every file is on the page."""
    page = (ROOT / "docs/sections.md").read_text()
    files = {path.read_text().strip(): path for path in TOY.rglob("*") if path.is_file()}
    pieces = re.findall(r"```(?:python|yaml|snakemake)\n(.*?)```", page, re.DOTALL)
    shown = {piece.strip() for piece in pieces}
    assert {path.name for text, path in files.items() if text not in shown} <= {"__init__.py"}
    lines = {added.strip().strip(",") for _, added in ONE_LINE.values()}
    assert shown - files.keys() == {BLOCK.strip(), *lines}
