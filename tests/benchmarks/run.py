"""Run the benchmarks and print one table; exit status 1 if one failed or missed a target.

python tests/benchmarks/run.py [--tiny] [part of a file's name ...]

A benchmark is a file bench_*.py in the same folder. Each runs in a process of its own, which sets
the threads that it documents, and a benchmark that fails does not stop the others.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from rows import HEADER, MISSED

FOLDER = Path(__file__).resolve().parent


def benchmarks(words: list[str]) -> list[Path]:
    """The benchmarks whose names contain one of the words; without words, all."""
    found = sorted(FOLDER.glob("bench_*.py"))
    return [path for path in found if not words or any(word in path.stem for word in words)]


def ended_badly(path: Path, more: list[str]) -> str | None:
    """Run a benchmark, which prints its rows; return what was wrong, or None."""
    status = subprocess.run([sys.executable, path, "--no-header", *more]).returncode
    if status == 0:
        return None
    return f"{path.name}: " + ("missed a target" if status == MISSED else "failed")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="only see that the benchmarks run")
    parser.add_argument("words", nargs="*", help="parts of names of benchmarks")
    arguments = parser.parse_args()
    print(HEADER, flush=True)
    more = ["--tiny"] if arguments.tiny else []
    bad = [line for path in benchmarks(arguments.words) if (line := ended_badly(path, more))]
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
