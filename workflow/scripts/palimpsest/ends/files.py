"""The files that a command leaves for a person to open."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import PurePath

# What a person opens, by the end of its name. PNGs are left out: each figure has an SVG, too.
SORTS = {".svg": "figure", ".parquet": "table", ".tsv": "table", ".csv": "table"}
PAGES = (".html", ".yaml")
FEW = 3  # the most files of a sort that are named one by one


def files_to_open(files: Iterable[str], first: Sequence[str] = ()) -> str | None:
    """One line that names reports, and figures and tables or where they are; None if none.

    Of many tables without a report, one is named that is worth opening first. `first` are the paths
    of such tables, with wildcards in braces.
    """
    files = list(dict.fromkeys(files))
    if len(files) <= FEW:
        return f"to open: {'; '.join(files)}" if files else None
    pages = [file for file in files if file.endswith(PAGES)]
    parts = [*pages]
    for sort in dict.fromkeys(SORTS.values()):
        alike = [file for file in files if SORTS.get(PurePath(file).suffix) == sort]
        if len(alike) <= FEW:
            parts += alike
        else:
            parts += [] if pages else _one_of(alike, first)
            parts.append(f"{len(alike)} {sort}s in {', '.join(_folders(alike))}")
    return f"to open: {'; '.join(parts)}" if parts else None


def _one_of(files: Sequence[str], first: Sequence[str]) -> list[str]:
    """The first file that is one of some tables; [] if none is."""
    patterns = [re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))) for path in first]
    found = (file for pattern in patterns for file in files if pattern.fullmatch(file))
    return [f"{file} first" for file in islice(found, 1)]


def _folders(files: Iterable[str]) -> list[str]:
    """The folders of files, cut after two names, such as `results/figures`."""
    parents = (PurePath(file).parent for file in files)
    return list(dict.fromkeys(str(PurePath(*parent.parts[:2])) for parent in parents))


def has_rows(path: str) -> bool:
    """Whether a file that exists has something to see: a table without rows has nothing."""
    suffix = PurePath(path).suffix
    if suffix == ".parquet":
        import pyarrow as pa  # slow to import, and not needed before
        import pyarrow.parquet as pq

        try:
            return pq.read_metadata(path).num_rows > 0
        except pa.ArrowException:
            return True  # broken; what reads it says so
    if SORTS.get(suffix) == "table":
        with open(path, "rb") as file:
            return len(list(islice(file, 2))) > 1
    return True


def files_of_targets(dag) -> list[str]:
    """The files that the targets of a command stand for, from Snakemake's graph of jobs.

    A rule without outputs, such as `all`, stands for its inputs.
    """
    found: list[str] = []
    for job in dag.targetjobs:
        wanted = [file for file in job.output if file in dag.targetfiles]
        found += map(str, wanted or job.output or job.input)
    return found


class WhenNothingIsToBeDone(logging.Handler):
    """Calls a function when Snakemake has nothing to do: Snakemake then calls no hook."""

    def __init__(self, call: Callable[[], None]):
        super().__init__()
        self._call = call

    def emit(self, record: logging.LogRecord) -> None:
        from snakemake.common import NOTHING_TO_BE_DONE_MSG

        if record.msg == NOTHING_TO_BE_DONE_MSG:
            self._call()
