"""Cheap measures that the frontier's tests take as they are."""

import os
import subprocess
import sys

import numpy as np

from helpers.atlas_worlds import planted_run
from helpers.commands import ROOT, SCRIPTS
from palimpsest.atlas.contenders import N_GRAM, cell_of, unique_n_grams
from palimpsest.memorisation.all_measures import Thresholds

RULES = Thresholds("after_last_miss", 0.2, 0.95)
PROGRAM = """
from helpers.atlas_worlds import planted_run
from palimpsest.atlas.contenders import cell_of, unique_n_grams
from palimpsest.memorisation.all_measures import Thresholds
run = planted_run()
rules = Thresholds("after_last_miss", 0.2, 0.95)
cell = cell_of(run.trace, run.strings, run.tokens, [], rules)
print(unique_n_grams(cell).tobytes().hex())
"""


def test_rare_n_grams_are_those_of_few_training_strings():
    run = planted_run()
    cell = cell_of(run.trace, run.strings, run.tokens, [], RULES)
    of_strings = []
    for text in cell.strings["text"]:
        symbols = text.split()
        places = range(len(symbols) - N_GRAM + 1)
        of_strings.append({" ".join(symbols[n : n + N_GRAM]) for n in places})
    expected = [
        np.mean([1 / sum(gram in other for other in of_strings) for gram in grams])
        for grams in of_strings
    ]
    np.testing.assert_allclose(unique_n_grams(cell), expected)


def test_measures_do_not_depend_on_the_order_of_sets():
    """Equal strings would otherwise differ in the last bit, and be no ties any more."""
    path = os.pathsep.join([str(SCRIPTS), str(ROOT / "tests")])
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
