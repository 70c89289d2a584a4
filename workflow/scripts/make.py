"""Make files from files, or report lines: what every rule runs that trains and asks no model.

The parameter `make` of a rule names a function. The function takes the rule's inputs by name, read
as its decorator `reads` says; the rule's other parameters (`parameters` holds those whose names
depend on the wildcards); and those wildcards, resources and paths of outputs that it names, and the
open log. Inputs and parameters without a name only decide when the rule runs again. What the
function returns is written as its decorator `makes` says: the table of a kind to the output with
the kind's name, or to `table`. A function that yields makes the next file of each output. Of a rule
without outputs, the function returns lines, which are printed.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import isgenerator, signature
from typing import TextIO

# Snakemake puts this folder behind all others, and an installed palimpsest would come first.
sys.path.insert(0, os.path.dirname(__file__))

from palimpsest import tables
from palimpsest.lazy_import import named
from palimpsest.script_job import script_job

NUMBERS = ("size", "seed")  # wildcards that are whole numbers
# DeepSpeed, which transformers imports, would look for a GPU and print that there is none.
os.environ["DS_ACCELERATOR"] = "cpu"


class Files(Sequence):
    """The contents of some files; each is read when it is used, to save memory."""

    def __init__(self, paths: Sequence[str], how: tables.Kind | Callable):
        self.paths, self.how = paths, how

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, place: int):
        return read(self.paths[place], self.how)


def read(paths: str | Sequence[str], how: tables.Kind | Callable | list):
    """What one or several files hold, see `palimpsest.making.reads`."""
    if isinstance(how, list):
        return Files(paths, *how)
    if isinstance(how, tables.Kind):
        return tables.read_all([paths] if isinstance(paths, str) else paths, how)
    return how(paths)


def arguments(job, function: Callable, log: TextIO) -> dict:
    """The arguments of a function by name, from Snakemake's object `snakemake`."""
    how = getattr(function, "reads", {})
    inputs = {
        name: read(paths, how[name]) if name in how else paths for name, paths in job.input.items()
    }
    wildcards = {
        name: int(value) if name in NUMBERS else value for name, value in job.wildcards.items()
    }
    others = {**dict(job.output.items()), **dict(job.resources.items()), **wildcards}
    others |= {"threads": job.threads, "log": log}
    taken = signature(function).parameters
    params = dict(job.params.items())
    params |= params.pop("parameters", {})
    del params["make"], params["code"]
    return {name: value for name, value in others.items() if name in taken} | inputs | params


def write(made, files: Mapping[str, str], kinds: Sequence[tables.Kind | tables.Document]) -> None:
    """Write the table of each kind."""
    for kind in kinds:
        content = made[kind.name] if isinstance(made, dict) else made
        path = files[kind.name if kind.name in files else "table"]
        if isinstance(kind, tables.Document):
            tables.write_json(path, content)
        else:
            tables.write(path, content, kind)


def make(job, log: TextIO) -> None:
    """Do a job of Snakemake."""
    function = named(job.params.make)
    made, files = function(**arguments(job, function, log)), dict(job.output.items())
    kinds = getattr(function, "makes", ())
    if not files:
        print(*made, sep="\n")
    elif isgenerator(made):
        for one, *paths in zip(made, *files.values(), strict=True):
            write(one, dict(zip(files, paths, strict=True)), kinds)
    else:
        write(made, files, kinds)


if __name__ == "__main__":
    with script_job(snakemake) as log:
        make(snakemake, log)
