"""Configuration files as they are written: a broken one is named, with its line."""

from pathlib import Path

import pytest

from helpers.experiments import message
from palimpsest.configuration.given_files import refuse_broken_files
from palimpsest.configuration.yaml_files import check_file

FILES = {
    # what is wrong: (content, message after the file's name)
    "a key twice": ("seeds: [1]\nsizes: [2]\nseeds: [3]\n", ":3: the key 'seeds' is there"),
    "a key twice in a block": ("training:\n  epochs: 1\n  epochs: 2\n", ":3: the key 'epochs'"),
    "not closed": ("models: [a,\n", ":2: "),
    "tabs": ("training:\n\tepochs: 1\n", ":2: found character '\\t'"),
    "a tag that runs code": ("a: !!python/object/apply:os.getcwd []\n", ":1: could not determine"),
    "a list": ("- a\n", ": must hold keys and their values"),
    "empty": ("", ": must hold keys and their values"),
    "bytes": (b"\xff\xfe\x00", ": is not text in YAML: "),
    "too deep": ("a: " + "[" * 2000, ": is not text in YAML: "),
}


@pytest.mark.parametrize("what", FILES)
def test_a_broken_file_is_named_with_its_line(tmp_path, monkeypatch, what):
    """Snakemake would refuse these files without naming them, or read something else."""
    monkeypatch.chdir(tmp_path)
    content, start = FILES[what]
    Path("mine.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message(lambda: check_file("mine.yaml")).startswith(f"mine.yaml{start}")


def test_a_list_as_a_key_is_refused_with_its_line(tmp_path, monkeypatch):
    """YAML allows it, and no configuration has one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("seeds: [0]\n? [1, 2]\n: 3\n")
    assert message(lambda: check_file("mine.yaml")).startswith("mine.yaml:2: ")


def test_a_block_that_is_used_again_is_no_key_twice(tmp_path):
    """The same key in two blocks, a block used by name, and one laid over another, are all fine."""
    path = tmp_path / "mine.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb: {x: 3}\nc: *a\nd: {<<: *a, x: 4}\n")
    check_file(path)


@pytest.mark.parametrize("value", [" ", "' '", "# nothing"])
def test_a_blank_value_on_the_command_line_is_refused(value):
    """Snakemake's own answer is a traceback."""
    with pytest.raises(SystemExit) as refused:
        refuse_broken_files(["--cores", "1", "--config", "seeds=[1]", f"models={value}"])
    said = value.strip("'")
    expected = f"error: --config: models: {said!r} is no value; give one, or drop it"
    assert str(refused.value) == expected
    refuse_broken_files(["--config", "title=", "unlearning=null", "seeds=[1]", "-n"])
