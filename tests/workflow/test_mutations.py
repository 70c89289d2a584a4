"""A hundred random mutations of the configuration: each is accepted, or refused in one line."""

import copy
import json
import math
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from helpers.forks import Outcome, snakemake_in_forks
from helpers.projects import ROOT, TOUR, Project, run_in

SEED, HOW_MANY = 20240229, 100
TARGET = "results/runs/base/default/opt-1.3b-twin/L1/n16-seed0/trace.parquet"
CANARY = "pwned"
MODELS = ("opt-1.3b", "pythia-1b", "opt-2.7b")

TEXTS = [
    f"$(touch {CANARY})",
    f"`touch {CANARY}`",
    f"; touch {CANARY} ;",
    f"'\" && touch {CANARY} #",
    f"x\ntouch {CANARY}\n",
    "{x}",
    "{language}",
    "{input[0]!r}",
    "%s%n",
    "two words",
    "",
    " ",
    ".",
    "..",
    "../../x",
    "/etc/passwd",
    "~root",
    "-rf",
    "con",
    "*",
    "L?",
    "x" * 300,
    "nul\0byte",
    "\x1b[31mred",
    "\u202eright to left",
    "مرحبا",
    "🙂",
    "e\u0301",
    "line\u2028separator",
    "Ｌ１",
]
NUMBERS = [-1, 0, 10**9, 10**30, -(10**30), 0.5, -0.5, 1e308, 5e-324, math.nan, math.inf, -math.inf]
OTHERS = [None, True, [], {}, [[1]], {"a": 1}, [None], "8", {1: 2}, [{"x": ["y"]}]]


@dataclass(frozen=True)
class Mutation:
    """Files to write over those of the tour, arguments to add, and what must be named."""

    what: str
    named: str
    files: dict[str, bytes] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


# Making mutations


def places(tree: dict, path: tuple = ()) -> Iterator[tuple]:
    """The paths of all keys of a configuration, blocks included."""
    for key, value in tree.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


def block_at(tree: dict, path: tuple) -> dict:
    """The block at a path; a value on the way, such as `epochs: 4`, becomes a block."""
    for key in path:
        if not isinstance(tree.get(key), dict):
            tree[key] = {}
        tree = tree[key]
    return tree


def nested(path: tuple, value) -> dict:
    """A value under a path of keys, one block within another."""
    for key in reversed(path):
        value = {key: value}
    return value


def as_file(settings: dict) -> bytes:
    return yaml.safe_dump(settings, allow_unicode=True).encode()


