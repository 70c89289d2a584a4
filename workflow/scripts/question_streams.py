"""Question the trained models of streams: greedy decoding, and influence functions.

A job waits for free GPUs, and for another job on the same models to end.
"""

from palimpsest import launch
from palimpsest.jobs import each_run

TABLES = {
    "continuations": "tables of this kind to write",
    "influences": "tables of this kind to write",
}


def make(files, assignment, attempts) -> None:
    """Make both tables of each of some streams."""
    with launch.importing():
        from palimpsest.profiles.final_models import Questions, question

    question([Questions(*each) for each in files], assignment, attempts)


if __name__ == "__main__":
    each_run.main(__doc__, TABLES, "questions", make)
