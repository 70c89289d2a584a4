"""Entropy and mutual information of models' neurons, after every epoch of their fine-tuning.

A job waits for free GPUs, and for another job on the same models to end.
"""

from palimpsest import launch
from palimpsest.jobs import each_run
from palimpsest.models.sites import PLACES

TABLES = {"layers": "tables of this kind to write"}
FLAGS = {
    "blocks": {"nargs": "+", "help": "numbers of blocks, or all"},
    "places": {"nargs": "+", "choices": PLACES, "help": "places in a block"},
    "positions": {"nargs": "+", "choices": ["last", "mean"], "help": "activations of a string"},
    "bins": {"type": int, "help": "bins of the histogram of a neuron"},
    "neighbours": {"type": int, "help": "number of the nearest neighbour"},
    "pairs": {"help": "most pairs of a site, or all"},
}


def make(files, assignment, attempts, blocks, places, positions, bins, neighbours, pairs) -> None:
    """Make the table of each of some runs."""
    with launch.importing():
        from palimpsest.information.activations import Where
        from palimpsest.information.layers import FineTuned, How, measure

    where = Where.of(blocks, places, positions)
    how = How(bins, neighbours, pairs if pairs == "all" else int(pairs))
    measure([FineTuned(*each) for each in files], where, how, assignment, attempts)


if __name__ == "__main__":
    each_run.main(__doc__, TABLES, "layers", make, FLAGS)