class Mutator:
    """Draws mutations of the tour, always the same ones."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.tour = yaml.safe_load((ROOT / TOUR).read_text())
        self.default = yaml.safe_load((ROOT / "config/config.yaml").read_text())
        self.table = (ROOT / "config/models.tsv").read_text()
        self.grammar = (ROOT / "config/languages/L1.pcfg").read_bytes()
        self.places = list(places(self.default))

    def value(self):
        """A hostile value: a text, a number, something else, or any of them in a list."""
        kind = self.random.choice([TEXTS, NUMBERS, OTHERS])
        value = self.random.choice(kind)
        return [value] if self.random.random() < 0.2 else value

    def of_a_file(self) -> Mutation:
        """A value of the tour's file."""
        path, value = self.random.choice(self.places), self.value()
        settings = copy.deepcopy(self.tour)
        block = block_at(settings, path[:-1])
        block[path[-1]] = value
        return Mutation(f"{path}: {value!r}", path[-1], {TOUR: as_file(settings)})

    def of_the_command_line(self) -> Mutation:
        """A value given with --config."""
        path, value = self.random.choice(self.places), self.value()
        text = yaml.safe_dump(
            nested(path[1:], value), default_flow_style=True, allow_unicode=True, width=math.inf
        )
        text = text.strip().removesuffix("...").strip()
        if "\0" in text or text == "''":
            return self.of_the_command_line()
        return Mutation(
            f"--config {path}: {value!r}", path[-1], arguments=("--config", f"{path[0]}={text}")
        )

    def without_a_key(self) -> Mutation:
        """A key is missing from the default configuration and from the tour."""
        path = self.random.choice([p for p in self.places if "high_entropy" not in str(p)])
        files = {}
        for name, settings in (("config/config.yaml", self.default), (TOUR, self.tour)):
            settings = copy.deepcopy(settings)
            block_at(settings, path[:-1]).pop(path[-1], None)
            files[name] = as_file(settings)
        return Mutation(f"without {path}", path[-1], files)

    def of_a_key(self) -> Mutation:
        """An unknown key next to the known keys."""
        blocks = [(), *(p for p in self.places if isinstance(value_at(self.default, p), dict))]
        path = self.random.choice(blocks)
        key = self.random.choice([*TEXTS, 1, None, True, 2.5, "epoch", "Models"])
        settings = copy.deepcopy(self.tour)
        block_at(settings, path)[key] = self.value()
        written = json.dumps(key) if key is None or key is True else str(key)
        # White space and what cannot be printed are not shown as they are.
        named = repr((written.split() or [""])[0])[1:-1]
        return Mutation(f"key {(*path, key)}", named, {TOUR: as_file(settings)})

    def of_a_cell(self) -> Mutation:
        """A cell of the table of models."""
        lines = [line.split("\t") for line in self.table.splitlines()]
        place, column = self.random.choice(MODELS), self.random.randrange(len(lines[0]))
        row = next(line for line in lines if line[0] == place)
        row[column] = str(self.random.choice([*TEXTS, *NUMBERS, "3,5", "1e-3x", "12 "]))
        text = "\n".join("\t".join(line) for line in lines) + "\n"
        in_one_line = len(row[column].splitlines()) < 2
        return Mutation(
            f"{place}: {lines[0][column]}: {row[column]!r}",
            lines[0][column] if in_one_line else "models.tsv",
            {"config/models.tsv": text.encode()},
        )

    def of_a_grammar_file(self) -> Mutation:
        """A language with a hostile name; its file exists if a file can have this name."""
        names = [*TEXTS, "x" * 240, "a.b", "L1 ", "L1.pcfg", "é", "base", "-"]
        name = self.random.choice(names)
        files = {TOUR: as_file({**self.tour, "languages": ["L1", "L2", name]})}
        if "/" not in name and "\0" not in name and len(name.encode()) < 250:
            files[f"config/languages/{name}.pcfg"] = self.grammar
        return Mutation(f"language {name!r}", "languages[2]", files)

    def of_a_file_of_the_study(self) -> Mutation:
        """The content of a file: rubbish, nothing, something else, or a key twice."""
        file = self.random.choice(
            [
                "config/config.yaml",
                TOUR,
                "config/models.tsv",
                "config/languages/L2.pcfg",
                "config/unlearning.yaml",
            ]
        )
        contents = [
            b"",
            b"\xff\xfe\x00\x01" * 40,
            b"\0\0\0",
            b"models: [\n",
            b"a: b: c\n\t- d\n",
            b"- a\n- list\n",
            b"a: &a [*a]\n",
            b"a: " + b"[" * 500,
            b"key: *nowhere\n",
            b"!!python/object/apply:os.system ['touch pwned']\n",
            b"x" * 100_000,
            b"seeds: [0]\nseeds: [1]\n",
        ]
        content = self.random.choice(contents)
        return Mutation(f"{file}: {content[:40]!r}", Path(file).name, {file: content})

    def of_a_repeated_key(self) -> Mutation:
        """The tour's file gives a key twice, outermost or within a block."""
        key, again = self.random.choice(
            [("seeds", "seeds: [3]"), ("recipes", "recipes: {default: {}}")]
        )
        if self.random.random() < 0.5:
            key, again = "epochs", "hardware: {epochs: 3, start: x, epochs: 4}"
        return Mutation(
            f"{key} twice", key, {TOUR: (ROOT / TOUR).read_bytes() + again.encode() + b"\n"}
        )

    def bomb(self) -> Mutation:
        """A configuration that is small to write and endless to walk through."""
        wide = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
            f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
            for before, name in zip("abcdefghij", "bcdefghijk", strict=True)
        )
        name, text = self.random.choice(
            [
                ("a", wide),
                ("models", "models: &a [*a]\n"),
                ("models", "models: " + "[" * 50 + "]" * 50 + "\n"),
                ("seeds", f"seeds: [{', '.join(['1'] * 15_000)}]\n"),
            ]
        )
        return Mutation(f"bomb {text[:30]!r}", name, {TOUR: text.encode()})

    def mutations(self) -> list[Mutation]:
        """Mutations of all kinds; each kind's weight is its number of mutations."""
        weights: dict[Callable[[], Mutation], int] = {
            self.of_a_file: 30,
            self.of_the_command_line: 22,
            self.without_a_key: 8,
            self.of_a_key: 8,
            self.of_a_cell: 12,
            self.of_a_grammar_file: 8,
            self.of_a_file_of_the_study: 8,
            self.of_a_repeated_key: 2,
            self.bomb: 2,
        }
        return [draw() for draw, weight in weights.items() for _ in range(weight)]


