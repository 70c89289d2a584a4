"""A conversion leaves a whole folder or nothing."""

import pytest

from helpers.experiments import message
from palimpsest.pretrained.catalogue import SMOLLM2

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
    from palimpsest.pretrained.conversion import _replacing

    with _replacing(folder) as work:
        assert not list(work.iterdir())
        (work / "model.safetensors").touch()
    assert [path.name for path in folder.parent.iterdir()] == [SMOLLM2.name]
    assert [path.name for path in folder.iterdir()] == ["model.safetensors"]
