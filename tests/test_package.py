"""The library as a package, with the oldest versions that it allows and without torch."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.utils import canonicalize_name
from packaging.version import Version

import palimpsest
from helpers.programs import program
from palimpsest.lazy_import import EXTRAS

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "workflow/scripts/palimpsest"
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE", "setup.py", "Snakefile", "requirements.txt")
FOLDERS = ("config", "workflow", "envs", "profiles")
HELPER = ROOT / "tests/helpers/page_of_library.py"
TRIED_WITH_OLDEST = ("figures", "density")  # extras
BROUGHT_BY = {"markupsafe": "Jinja2", "tokenizers": "transformers"}
NEEDS_TORCH = """
from palimpsest import audit
try:
    audit.extractable
except ModuleNotFoundError as error:
    print(error)
"""
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
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
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
    names = zipfile.ZipFile(wheel).namelist()
    packed = {name for name in names if ".dist-info/" not in name and ".data/" not in name}
    files = [path for path in LIBRARY.rglob("*") if path.suffix in (".py", ".j2")]
    assert packed == {path.relative_to(LIBRARY.parent).as_posix() for path in files}


WHAT_IS_PACKED = """
import runpy, setuptools
setuptools.setup = lambda data_files: print(*[file for _, files in data_files for file in files])
runpy.run_path("setup.py")
"""


def packed(source) -> set[str]:
    return set(run(sys.executable, "-c", WHAT_IS_PACKED, cwd=source).stdout.split())


def test_files_that_git_does_not_know_are_not_packed(source, tmp_path):
    """A user's languages and records lie in the folders of the clone."""
    clone = tmp_path / "clone"
    shutil.copytree(source, clone, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    given = packed(clone)
    mine = ("config/languages/mine.pcfg", "config/records/mine.jsonl")
    for name in mine:
        (clone / name).write_text("")
    assert packed(clone) == {*given, *mine}, "without git, nothing tells them"
    for name in mine:
        (clone / name).unlink()
    run("git", "init", "--quiet", clone)
    run("git", "-C", clone, "add", "--all")
    for name in mine:
        (clone / name).write_text("")
    assert packed(clone) == given
    assert {"Snakefile", "config/languages/L1.pcfg", "workflow/rules/plan.smk"} < given
    (clone / ".git/index").write_bytes(b"damaged")
    done = subprocess.run(
        [sys.executable, "-c", WHAT_IS_PACKED], cwd=clone, capture_output=True, text=True
    )
    assert "error: " in done.stderr
    assert "git cannot list the files of this clone" in done.stderr


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


def test_what_is_not_tried_with_its_oldest_versions_is_what_the_workflow_is_tested_with():
    """Such a lower bound is the pin of requirements.txt, without its last number."""
    pins = pinned()
    for extra, entries in PROJECT["optional-dependencies"].items():
        if extra not in TRIED_WITH_OLDEST:
            for name, bound in (entry.split(">=") for entry in entries):
                assert bound == ".".join(pins[name].split(".")[:2]), name


def test_no_lower_bound_is_above_what_the_workflow_is_tested_with():
    pins = pinned()
    for name, bound in (entry.split(">=") for entry in oldest()):
        assert Version(bound) <= Version(pins[name]), name


def test_every_package_that_the_library_imports_is_asked_for():
    """In the list or in an extra, and an extra's modules are named where they are missing."""
    entries = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
    asked = {canonicalize_name(entry.split(">=")[0]) for entry in entries}
    of_module = importlib.metadata.packages_distributions()
    for module, extra in EXTRAS.items():
        names = {canonicalize_name(name) for name in of_module[module]}
        listed = PROJECT["optional-dependencies"][extra]
        needed = {canonicalize_name(entry.split(">=")[0]) for entry in listed}
        assert names & needed or module in BROUGHT_BY, module
        assert names & asked or module in BROUGHT_BY, module


def pinned() -> dict[str, str]:
    """The versions of requirements.txt by package."""
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)$", (ROOT / "requirements.txt").read_text(), re.M))


def oldest() -> list[str]:
    """The requirements whose lower bounds a test installs, such as "numpy>=2.0.0"."""
    extras = PROJECT["optional-dependencies"]
    return [*PROJECT["dependencies"], *chain(*(extras[name] for name in TRIED_WITH_OLDEST))]


@pytest.mark.costly
def test_the_library_works_with_the_oldest_versions_that_it_allows(source, tmp_path):
    """The examples of its page and of the README; those that need other extras say so, by name."""
    python = tmp_path / "oldest/bin/python"
    uv = program("uv")  # faster, where it is installed
    venv.create(tmp_path / "oldest", with_pip=not uv)
    pins = [entry.replace(">=", "==") for entry in oldest()]
    install = [uv, "pip", "install", "--python", python]
    if not uv:
        install = [python, "-m", "pip", "--disable-pip-version-check", "install"]
    library = f"palimpsest[{','.join(TRIED_WITH_OLDEST)}] @ {source.as_uri()}"
    run(*install, "--quiet", *pins, library)
    shutil.copytree(ROOT / "config", tmp_path / "config")
    done = run(python, "-I", HELPER, ROOT / "docs/library.md", cwd=tmp_path)
    found = json.loads(done.stdout.splitlines()[-1])
    for entry in pins:
        name, version = entry.split("==")
        assert found["versions"][name] == version, name
    assert found["attempted"] > 90
    assert found["failed"] == 0, done.stdout
    assert found["missing"] == ["spacy is not installed; pip install 'palimpsest[private]'"]
    assert "torch" not in found["modules"]
    readme = (ROOT / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (example,) = (code for code in examples if "memorisation.contextual" in code)
    done = run(python, "-I", "-c", GIVEN + example + SHOWN, cwd=tmp_path)
    assert str(tmp_path / "oldest") in done.stdout
    said = "torch is not installed; pip install 'palimpsest[training]'"
    assert run(python, "-I", "-c", NEEDS_TORCH, cwd=tmp_path).stdout.strip() == said


def test_the_package_has_the_library_s_version():
    """The version is in three files."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert PROJECT["version"] == palimpsest.__version__ == citation["version"]
    assert PROJECT["license"] == citation["license"]
