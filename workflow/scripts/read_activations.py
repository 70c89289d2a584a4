"""Read the activations of trained models, and the answers that they give.

A job waits for free GPUs, and for another job on the same models to end.
"""

from palimpsest import launch
from palimpsest.jobs import each_run
from palimpsest.models.sites import PLACES

TABLES = {
    "activations": "tables of this kind to write",
    "answers": "tables of this kind to write",
    "norms": "tables of this kind to write",
}
FLAGS = {
    "layers": {"nargs": "+", "help": "numbers of blocks, or all"},
    "places": {"nargs": "+", "choices": PLACES, "help": "places in a block"},
    "positions": {"nargs": "+", "choices": ["last", "mean"], "help": "activations of a string"},
}


def make(files, assignment, attempts, layers, places, positions) -> None:
    """Make the tables of each of some runs."""
    with launch.importing():
        from palimpsest.information.activations import Reading, Where, read

    where = Where.of(layers, places, positions)
    read([Reading(*each) for each in files], where, assignment, attempts)


if __name__ == "__main__":
    each_run.main(__doc__, TABLES, "activations", make, FLAGS)
