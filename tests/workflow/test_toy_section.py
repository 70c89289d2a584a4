"""A section from a folder of the user's: six files and two entries of the configuration.

docs/sections.md is this in words; its pieces of code are the files of `toy_section`. In the tree,
two lines register the section.
"""

import os
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
EXTENSION = "extensions: [my_folder]"
BLOCK = "repetition:\n  model: opt-1.3b-twin\n  languages: [L1, L2]\n  size: 24\n"
OF_ALL_SECTIONS = ("sections", "experiment", "structure", "claims", "reference", "fingerprint")
RULE_OF_MANY = (
    "train_twins_on_base_and_dedup_and_dedup_matched_and_targets_and_leave_one_out"
    "_and_leave_one_out_again"
)
# Where it is registered in the tree, and where its jobs are put into a group: after which line
ONE_LINE = {
    "workflow/scripts/palimpsest/sections.py": ('    "information",\n', '    "repetition",\n'),
    "Snakefile": (
        'include: "workflow/rules/information.smk"\n',
        'include: "workflow/rules/repetition.smk"\n',
    ),
    "config/profiles/slurm/config.yaml": (
        "  measure_leave_one_out: measures_{model}\n",
        "  count_repeated: data_{language}\n",
    ),
}
# Where the files of the extension are in the tree, if not with the modules
PLACES = {
    "rules.smk": "workflow/rules/repetition.smk",
    "schema.yaml": "config/schemas/repetition.schema.yaml",
}


def with_lines(project, lines):
    """Add lines to files of a project, each after another line."""
    for file, (after, added) in lines.items():
        path = project / file
        text = path.read_text()
        assert text.count(after) == 1
        path.write_text(text.replace(after, after + added))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A fresh project with the toy section, and no other in one of its configurations."""
    project = Project.fresh(tmp_path_factory.mktemp("toy"))
    shutil.copytree(TOY, project.folder / "my_folder")
    config = project.folder / "config/config.yaml"
    text = config.read_text()
    assert text.count("extensions: []") == 1
    config.write_text(f"{text.replace('extensions: []', EXTENSION)}\n{BLOCK}")
    (project.folder / "alone.yaml").write_text(
        "seeds: [0, 1]\nmemorisation: null\nunlearning: null\nprofiles: null\ndensity: null\n"
        "information: null\nrecords: null\n"
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
    for said in ("Are many training strings repeated?", "repeated_strings-L2", "occur once"):
        assert said in report, said
    assert "forget set" not in report


def test_its_runs_may_have_seeds_of_their_own(project):
    """Next to the same runs of other sections, and next to other runs of the same variant."""
    section = project.folder / "my_folder/repetition/section.py"
    text = section.read_text()
    section.write_text(text.replace("seeds=settings.seeds", "seeds=(0, 7)"))
    try:
        jobs = project.jobs("finetune", configfiles=("config/tour.yaml",))
    finally:
        section.write_text(text)
    trained = {rule for rule in jobs if "twins" in rule}
    assert trained > {RULE_OF_MANY, "train_twins_on_base", "train_twins_on_base__2"}


def in_the_tree(folder):
    """Put the section into a project as one of its own, and return the extension's files."""
    package = folder / "workflow/scripts/palimpsest/repetition"
    for path in (path for path in TOY.rglob("*") if path.is_file()):
        inner = path.relative_to(TOY / "repetition")
        target = folder / PLACES[path.name] if path.name in PLACES else package / inner
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    for part in (package, package / "figures"):
        (part / "__init__.py").write_text('"""Repeated strings."""\n')
    with_lines(folder, ONE_LINE)


def test_in_the_tree_it_passes_the_checks_of_the_project(project, tmp_path):
    """The style, and the tests of what sections and rooms have to be."""
    with_the_tests_of_the_project(tmp_path)
    shutil.copytree(Project.fresh(tmp_path / "fresh").folder, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "fresh")
    in_the_tree(tmp_path)
    (tmp_path / "tests/repetition").mkdir()
    for name in ("config", "tour"):
        with open(tmp_path / f"config/{name}.yaml", "a") as file:
            file.write(f"\n{BLOCK}")
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
    (project.folder / "docs").mkdir()
    shutil.copy(ROOT / "docs/fidelity.tsv", project.folder / "docs")
    extended = {**os.environ, "PALIMPSEST_EXTENSIONS": str(project.folder / "my_folder")}
    subprocess.run([sys.executable, script, tmp_path], check=True, env=extended)
    assert "## repeated" in (tmp_path / "tables.md").read_text()
    assert "`repetition/languages`" in (tmp_path / "configuration.md").read_text()


def test_the_page_on_sections_is_this_section():
    """Every piece of code of the page is one of the files, and every file is on the page."""
    page = (ROOT / "docs/sections.md").read_text()
    files = {path.read_text().strip(): path for path in TOY.rglob("*") if path.is_file()}
    assert len(files) == 6
    pieces = re.findall(r"```(?:python|yaml|snakemake)\n(.*?)```", page, re.DOTALL)
    shown = {piece.strip() for piece in pieces}
    assert files.keys() <= shown
    lines = {added.strip().strip(",") for _, added in ONE_LINE.values()}
    assert shown - files.keys() == {f"{EXTENSION}\n\n{BLOCK.strip()}", *lines}
