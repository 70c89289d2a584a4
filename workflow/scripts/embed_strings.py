"""Embed the strings of datasets by the models that are trained on them.

A job waits for free GPUs, and for another job on the same models to end.
"""

from palimpsest import launch
from palimpsest.jobs import each_run

TABLES = {"embeddings": "tables of this kind to write"}


def make(files, assignment, attempts) -> None:
    """Make the table of each of some runs."""
    with launch.importing():
        from palimpsest.density.embedding import Embedded, embed

    embed([Embedded(*each) for each in files], assignment, attempts)


if __name__ == "__main__":
    each_run.main(__doc__, TABLES, "embeddings", make)
