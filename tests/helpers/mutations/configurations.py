"""Mutations of a configuration: another notation, a hostile value, and what YAML would change."""

import json
import math
import os
import random
import re
from functools import cache
from pathlib import Path

import yaml

from helpers.experiments import DEFAULT, configuration, experiment, laid_over
from helpers.mutations.judge import Mutation
from palimpsest.configuration.yaml_files import check_file

ROOT = Path(__file__).parents[3]
FILE = "mine.yaml"
MINE = {
    "title": "Mine: a test",
    "claims": None,
    "models": ["opt-1.3b-twin"],
    "languages": ["L1"],
    "sizes": [16],
    "seeds": [0, 1],
    "recipe": "mine",
    "recipes": {"mine": {"epochs": 4, "batch_size": 8}},
    "hardware": {"utilisation": 0.25},
    "memorisation": None,
    "unlearning": None,
    "profiles": None,
    "density": None,
    "information": None,
    "records": None,
    "audit": None,
    "atlas": None,
}
TEXTS = ["$(touch pwned)", "{x}", "%s%n", "", " ", "../../x", "x" * 300, "\x1b[31m", "مرحبا", "🙂"]
NUMBERS = [-1, 0, 10**9, 10**30, 0.5, -0.5, 1e308, 5e-324, math.nan, math.inf, -math.inf]
OTHERS = [None, True, [], {}, [[1]], {"a": 1}, [None], "8", {1: 2}, [{"x": ["y"]}]]
# Numbers as people write them; YAML 1.1 makes something else of them: octal, sexagesimal, dates,
# truth, text.
CHANGED = [
    "010",
    "0o17",
    "1_000",
    "1:30",
    "0b11",
    "yes",
    "on",
    "2024-01-01",
    "1e3",
    "1e-3",
    "1,000",
]
NUMERIC = [
    ("sizes",),
    ("seeds",),
    ("recipes", "mine", "epochs"),
    ("hardware", "longest_job_hours"),
]


def read(path: Path) -> bytes:
    """The experiment of a file over the default, as the workflow makes it: values and outputs."""
    here = os.getcwd()
    os.chdir(ROOT)  # the paths of a configuration are relative to where Snakemake runs
    try:
        check_file(path)
        made = experiment(DEFAULT, path)
        made.outputs  # noqa: B018  # what is made of it can be worked out, too
        return canonical(made.config)
    finally:
        os.chdir(here)


def canonical(config: dict) -> bytes:
    """The values of a configuration, whatever the order of its keys."""
    return repr(_sorted(config)).encode()


def _sorted(value):
    if isinstance(value, dict):
        return sorted((repr(key), _sorted(each)) for key, each in value.items())
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def draw(chance: random.Random) -> Mutation:
    """A mutation of the configuration."""
    return chance.choice([_in_another_notation, _with_a_value, _with_a_changed_number, _damaged])(
        chance
    )


@cache
def default() -> dict:
    """The values of the default configuration."""
    return configuration(ROOT / DEFAULT)


def _result(settings: dict) -> bytes | None:
    """The values of a configuration that was accepted; what is made follows from these."""
    return canonical(laid_over(default(), settings))


def _in_another_notation(chance: random.Random) -> Mutation:
    settings = dict(MINE)
    if chance.random() < 0.5:
        items = list(settings.items())
        chance.shuffle(items)
        settings = dict(items)
    what, text = chance.choice(
        [
            ("JSON", json.dumps(settings)),
            ("flow", yaml.safe_dump(settings, default_flow_style=True)),
            ("blocks", yaml.safe_dump(settings, sort_keys=False, default_flow_style=False)),
            ("quotes", yaml.safe_dump(settings, default_style=None, width=20, indent=8)),
            ("a document", yaml.safe_dump(settings, explicit_start=True, explicit_end=True)),
            ("comments", "# mine\n" + yaml.safe_dump(settings).replace("\n", "  # why\n")),
        ]
    )
    if chance.random() < 0.3:
        text = text.replace("\n", "\r\n")
    text = chance.choice(["", "\ufeff"]) + text
    return Mutation(f"notation: {what}", {FILE: text.encode()}, _result(MINE), must_be_read=True)


def places(tree: dict, path: tuple = ()):
    """The paths of all keys of a configuration, blocks included."""
    for key, value in tree.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


def _with(path: tuple, value) -> dict:
    """The configuration with a value at a path; what is not a block on the way becomes one.

    A section that the configuration leaves out would be refused without the others that it needs.
    """
    settings = {} if MINE.get(path[0], 0) is None else json.loads(json.dumps(MINE))
    block = settings
    for key in path[:-1]:
        if not isinstance(block.get(key), dict):
            block[key] = {}
        block = block[key]
    block[path[-1]] = value
    return settings


def _with_a_value(chance: random.Random) -> Mutation:
    """A hostile value: kept exactly as it stands, or refused with its key."""
    path = chance.choice([*places(default())])
    value = chance.choice(chance.choice([TEXTS, NUMBERS, OTHERS]))
    value = [value] if chance.random() < 0.2 else value
    settings = _with(path, value)
    content = yaml.safe_dump(settings, allow_unicode=True).encode()
    named = (rf"{re.escape(FILE)}|{re.escape(DEFAULT)}", re.escape(str(path[-1])))
    return Mutation(
        f"value: {'/'.join(path)}: {value!r}"[:100], {FILE: content}, _result(settings), named
    )


def _with_a_changed_number(chance: random.Random) -> Mutation:
    """A number that a reader would change: refused with its key and the text as it stands."""
    path, written = chance.choice(NUMERIC), chance.choice(CHANGED)
    as_list = path[0] in ("sizes", "seeds")
    text = yaml.safe_dump(_with(path, ["@@"] if as_list else "@@")).replace("'@@'", written)
    named = (re.escape(FILE), re.escape(path[-1]))
    return Mutation(f"number: {'/'.join(path)}: {written}", {FILE: text.encode()}, None, named)


def _damaged(chance: random.Random) -> Mutation:
    whole = yaml.safe_dump(MINE, allow_unicode=True)
    key = chance.choice(["epochs", "modles", "Seeds", "size", "1", "trainings"])
    what, content, named = chance.choice(
        [
            ("empty", b"", FILE),
            ("binary", b"\xff\xfe\x00\x01" * 9, FILE),
            ("utf-16", whole.encode("utf-16"), None),
            ("latin-1", "title: ñ\n".encode("latin-1"), FILE),
            ("a list", b"- a\n", FILE),
            ("a text", b"words\n", FILE),
            ("broken off", whole.encode() + b"extra: [\n", FILE),
            ("a tab", whole.encode() + b"extra:\n\t- d\n", FILE),
            ("a key twice", whole.encode() + b"seeds: [3]\n", "seeds"),
            ("an object", b"title: !!python/object/apply:os.system ['true']\n", FILE),
            ("an endless list", b"models: &a [*a]\n", FILE),
            ("an alias of nothing", b"models: *nowhere\n", FILE),
            ("two documents", whole.encode() + b"---\nseeds: [1]\n", FILE),
            (f"unknown key {key}", whole.encode() + f"{key}: 3\n".encode(), key),
        ]
    )
    if named is None:  # YAML may be in UTF-16; then it is the same, or refused
        return Mutation(f"file: {what}", {FILE: content}, _result(MINE), (re.escape(FILE),))
    return Mutation(f"file: {what}", {FILE: content}, None, (re.escape(named),))
