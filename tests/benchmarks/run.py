"""Run every benchmark and print one table; exit status 1 if a target was missed.

    python tests/benchmarks/run.py [part of a file's name ...]

A benchmark is a file bench_*.py beside this one, with a function `rows`.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from rows import Row, report  # noqa: E402


def chosen(words: list[str]) -> Iterator[Row]:
    """The rows of every benchmark whose name has one of the words; without words, of all."""
    for path in sorted(FOLDER.glob("bench_*.py")):
        if not words or any(word in path.stem for word in words):
            yield from importlib.import_module(path.stem).rows()


if __name__ == "__main__":
    sys.exit(report(chosen(sys.argv[1:])))
