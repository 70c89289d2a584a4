"""Environments: exact pins that agree, and in each what the scripts of its rules import.

No conda is needed: the files are read, and imports are followed from the scripts' source.
"""

import importlib.metadata
import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.utils import canonicalize_name

from helpers.experiments import PAPER
from helpers.imports import third_parties
from helpers.rules import rules, script_of

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "workflow/scripts"
REQUIREMENTS = ("requirements.txt", "requirements-pretrained.txt")
ENVIRONMENTS = sorted(path.name for path in (ROOT / "envs").glob("*.yaml"))


def lines_of(file):
    """The lines of a file of requirements, without comments."""
    lines = (line.split("#")[0].strip() for line in (ROOT / file).read_text().splitlines())
    return [line for line in lines if line]


@cache
def requirements(*files):
    """The pins of some files of requirements: version by canonical name."""
    pins = {}
    for line in (line for file in files for line in lines_of(file)):
        name, version = line.split("==")
        assert canonicalize_name(name) not in pins, f"{name} stands twice"
        pins[canonicalize_name(name)] = version
    return pins


@cache
def environment(name):
    """An environment's pins: those of conda, and those of pip."""
    entries = yaml.safe_load((ROOT / "envs" / name).read_text())["dependencies"]
    conda = dict(entry.split("=") for entry in entries if isinstance(entry, str))
    (pip,) = (entry["pip"] for entry in entries if isinstance(entry, dict))
    return conda, dict(entry.split("==") for entry in pip)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_pin_is_exact(name):
    """`=` with a whole version in conda, `==` in pip, and conda-forge alone."""
    content = yaml.safe_load((ROOT / "envs" / name).read_text())
    assert content["channels"] == ["conda-forge", "nodefaults"]
    conda, pip = environment(name)
    for version in [*conda.values(), *pip.values()]:
        assert re.fullmatch(r"\d+(\.\d+)+(\.post\d+)?", version), version
    assert {"python", "pip"} <= set(conda)


@pytest.mark.parametrize("file", REQUIREMENTS)
def test_requirements_are_exact(file):
    """Every line is a comment or one package with one version: no ranges, links or options."""
    for line in lines_of(file):
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==\d+(\.\d+)*(\.post\d+)?", line), line


def test_optional_requirements_are_exact_and_move_nothing():
    """Exact pins in each further file; a package of requirements.txt has the version from there."""
    for path in ROOT.glob("requirements-*.txt"):
        for line in path.read_text().splitlines():
            line = line.split("#")[0].strip()
            if line:
                name, _, version = line.partition("==")
                assert re.fullmatch(r"\d+(\.\d+)*(b\d+|\.post\d+)?", version), line
                assert requirements().get(canonicalize_name(name), version) == version, line


def test_python_is_the_same_everywhere():
    """One minor version in all environments, which the project allows."""
    versions = {environment(name)[0]["python"] for name in ENVIRONMENTS}
    minors = {tuple(map(int, version.split(".")[:2])) for version in versions}
    assert len(minors) == 1
    assert minors.pop() >= (3, 11)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_pins_agree_with_the_requirements(name):
    """The tests run with requirements.txt, so what they test is what the rules run with."""
    pins = {
        canonicalize_name(package): version for package, version in environment(name)[1].items()
    }
    assert pins == {package: requirements(*REQUIREMENTS).get(package) for package in pins}


def test_the_requirements_are_what_is_installed():
    """The tests of this very run used the pins."""
    for package, version in requirements("requirements.txt").items():
        installed = importlib.metadata.version(package).split("+")[0]
        assert installed == version, package


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_has_what_its_scripts_import_and_no_more(name):
    """Also what no job of the tests of conda imports."""
    of_it = [rule for rule, body in rules().items() if body.conda_env.endswith(f"envs/{name}")]
    assert of_it, f"no rule uses envs/{name}"
    imported = {package for rule in of_it for package in third_parties(rule)}
    assert {canonicalize_name(package) for package in environment(name)[1]} == imported


def test_imports_are_followed():
    """The test above sees what is imported late, deep in the library and through a package."""
    packages = third_parties("train_twins_on_base")
    assert {"torch", "deepspeed", "accelerate", "transformers", "pyarrow"} <= packages
    assert "numba" in third_parties("dataset")
    assert "matplotlib" in third_parties("figure")
    assert "torch" not in third_parties("figure")
    assert "matplotlib" not in third_parties("claims")


@pytest.mark.parametrize("name", rules())
def test_every_rule_has_what_a_cluster_needs(name):
    """An environment, a log, a benchmark, threads and resources, its own or inherited.

    A rule without outputs has no benchmark, because the benchmark's file would be an output.
    """
    rule = rules()[name]
    assert list(rule.log)
    assert bool(rule.benchmark) == bool(list(rule.output))
    assert {"mem_mb", "runtime", "_cores"} <= set(rule.resources)
    assert Path(rule.conda_env).name in ENVIRONMENTS
    assert script_of(name).is_file()


@pytest.mark.parametrize("configfiles", [(), (PAPER,)], ids=["twins", "full models"])
def test_no_two_rules_share_a_log_or_a_benchmark(configfiles):
    """A rule made from another writes its own; rules for different twins share a pattern."""
    found = rules(*configfiles)
    assert any(name.startswith("train_full_on") for name in found) == bool(configfiles)
    alike = [rule for name, rule in found.items() if not name.startswith("train_twins_on")]
    logs = [str(rule.log[0]) for rule in alike]
    benchmarks = [str(rule.benchmark) for rule in alike if rule.benchmark]
    assert len(logs) == len(set(logs))
    assert len(benchmarks) == len(set(benchmarks))


def test_every_script_is_a_rules_or_the_documentations():
    """There is no script that nothing runs."""
    run = {script_of(name).name for name in rules()}
    assert {path.name for path in SCRIPTS.glob("*.py")} == run | {"reference.py"}


def test_what_takes_seconds_shares_a_submission():
    """Every rule that runs a script is in a group of SLURM's profile, but for those of a user."""
    profile = yaml.safe_load((ROOT / "config/profiles/slurm/config.yaml").read_text())
    # Some rules are of blocks that the default does not have.
    found = {**rules(), **rules("config/paper.yaml"), **rules("config/judged.yaml")}
    scripts = {name for name, rule in found.items() if rule.script}
    of_a_user = {
        "plan",
        "stale_state",
        "remove_stale_state",
        "set_leftovers_apart",
        "rename_results",
        "power_table",
    }
    assert profile["groups"].keys() == scripts - of_a_user


def test_partitions_and_accounts_stand_in_profiles_only():
    """A rule says what it needs; a profile says where to get it."""
    for name, rule in rules().items():
        assert not {"slurm_partition", "slurm_account"} & set(rule.resources), name
