"""A conversion leaves a whole folder or nothing."""

import pytest

from helpers.experiments import message
from palimpsest.pretrained.catalogue import GEMMA, SMOLLM2
from palimpsest.pretrained.packages import find, replacing

pytestmark = pytest.mark.pretrained
BEFORE = "what an earlier conversion made"


@pytest.fixture
def folder(tmp_path):
    """A folder that was made before, and what a killed conversion left beside it."""
    folder = tmp_path / "pretrained" / SMOLLM2.name
    for path in (folder, folder.with_name(f".{SMOLLM2.name}")):
        path.mkdir(parents=True)
        (path / "config.json").write_text(BEFORE)
    return folder


def test_a_wrong_file_leaves_what_was_there(folder, tmp_path):
    """The checksum is compared before anything is read, and the temporary folder goes."""
    from palimpsest.pretrained.conversion import convert

    (tmp_path / "part").write_bytes(b"GGUF, but another one")
    assert "the SHA-256 is" in message(lambda: convert(SMOLLM2, [tmp_path / "part"], folder))
    assert [path.name for path in folder.parent.iterdir()] == [SMOLLM2.name]
    assert [path.name for path in folder.iterdir()] == ["config.json"]


def test_a_full_disk_is_one_line_and_leaves_what_was_there(folder, monkeypatch):
    """The system's own words, and the remedy."""
    from palimpsest.pretrained import conversion

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(conversion, "join", full)
    text = message(lambda: conversion.convert(SMOLLM2, [], folder))
    assert text.startswith(f"{folder}: cannot be made: [Errno 28] No space left on device; ")
    assert [path.name for path in folder.parent.iterdir()] == [SMOLLM2.name]
    assert (folder / "config.json").read_text() == BEFORE


def test_a_complete_folder_replaces_the_old_one(folder):
    """The temporary folder is renamed as a whole."""
    with replacing(folder) as work:
        assert not list(work.iterdir())
        (work / "model.safetensors").touch()
    assert [path.name for path in folder.parent.iterdir()] == [SMOLLM2.name]
    assert [path.name for path in folder.iterdir()] == ["model.safetensors"]


@pytest.mark.slow
@pytest.mark.parametrize("model", [SMOLLM2, GEMMA], ids=lambda model: model.name)
def test_the_folder_predicts_as_the_file_does_and_knows_english(model, tmp_path, monkeypatch):
    """A wrong weight would show in the predictions, and words in disorder in a higher loss.

    The file is read once, by the conversion; that takes most of the time.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from palimpsest.pretrained.conversion import convert

    from_pretrained, of_the_file = AutoModelForCausalLM.from_pretrained, []

    def reading(*words, **options):
        of_the_file.append(from_pretrained(*words, **options))
        return of_the_file[-1]

    with monkeypatch.context() as patch:
        patch.setattr(AutoModelForCausalLM, "from_pretrained", reading)
        convert(model, find(model), tmp_path / "made")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "made")
    sentences = [
        "The capital of France is Paris, and the capital of Italy is Rome.",
        "is and of the Italy France capital of Rome Paris the capital is,.",
    ]
    ids = [tokenizer(text, return_tensors="pt").input_ids for text in sentences]
    made = AutoModelForCausalLM.from_pretrained(tmp_path / "made", dtype=torch.float32)
    with torch.no_grad():
        losses = [made(one, labels=one).loss.item() for one in ids]
        (read,) = of_the_file
        torch.testing.assert_close(made(ids[0]).logits, read(ids[0]).logits)
    assert losses[0] < 3.5 < losses[1]
