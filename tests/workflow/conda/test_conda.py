"""A small study with `--sdm conda`: rules in their environments, with nothing of the host's.

A stand-in answers for conda, see stand_in.py. All tests are in one file, so that one process runs
them and every environment is made once.
"""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
import stand_in
import yaml
from packaging.utils import canonicalize_name
from safetensors.numpy import save_file

from helpers.imports import third_parties
from helpers.projects import CONFIGFILES, ROOT, TOUR, Project
from helpers.rules import rules

HERE = Path(__file__).parent
STUDY = (TOUR, "study.yaml")
# What reads files of packages that the host alone has.
NOT_MADE = {"pretrained.yaml"}
# Tables whose rules import, together, every package of the other environments
TABLES = (
    "results/studies/tradeoff/L2.parquet",
    "results/density/texts/example/density.parquet",
    "results/audit/example/small/findings.parquet",
    "results/audit/example/small/scores.parquet",
    "results/audit/questions/checkpoints/tiny-model/scores.parquet",
    "results/information/activations/mine/neurons.parquet",
)
# All figures are drawn by one script, for which `test_environments.py` follows what each of them
# imports; so here a figure of every section is drawn.
FIGURES = ("derivation-L2", "tradeoff-L2", "unlearning_scores-L1", "profile-L2", "density_truth-L6")
FIGURES = (*FIGURES, "record_shares-example")
REPORT = "results/report.html"


@pytest.fixture(scope="module")
def conda(tmp_path_factory) -> Iterator[Path]:
    """A stand-in for conda in the path; the folder in which environments are kept."""
    if reason := stand_in.unusable():
        (pytest.fail if "PALIMPSEST_CI" in os.environ else pytest.skip)(reason)
    folder = tmp_path_factory.mktemp("conda")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(stand_in.lay_out(folder / "base")), prepend=os.pathsep)
        yield folder / "environments"
    shutil.rmtree(folder)  # gigabytes


@pytest.fixture(scope="module")
def study(conda, tmp_path_factory, request) -> set[str]:
    """The rules that ran in environments: from nothing to tables; figures and report of the tour.

    The tour itself was run without environments.
    """
    project = with_study(tmp_path_factory.mktemp("study"))
    ran = rules_run(in_environments(project, conda, *TABLES))
    copy = tmp_path_factory.mktemp("report") / "copy"
    shutil.copytree(request.getfixturevalue("finished").folder, copy)
    return ran | rules_run(draw_and_report(Project(copy), conda))


def with_study(folder: Path) -> Project:
    """A fresh project with the study's configuration, and the models that it asks."""
    from helpers import tiny_language_models

    project = Project.fresh(folder)
    shutil.copy(HERE / "study.yaml", folder)
    for seed, name in enumerate(("tiny-model", "tiny-other", "tiny-third")):
        tiny_language_models.write(folder / name, seed=seed)
    rows = [{"text": f"Ann {split}", "split": split} for split in ("forget", "retain", "holdout")]
    activations = np.random.default_rng(0).normal(size=(40, 3))
    save_file({"layer": activations}, folder / "given.safetensors")
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return project


def draw_and_report(project: Project, kept: Path):
    """Draw some figures of the finished tour again, and write its report."""
    made = [REPORT, *(f"results/figures/{figure}.svg" for figure in FIGURES)]
    for path in made:
        (project.folder / path).unlink()
    flags = ["--allowed-rules", "figure", "write_report", "--rerun-triggers", "mtime"]
    done = in_environments(project, kept, *made, *flags, configfiles=CONFIGFILES)
    assert all((project.folder / path).exists() for path in made), done.stdout
    return done


def rules_run(done) -> set[str]:
    """The rules whose jobs a Snakemake ran; all of these must have succeeded."""
    assert done.returncode == 0, done.stdout
    return set(re.findall(r"^(?:local)?rule (\w+):$", done.stdout, re.MULTILINE))


def in_environments(project: Project, kept: Path, *arguments: str, configfiles=STUDY):
    """Run Snakemake as with conda."""
    flags = ["--sdm", "conda", "--conda-prefix", str(kept)]
    return project.snakemake(*flags, *arguments, configfiles=configfiles, forked_jobs=False)


def environment(kept: Path, file: Path) -> Path:
    """The folder of the environment made from a file; Snakemake keeps the file next to it."""
    (folder,) = [
        copy.with_suffix("") for copy in kept.glob("*.yaml") if copy.read_text() == file.read_text()
    ]
    return folder


def packages(environment: Path) -> list[importlib.metadata.Distribution]:
    """What is installed in an environment."""
    (folder,) = environment.glob("lib/python*/site-packages")
    return list(importlib.metadata.distributions(path=[str(folder)]))