def value_at(tree: dict, path: tuple):
    for key in path:
        tree = tree[key]
    return tree


MUTATIONS = Mutator(SEED).mutations()


# Running them


def mutated(folder: Path, mutation: Mutation, project: Project) -> None:
    """A folder of the tour with a mutation; what no mutation changes is linked to."""
    folder.mkdir()
    for part in ("Snakefile", "workflow", "envs", "profiles"):
        (folder / part).symlink_to(project.folder / part)
    shutil.copytree(project.folder / "config", folder / "config")
    for name, content in mutation.files.items():
        (folder / name).write_bytes(content)


def files_in(folder: Path) -> set[str]:
    """The files of a folder, except those that Snakemake keeps for itself."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    return {path for path in found if not path.startswith(".snakemake")}


@dataclass(frozen=True)
class Result:
    """How a dry run ended, and the files that it made."""

    outcome: Outcome
    made: set[str]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> list[Result]:
    """A dry run of everything with each of the mutations."""
    here = tmp_path_factory.mktemp("mutations")
    (here / "project").mkdir()
    project = Project.fresh(here / "project")
    folders = [here / str(place) for place in range(len(MUTATIONS))]
    for folder, mutation in zip(folders, MUTATIONS, strict=True):
        mutated(folder, mutation, project)
    before = [files_in(folder) for folder in folders]
    outcomes = snakemake_in_forks(
        [(f, arguments(m)) for f, m in zip(folders, MUTATIONS, strict=True)]
    )
    assert not list(here.rglob(CANARY))
    assert {path.name for path in here.iterdir()} == {"project", *(f.name for f in folders)}
    return [
        Result(outcome, files_in(folder) - there)
        for outcome, folder, there in zip(outcomes, folders, before, strict=True)
    ]


def arguments(mutation: Mutation) -> list[str]:
    """The command line of a dry run of everything."""
    given = ["--cores", "2", "--dry-run", "--quiet", "all"]
    return [*given, "--configfile", TOUR, *mutation.arguments]


def error_of(outcome: Outcome) -> str:
    """The one line of an error."""
    lines = {line for line in outcome.stdout.splitlines() if line.startswith("error: ")}
    assert len(lines) == 1, outcome.stdout
    return lines.pop()


def test_there_are_as_many_mutations_as_the_weights_say():
    assert len(MUTATIONS) == HOW_MANY


@pytest.mark.parametrize("place", range(HOW_MANY), ids=lambda place: str(place))
def test_a_mutation_is_accepted_or_refused_in_one_line(results, place):
    """Nothing is made by a dry run, and a refusal names what was mutated."""
    mutation, result = MUTATIONS[place], results[place]
    printed = result.outcome.stdout
    assert not result.made, mutation.what
    assert "Traceback" not in printed, f"{mutation.what}\n{printed}"
    if result.outcome.returncode == 0:
        return
    assert result.outcome.returncode == 1, f"{mutation.what}\n{printed}"
    line = error_of(result.outcome)
    assert line.isprintable()
    assert mutation.named in line, f"{mutation.what}\n{line}"
    assert re.match(r"error: (--config|[\w./ ]+(:\d+)?): ", line), line


# What Snakemake itself reads, before the workflow
RUBBISH = {
    "empty": (b"", "must hold keys and their values"),
    "a list": (b"- a\n- list\n", "must hold keys and their values"),
    "broken off": (b"models: [\n", "expected the node content"),
    "binary": (b"\xff\xfe\x00\x01" * 40, "is not text in YAML"),
    "an alias of nothing": (b"key: *nowhere\n", "found undefined alias"),
    "a key twice": (b"seeds: [0]\nseeds: [1]\n", "the key 'seeds' is there a second time"),
}
PROFILES = [[], *(["--workflow-profile", f"config/profiles/{p}"] for p in ("slurm", "workstation"))]


@pytest.mark.parametrize("profile", PROFILES, ids=" ".join)
def test_a_broken_file_on_the_command_line_is_named(project, profile):
    """One line says which file and what is wrong with it, and nothing is made."""
    for name, (content, _) in RUBBISH.items():
        (project.folder / f"{name}.yaml").write_bytes(content)
    before = files_in(project.folder)
    given = ["--cores", "1", *profile, "--configfile", TOUR]
    runs = [(project.folder, [*given, f"{name}.yaml"]) for name in [*RUBBISH, "nowhere"]]
    *outcomes, missing = snakemake_in_forks(runs)
    for (name, (_, wrong)), outcome in zip(RUBBISH.items(), outcomes, strict=True):
        assert outcome.returncode == 1, outcome.stdout
        assert "Traceback" not in outcome.stdout
        line = error_of(outcome)
        assert line.startswith(f"error: {name}.yaml:")
        assert wrong in line
    assert error_of(missing) == "error: nowhere.yaml: no such file; it was given with --configfile"
    assert {f for f in files_in(project.folder) - before if "__pycache__" not in f} == set()


def test_snakemake_still_reads_these_files_first(project):
    """Without a profile, Snakemake's message names no file. If it does one day, drop the check."""
    (project.folder / "empty.yaml").write_bytes(b"")
    done = project.snakemake("--workflow-profile", "none", configfiles=("empty.yaml",))
    assert done.returncode == 1
    assert "error: empty.yaml" not in done.stdout


