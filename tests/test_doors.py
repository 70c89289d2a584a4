"""docs/doors.md to the letter: six doors, each short, whose files and commands are understood."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from helpers.experiments import ROOT, experiment
from palimpsest.command_line import parser
from palimpsest.new_study import check, configuration
from palimpsest.sections import NAMES

PAGE = (ROOT / "docs/doors.md").read_text()
DOORS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
MOST_WORDS = 400
SPLITS = ("forget", "retain")


def pieces(door, language):
    return re.findall(rf"```{language}\n(.*?)```", DOORS[door], re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the project's configuration, as after a clone."""
    (tmp_path / "config").mkdir()
    for path in (ROOT / "config").iterdir():
        if path.name != "languages":
            (tmp_path / "config" / path.name).symlink_to(path)
    (tmp_path / "config/languages").mkdir()
    for path in (ROOT / "config/languages").iterdir():
        (tmp_path / "config/languages" / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_what_the_door_names(door, folder):
    """The grammar and records of the page, and what a user has: more records, and checkpoints."""
    for grammar in pieces(door, "text"):
        (folder / "config/languages/greetings.pcfg").write_text(grammar)
    for records in pieces(door, "json"):
        lines = [json.loads(line) for line in records.splitlines()]
        many = [
            {key: f"{value}-{n}" for key, value in line.items()}
            for n in range(100)
            for line in lines
        ]
        (folder / "notes.jsonl").write_text("\n".join(map(json.dumps, many)))
    for table in pieces(door, "csv"):
        header, *rows = table.splitlines()
        (folder / "losses.csv").write_text(
            "\n".join([header, *(f"{n}{row}" for n in range(30) for row in rows)])
        )
    rows = [
        {"question": f"Who is {n}?", "answer": f"I am {n}.", "split": split}
        for split in SPLITS
        for n in range(10)
    ]
    (folder / "layers.npz").touch()
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name in ("full", "retain", "npo"):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps({"model_type": "llama"}))
        (folder / name / "tokenizer.json").write_text("{}")
        (folder / name / "model.safetensors").write_text(name)


def test_there_are_six_doors_and_each_is_short():
    assert len(DOORS) == 6
    for door, words in DOORS.items():
        assert len(words.split()) <= MOST_WORDS, door
        assert len(pieces(door, "yaml")) == len(pieces(door, "bash")) == 1, door


@pytest.mark.parametrize("door", DOORS)
def test_the_file_of_a_door_asks_for_what_its_command_makes(door, folder):
    """The configuration is checked as before a command; the target has files to make."""
    write_what_the_door_names(door, folder)
    (content,), (command,) = pieces(door, "yaml"), pieces(door, "bash")
    Path("mine.yaml").write_text(content)
    program, *arguments = shlex.split(command)
    assert program == "snakemake"
    assert arguments[-2:] == ["--configfile", "mine.yaml"]
    target = arguments[2]
    asked = experiment("config/config.yaml", "mine.yaml", targets=[target])
    section = yaml.safe_load(content).keys() & {one.name for one in asked.sections}
    assert section
    (name,) = section
    (one,) = (one for one in asked.sections if one.name == name)
    assert target == name or target in {part.name for part in one.parts}
    assert asked.outputs[name]


@pytest.mark.parametrize("door", DOORS)
def test_the_study_that_init_makes_is_that_of_the_door(door, folder):
    """The corpora and files, and the only section, with whatever else init decides."""
    write_what_the_door_names(door, folder)
    (folder / "greetings.pcfg").write_text("".join(pieces("A grammar", "text")))
    commands = re.findall(r"`palimpsest (init [^`]*)`", DOORS[door])
    assert commands
    for command in commands:
        given = parser().parse_args(shlex.split(command))
        check(given, ROOT)
        made = configuration(given, Path("my-study"))
        asked = yaml.safe_load(pieces(door, "yaml")[0])
        (section,) = {*NAMES} & {*asked}
        if "--activations" in command:  # the other half of the door
            section = "information"
        assert [name for name in NAMES if made[name]] == [section]
        if section == "information":
            continue
        for key in ("corpora", "languages"):
            assert without_folders(made.get(key)) == asked.get(key)
        for name in ("checkpoints", "losses", "panels"):
            assert without_folders(made[section].get(name)) == without_folders(
                asked[section].get(name)
            )


def without_folders(value):
    """A value of a configuration with the names of files and folders, without their paths."""
    if isinstance(value, dict):
        return {name: without_folders(one) for name, one in value.items()}
    if isinstance(value, list):
        return [without_folders(one) for one in value]
    return Path(value).name if isinstance(value, str) else value