def modules_of(distributions: list[importlib.metadata.Distribution]) -> set[str]:
    """The names under which packages are imported."""
    return {
        file.parts[0].split(".")[0]
        for distribution in distributions
        for file in distribution.files or []
        if file.suffix in {".py", ".so"} and file.parts[0].split(".")[0].isidentifier()
    }


def test_every_package_of_an_environment_is_imported_in_it(study):
    """By the jobs of some rules; `test_environments.py` follows what the others import."""
    assert imported_in_environments(study) == imported_in_environments(rules())


def imported_in_environments(names: Iterable[str]) -> set[tuple[str, str]]:
    """Environments, and the packages that these rules import there."""
    environments = {name: Path(rules()[name].conda_env).name for name in names if name in rules()}
    return {
        (file, package)
        for name, file in environments.items()
        if file not in NOT_MADE
        for package in third_parties(name)
    }


def test_environments_hold_what_their_files_pin(study, conda):
    """The versions are those of the files, so what has run is what the files say."""
    for file in (ROOT / "envs").glob("*.yaml"):
        if file.name in NOT_MADE:
            continue
        found = packages(environment(conda, file))
        installed = {canonicalize_name(of.metadata["Name"]): of.version for of in found}
        pins = dict(pin.split("==") for pin in stand_in.read(file)[1])
        versions = {name: installed[canonicalize_name(name)].split("+")[0] for name in pins}
        assert versions == pins, file


def test_jobs_see_nothing_of_the_host(conda, tmp_path):
    """None of its modules, by import, in children or among those loaded; nor its programs."""
    project = with_study(tmp_path)
    shutil.copy(HERE / "probe.py", tmp_path / "workflow/scripts")
    with (tmp_path / "Snakefile").open("a") as snakefile:
        snakefile.write((HERE / "probe.smk").read_text())
    names = tmp_path / "names.json"
    names.touch()
    done = in_environments(project, conda, "--conda-create-envs-only", "look_by_script")
    assert done.returncode == 0, done.stdout
    prefix = environment(conda, ROOT / "envs/languages.yaml")
    hosts = modules_of(list(importlib.metadata.distributions())) - modules_of(packages(prefix))
    hosts -= {"snakemake"}  # the object of this name is of its classes
    assert {"deepspeed", "jsonschema", "torch"} <= hosts
    asked = {"needed": ["numpy"], "modules": sorted(hosts)}
    names.write_text(json.dumps(asked))
    done = in_environments(project, conda, "look_by_script", "look_by_shell")
    assert done.returncode == 0, done.stdout
    nothing = {"itself": [], "child": [], "new process": []}
    for way in ("script", "shell"):
        answers = json.loads((tmp_path / f"found-by-{way}.json").read_text())
        searched = answers.pop("path")
        assert answers == {"prefix": str(prefix), "needed": ["numpy"], **nothing}, way
        assert searched[0] == f"{prefix}/bin"
        assert sys.prefix == sys.base_prefix or str(Path(sys.executable).parent) not in searched


def test_a_package_that_is_missing_is_named(conda, tmp_path):
    """A job fails that needs a package which its environment lacks, though the host has it."""
    project = with_study(tmp_path)
    file = tmp_path / "envs/languages.yaml"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if "pandas" not in line))
    dataset = "results/datasets/L2/n16-seed0/base/strings.parquet"
    done = in_environments(project, conda, dataset)
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'pandas'" in done.stdout
    assert not (tmp_path / dataset).exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("create --file pins.txt --prefix there --yes", "cannot do this: conda create"),
        ("clean -y --tarballs --packages", "cannot do this: conda clean"),
        ("env create --file conda.yaml", "cannot do this: the following arguments are required"),
        ("env create --file conda.yaml --prefix there", "numpy=2.4.6 is a package of conda's"),
        ("env create --file range.yaml --prefix there", "numpy>=2 is not a package with one"),
        ("env create --file bare.yaml --prefix there", "pip and python need a version each"),
        ("env create --file named.yaml --prefix there", "unknown keys name"),
    ],
)
def test_what_the_stand_in_cannot_do_is_refused_in_a_line(tmp_path, words, said):
    """Whatever Snakemake or a file may ask for: no environment that only looks right."""
    versions = ["python=3.12.12", "pip=25.3"]
    files = {
        "conda": {"dependencies": [*versions, "numpy=2.4.6"]},
        "range": {"dependencies": [*versions, {"pip": ["numpy>=2"]}]},
        "bare": {"dependencies": [{"pip": ["numpy==2.4.6"]}]},
        "named": {"name": "mine", "dependencies": versions},
    }
    for name, content in files.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content))
    conda = stand_in.lay_out(tmp_path / "base") / "conda"
    done = subprocess.run([conda, *words.split()], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "there").exists()