def test_a_fork_does_what_the_command_does(tmp_path):
    """A few mutations, with each kind of result: the same status and the same output."""
    (tmp_path / "project").mkdir()
    project = Project.fresh(tmp_path / "project")
    chosen = [MUTATIONS[place] for place in (0, 33, 55, 72, 90)]
    folders = [tmp_path / str(place) for place in range(len(chosen))]
    for folder, mutation in zip(folders, chosen, strict=True):
        mutated(folder, mutation, project)
    runs = [(f, arguments(m)) for f, m in zip(folders, chosen, strict=True)]
    for (folder, given), forked in zip(runs, snakemake_in_forks(runs), strict=True):
        done = run_in(folder, Project(folder).command(*given, configfiles=()))
        assert done.returncode == forked.returncode
        assert lasting(done.stdout) == lasting(forked.stdout)


def lasting(printed: str) -> list[str]:
    """Snakemake's output without the parts that differ in every run."""
    passing = re.compile(r"\[|  (Date|Workflow ID|Command|Run directory): ")
    return sorted(line for line in printed.splitlines() if not passing.match(line))


def test_paths_that_are_commands_are_only_paths(project):
    """A folder may be called almost anything; a dataset and a training are made with these."""
    folder, table = f'it\'s "a" $(touch {CANARY}) ;dir', f"`touch {CANARY}` & -rf.tsv"
    os.rename(project.folder / "config/languages", project.folder / folder)
    os.rename(project.folder / "config/models.tsv", project.folder / table)
    with open(project.folder / TOUR, "a") as file:
        yaml.safe_dump({"languages_folder": folder, "models_table": table}, file)
    before = files_in(project.folder)
    done = project.snakemake(TARGET)
    assert done.returncode == 0, done.stdout
    made = {path.split("/")[0] for path in files_in(project.folder) - before}
    assert made - {"workflow"} == {"results", "logs", "benchmarks"}  # and compiled code
    assert not list(project.folder.rglob(CANARY))
    assert (project.folder / TARGET).exists()
