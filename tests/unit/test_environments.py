"""Environments: exact pins that agree, and in each what the scripts of its rules import.

No conda is needed: the files are read, and imports are followed from the scripts' source.
"""

import ast
import importlib.metadata
import re
import sys
from functools import cache
from itertools import zip_longest
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "workflow/scripts"
ENVIRONMENTS = sorted(path.name for path in (ROOT / "envs").glob("*.yaml"))
RULE_FILES = sorted((ROOT / "workflow/rules").glob("*.smk"))
RULE = re.compile(r"^(?:rule (\w+)|use rule (\w+) as (\w+) with):$", re.MULTILINE)
SECTION = re.compile(r"^    (\w+):(.*(?:\n {8}.*)*)", re.MULTILINE)
NEEDED = {"conda", "log", "benchmark", "threads", "resources"}


def canonical(name):
    """A package's name as registries compare them."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def requirements():
    """The pins of requirements.txt: version by canonical name."""
    pins = {}
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            name, version = line.split("==")
            assert canonical(name) not in pins, f"{name} stands twice"
            pins[canonical(name)] = version
    return pins


@cache
def environment(name):
    """An environment's pins: those of conda, and those of pip."""
    entries = yaml.safe_load((ROOT / "envs" / name).read_text())["dependencies"]
    conda = dict(entry.split("=") for entry in entries if isinstance(entry, str))
    (pip,) = (entry["pip"] for entry in entries if isinstance(entry, dict))
    return conda, dict(entry.split("==") for entry in pip)


@cache
def rules():
    """Every rule that runs a script or a command: its sections' text, inherited ones included."""
    sections = {}
    for path in RULE_FILES:
        source = path.read_text()
        found = list(RULE.finditer(source))
        for match, after in zip_longest(found, found[1:]):
            new, parent, name = match.groups()
            body = source[match.end() : after.start() if after else None]
            own = dict(SECTION.findall(body))
            inherited = dict(sections[parent]) if parent else {}
            sections[new or name] = {**inherited, **own}
    return {name: body for name, body in sections.items() if {"script", "shell"} & set(body)}


def script_of(rule):
    """The script that a rule runs, by `script:` or in a shell command with it as a param."""
    body = rules()[rule]
    named = body.get("script") or re.search(r"\bscript=(\w+),", body["params"])[1]
    for path in RULE_FILES:
        constant = re.search(rf"^{named} = (.*)$", path.read_text(), re.MULTILINE)
        named = constant[1] if constant else named
    return SCRIPTS / re.search(r"(\w+\.py)\"", named)[1]


def modules(package, names):
    """The source files of a `palimpsest` module and of those of its names that are modules."""
    dotted = [package, *(f"{package}.{name}" for name in names)]
    for step in range(1, package.count(".") + 1):
        dotted.append(package.rsplit(".", step)[0])
    for name in dotted:
        path = SCRIPTS / Path(*name.split("."))
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                yield file


@cache
def imports(file):
    """What a source file imports, at its top or later: library files, and third parties' names."""
    files, others = set(), set()
    tree = ast.parse(file.read_text())
    only_typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in only_typing:
            continue
        if isinstance(node, ast.Import):
            found = [(alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute in this library"
            found = [(node.module, [alias.name for alias in node.names])]
        else:
            continue
        for name, parts in found:
            if name.split(".")[0] == "palimpsest":
                files.update(modules(name, parts))
            elif name.split(".")[0] not in sys.stdlib_module_names:
                others.add(name.split(".")[0])
    return files, others


def third_parties(script):
    """Distributions that a script imports, itself or through the library."""
    todo, seen, names = [script], set(), set()
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            files, others = imports(file)
            todo += files
            names |= others
    distributions = importlib.metadata.packages_distributions()
    return {canonical(distributions[name][0]) for name in names}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_pin_is_exact(name):
    """`=` with a whole version in conda, `==` in pip, and conda-forge alone."""
    content = yaml.safe_load((ROOT / "envs" / name).read_text())
    assert content["channels"] == ["conda-forge", "nodefaults"]
    conda, pip = environment(name)
    for version in [*conda.values(), *pip.values()]:
        assert re.fullmatch(r"\d+(\.\d+)+(\.post\d+)?", version), version
    assert {"python", "pip"} <= set(conda)


def test_requirements_are_exact():
    """Every line is a comment or one package with one version: no ranges, links or options."""
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        assert not line or re.fullmatch(r"[A-Za-z0-9_.-]+==\d+(\.\d+)*(\.post\d+)?", line), line


def test_python_is_the_same_everywhere():
    """One minor version in all environments, which the project allows."""
    versions = {environment(name)[0]["python"] for name in ENVIRONMENTS}
    minors = {tuple(map(int, version.split(".")[:2])) for version in versions}
    assert len(minors) == 1
    assert minors.pop() >= (3, 11)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_pins_agree_with_the_requirements(name):
    """The tests run with requirements.txt, so what they test is what the rules run with."""
    pins = {canonical(package): version for package, version in environment(name)[1].items()}
    assert pins == {package: requirements().get(package) for package in pins}


def test_the_requirements_are_what_is_installed():
    """The tests of this very run used the pins."""
    for package, version in requirements().items():
        installed = importlib.metadata.version(package).split("+")[0]
        assert installed == version, package


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_has_what_its_scripts_import_and_no_more(name):
    """Snakemake takes a missing package from the host in silence, so a run would not show it."""
    of_it = [rule for rule, body in rules().items() if f"envs/{name}" in body["conda"]]
    assert of_it, f"no rule uses envs/{name}"
    imported = {package for rule in of_it for package in third_parties(script_of(rule))}
    assert {canonical(package) for package in environment(name)[1]} == imported


def test_imports_are_followed():
    """The test above sees what is imported late, deep in the library and through a package."""
    packages = third_parties(SCRIPTS / "finetune.py")
    assert {"torch", "deepspeed", "accelerate", "transformers", "pyarrow"} <= packages
    assert "numba" in third_parties(SCRIPTS / "dataset.py")
    assert "palimpsest" not in packages


@pytest.mark.parametrize("rule", rules())
def test_every_rule_has_what_a_cluster_needs(rule):
    """An environment, a log, a benchmark, threads and resources, its own or inherited.

    A rule that makes nothing has no benchmark: that is a file, and would be what it makes.
    """
    body = rules()[rule]
    needed = NEEDED if "output" in body else NEEDED - {"benchmark"}
    assert set(body) >= needed, f"{rule} lacks {needed - set(body)}"
    assert re.search(r"\bmem_mb=", body["resources"])
    assert re.search(r"\bruntime=", body["resources"])
    assert re.search(r'"\.\./\.\./envs/(.*)"', body["conda"])[1] in ENVIRONMENTS
    assert script_of(rule).is_file()


def test_no_two_rules_share_a_log_or_a_benchmark():
    """A rule made from another writes its own."""
    for section in ("log", "benchmark"):
        bodies = [body for body in rules().values() if section in body]
        written = [" ".join(body[section].split()) for body in bodies]
        assert len(written) == len(set(written)), section


def test_every_script_is_a_rules_or_the_documentations():
    """No script lies about that nothing runs."""
    run = {script_of(rule).name for rule in rules()}
    assert {path.name for path in SCRIPTS.glob("*.py")} == run | {"reference.py"}


def test_partitions_and_accounts_stand_in_profiles_only():
    """A rule says what it needs, a profile where that is to be had."""
    for path in RULE_FILES:
        assert not re.search(r"slurm_(partition|account)", path.read_text()), path.name
