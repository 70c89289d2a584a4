"""The library as a package: `pip install .` in an empty environment, then the README's example."""

import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

import palimpsest

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "workflow/scripts/palimpsest"
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# What the example of the README takes as given
GIVEN = """
import numpy as np
loss = np.array([[2.0, 2.0], [1.0, 0.4], [0.5, 0.1]])
loss_without = np.array([[2.0, 2.0], [1.5, 0.5], [1.5, 0.5]])
"""
SHOWN = """
import sys
assert len(strings) == 1000
assert memorised.start.tolist() == [1, 1]
assert "torch" not in sys.modules
print(memorisation.__file__)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A copy of the package's sources, because a build leaves files in their folder."""
    folder = tmp_path_factory.mktemp("source")
    for name in BUILT_FROM:
        shutil.copy(ROOT / name, folder / name)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(LIBRARY, folder / "workflow/scripts/palimpsest", ignore=ignored)
    return folder


def run(*words: str | Path, **options) -> subprocess.CompletedProcess:
    """Run a program, which must succeed."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.slow
def test_every_file_of_the_library_is_in_the_package(source, tmp_path):
    """Templates too."""
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path, source)
    (wheel,) = tmp_path.glob("palimpsest-*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = [path for path in LIBRARY.rglob("*") if path.suffix in (".py", ".j2")]
    assert packed == {path.relative_to(LIBRARY.parent).as_posix() for path in files}


def test_an_installed_library_is_its_own_code_alone(source, tmp_path):
    """Packages next to it are not hashed and not archived."""
    installed = tmp_path / "site-packages"
    shutil.copytree(source / "workflow/scripts/palimpsest", installed / "palimpsest")
    (installed / "other").mkdir()
    (installed / "other-1.0.dist-info").mkdir()
    (installed / "other/secret.py").write_text("")
    (installed / "neighbour.py").write_text("")
    code = "from palimpsest.fingerprint import code_files; print(*code_files(), sep='\\n')"
    done = run(sys.executable, "-c", code, cwd=tmp_path, env={"PYTHONPATH": str(installed)})
    found = {Path(line) for line in done.stdout.split()}
    files = (installed / "palimpsest").rglob("*")
    assert found == {path for path in files if path.suffix in (".py", ".j2")}


@pytest.mark.slow
def test_the_example_of_the_readme_runs_in_an_empty_environment(source, tmp_path):
    """Only the package's own requirements are installed, without torch."""
    venv.create(tmp_path / "empty", with_pip=True)
    python = tmp_path / "empty/bin/python"
    run(python, "-m", "pip", "install", "--quiet", source)
    (example,) = (
        code
        for code in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        if "import memorisation" in code
    )
    shutil.copytree(ROOT / "config", tmp_path / "config")
    done = run(python, "-I", "-c", GIVEN + example + SHOWN, cwd=tmp_path)
    assert str(tmp_path / "empty") in done.stdout


def test_what_the_package_asks_for_is_what_the_workflow_is_tested_with():
    """Every lower bound is the pin of requirements.txt, without its last number."""
    pins = dict(re.findall(r"^([\w.-]+)==([\w.]+)$", (ROOT / "requirements.txt").read_text(), re.M))
    extras = PROJECT["optional-dependencies"].values()
    asked = [*PROJECT["dependencies"], *(entry for extra in extras for entry in extra)]
    for entry in asked:
        name, bound = entry.split(">=")
        assert bound == ".".join(pins[name].split(".")[:2]), entry


def test_the_package_has_the_library_s_version():
    """The version is in three files."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert PROJECT["version"] == palimpsest.__version__ == citation["version"]
    assert PROJECT["license"] == citation["license"]
