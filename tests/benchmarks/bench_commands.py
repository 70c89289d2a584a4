"""How long the commands of the inner loop take: `make tour`, single sections, and `make check`.

    python tests/benchmarks/bench_commands.py

Each workflow is made in a fresh copy of the project, where nothing is compiled. The peer is the
shortest command of its kind: a workflow of one empty rule, and pytest finding its tests without
running any.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from rows import Row, at_most, main  # noqa: E402

from helpers.projects import TOUR, copy_of_the_project, run_in  # noqa: E402

TOUR_SECONDS, SECTION_SECONDS, CHECK_SECONDS = 90, 60, 120
SNAKEMAKE = [sys.executable, "-m", "snakemake", "--quiet", "all", "--cores", "2"]
FIND = [sys.executable, "-m", "pytest", "--collect-only", "--quiet"]


def seconds(command: list[str], folder: Path) -> float:
    """Wall time of a command that must succeed."""
    begin = time.perf_counter()
    done = run_in(folder, command)
    taken = time.perf_counter() - begin
    assert done.returncode == 0, done.stdout
    return taken


def workflow(
    folder: Path, name: str, words: list[str], limit: float, peer: float, compiled: bool
) -> Row:
    """A workflow from nothing, compared with an empty one."""
    copy_of_the_project(folder, compiled)
    ours = seconds([*SNAKEMAKE, *words], folder)
    return at_most(f"{name}, from nothing; peer: no job", ours, peer, "s", limit)


def empty_workflow(folder: Path) -> float:
    """Seconds of a workflow of one rule without a job."""
    folder.mkdir()
    (folder / "Snakefile").write_text("rule all:\n    input: []\n")
    return seconds(SNAKEMAKE, folder)


def check(command: list[str], tests: list[str]) -> Row:
    """The quick tests and the style checks, compared with only finding the tests."""
    name = "make check; peer: find the tests"
    ours, peer = seconds(command, ROOT), seconds([*FIND, *tests], ROOT)
    return at_most(name, ours, peer, "s", CHECK_SECONDS)


def rows(tiny: bool) -> Iterator[Row]:
    """All rows of this benchmark."""
    small = ["results/languages/L2/summary.json"] if tiny else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peer = empty_workflow(folder / "empty")
        words = [*(small or ["all"]), "--configfile", TOUR]
        yield workflow(folder / "tour", "make tour", words, TOUR_SECONDS, peer, tiny)
        for section in ("density", "information"):
            words = ["--", *(small or [section])]
            title = f"snakemake {section}"
            yield workflow(folder / section, title, words, SECTION_SECONDS, peer, tiny)
    if tiny:
        yield check(["make", "help"], ["tests/test_requests.py"])
    else:
        yield check(["make", "check"], [])


if __name__ == "__main__":
    sys.exit(main(rows))
