"""The recipes of containers: the same Python and packages as everywhere, and what a linter says."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from helpers.programs import program

ENVS = Path(__file__).parents[1] / "envs"
RECIPES = (ENVS / "Containerfile", ENVS / "palimpsest.def")
BASE = re.compile(r"^FROM (\S+)$|^From: (\S+)$", re.MULTILINE)


def code_of(recipe):
    """The lines of a recipe without comments, with those that go on joined."""
    lines = recipe.read_text().replace("\\\n", " ").splitlines()
    return [" ".join(line.split()) for line in lines if not line.lstrip().startswith("#")]


def installed_by(recipe, program):
    """What the recipe gives a program that installs, in words."""
    found = [re.findall(rf"{program} install ((?:[^&;|]|$)+)", line) for line in code_of(recipe)]
    return [words.split() for line in found for words in line]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_the_only_list_of_packages_is_the_file_of_requirements(recipe):
    expected = ["--no-cache-dir", "--requirement", "/opt/requirements.txt"]
    assert installed_by(recipe, "pip") == [expected]
    assert any("requirements.txt /opt/requirements.txt" in line for line in code_of(recipe))
    assert not any("==" in line or "conda" in line for line in code_of(recipe))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_python_is_that_of_the_environments(recipe):
    (names,) = BASE.findall(recipe.read_text())
    image, version = "".join(names).rsplit(":", 1)
    assert image == "docker.io/library/python"
    for file in ENVS.glob("*.yaml"):
        (python,) = (
            line.partition("=")[2]
            for line in yaml.safe_load(file.read_text())["dependencies"]
            if isinstance(line, str) and line.startswith("python=")
        )
        assert version.split("-")[0] == python, file.name


def test_both_recipes_have_the_same_image_and_programs():
    bases, programs = (
        {str(found(recipe)) for recipe in RECIPES}
        for found in (
            lambda recipe: "".join(BASE.findall(recipe.read_text())[0]),
            lambda recipe: installed_by(recipe, "apt-get"),
        )
    )
    assert len(bases) == len(programs) == 1
    assert "'g++', 'git'" in programs.pop()


def hadolint(file):
    """What the linter says; its program comes with requirements-peers.txt."""
    linter = program("hadolint")
    if linter is None:
        skip = pytest.fail if "PALIMPSEST_CI" in os.environ else pytest.skip
        skip("hadolint: not installed; install it with: make .venv/peers.installed")
    done = subprocess.run([linter, "--no-color", file], capture_output=True, text=True)
    return done.returncode, done.stdout


def test_a_linter_finds_nothing(tmp_path):
    assert hadolint(RECIPES[0]) == (0, "")
    bad = tmp_path / "Containerfile"
    bad.write_text(RECIPES[0].read_text().replace("--no-cache-dir ", ""))
    status, said = hadolint(bad)
    assert status == 1
    assert "DL3042" in said
