"""A thousand mutations of what a user gives: each is read as before, or refused in one true line.

    python tests/benchmarks/bench_mutations.py

Configurations, panels, text corpora, grammars and files of documents, drawn by hypothesis from a
seed. They are read by the functions that the Snakefile and the jobs call. A mutation that keeps the
content must give the same result, or a refusal; a damage must be refused. A refusal is one line
that names the thing, says what is allowed or what to do, and writes nothing. Some configurations
are also given to the real command. Every mutation that is neither is printed to the standard error.
"""

import os
import random
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

from rows import Row, at_most, main, shown  # noqa: E402

from helpers.forks import snakemake_in_forks  # noqa: E402
from helpers.mutations.configurations import FILE, draw  # noqa: E402
from helpers.mutations.families import (  # noqa: E402
    CONFIGURATIONS,
    DENSITY_TEXTS,
    GRAMMARS,
    PANELS,
    TEXT_CORPORA,
)
from helpers.mutations.judge import REFUSED, SAME, Tally, fault_of_line, judged  # noqa: E402
from helpers.projects import copy_of_the_project  # noqa: E402

SEED = 20251125
SIZES = {CONFIGURATIONS: 400, PANELS: 300, TEXT_CORPORA: 75, GRAMMARS: 75, DENSITY_TEXTS: 150}
COMMANDS = 36
TINY = 20


def of_the_families(sizes: dict) -> list[tuple[str, Tally]]:
    """The verdicts on the mutations of each family."""
    return [(family.name, judged(family, n, SEED)) for family, n in sizes.items()]


def of_the_command(n: int) -> list[str]:
    """What is wrong with the real command's answers to mutated configurations.

    A dry run succeeds, or ends with one line and status 1; it makes no file.
    """
    chance = random.Random(SEED)
    mutations = [draw(chance) for _ in range(n)]
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        copy_of_the_project(project)
        for number, mutation in enumerate(mutations):
            (project / str(number)).mkdir()
            (project / f"{number}/{FILE}").write_bytes(mutation.files[FILE])
        before = _files(project)
        given = ["--cores", "1", "--dry-run", "--quiet", "all", "--configfile"]
        runs = [(project, [*given, f"{number}/{FILE}"]) for number in range(n)]
        outcomes = snakemake_in_forks(runs)
        made = _files(project) - before
    for mutation, outcome in zip(mutations, outcomes, strict=True):
        lines = {line for line in outcome.stdout.splitlines() if line.startswith("error: ")}
        if "Traceback" in outcome.stdout or outcome.returncode not in (0, 1):
            faults.append(f"{mutation.what}: {outcome.stdout[-300:]}")
        elif outcome.returncode == 1 and len(lines) != 1:
            faults.append(f"{mutation.what}: {len(lines)} lines")
        elif outcome.returncode == 1 and (fault := fault_of_line(*lines, mutation.named)):
            faults.append(f"{mutation.what}: {fault}")
        elif outcome.returncode == 0 and mutation.expected is None:
            faults.append(f"{mutation.what}: accepted")
    return [*faults, *(f"a dry run made {path}" for path in sorted(made))]


def _files(folder: Path) -> set[str]:
    """The files of a project, but for compiled code and what Snakemake keeps for itself."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    return {path for path in found if not re.search(r"^\.snakemake|__pycache__", path)}


def rows(tiny: bool) -> list[Row]:
    """All rows of this benchmark."""
    os.chdir(ROOT)
    sizes = dict.fromkeys(SIZES, TINY) if tiny else SIZES
    tallies = of_the_families(sizes)
    made = []
    for name, tally in tallies:
        n, same, refused = len(tally.verdicts), tally.count(SAME), tally.count(REFUSED)
        what = f"{n} {name}: {same} same, {refused} one line; neither"
        made.append(shown(what, len(tally.faults), n, "", 1))
        for found in tally.faults:
            print(f"{name}: {found.mutation.what}: {found.why}", file=sys.stderr)
    faults = of_the_command(2 if tiny else COMMANDS)
    print("".join(f"command: {fault}\n" for fault in faults), end="", file=sys.stderr)
    n = sum(len(tally.verdicts) for _, tally in tallies)
    neither = sum(len(tally.faults) for _, tally in tallies)
    made.append(at_most(f"{n:,} mutations: not the same, nor one true line", neither, n, "", 0, 1))
    n = 2 if tiny else COMMANDS
    made.append(at_most(f"{n} commands: not accepted, nor one true line", len(faults), n, "", 0, 1))
    return made


if __name__ == "__main__":
    sys.exit(main(rows))
