"""How often conformal intervals have the exact values, in simulated worlds with a known truth."""

import warnings

import numpy as np
import pandas as pd
import pytest

from helpers.conformal_world import world
from palimpsest.atlas import kinds
from palimpsest.atlas.conformal import HELD_OUT, conformal_table
from palimpsest.conformal import LEVEL


def test_a_run_is_tested_by_calibrations_that_lack_something_of_it():
    chance = np.random.default_rng(6)
    truth, contenders = [], []
    for model in ("a", "b", "c"):
        for language in ("L1", "L2"):
            for seed in (0, 1):
                measured, exact = world(chance, 40)
                run = {"model": model, "language": language, "size": 64, "seed": seed}
                ids = [f"{seed}-{number}" for number in range(40)]
                truth.append(pd.DataFrame({**run, "string_id": ids, "self_influence": exact}))
                contenders += [
                    pd.DataFrame({**run, "string_id": ids, "measure": name, "amount": values})
                    for name, values in zip(("one", "two"), measured.T, strict=True)
                ]
    families = {"a": "A", "b": "A", "c": "C"}
    found = conformal_table(pd.concat(truth), pd.concat(contenders), "L2", families)
    assert list(found.columns) == kinds.CONFORMAL.names
    assert set(found["language"]) == {"L2"}
    assert set(found["held_out"]) == set(HELD_OUT) - {"size"}  # all runs have one size
    assert len(found) == 6 * 4
    assert (found.loc[found["held_out"] == "string", "n_strings"] < 40).all()
    assert found["coverage"].mean() == pytest.approx(LEVEL, abs=0.05)
    assert (found["single"] == "one").all()
    assert (found["width"] < found["single_width"]).mean() > 0.7
    # A measure that applies to no string changes nothing, and no mean of nothing is taken.
    nowhere = contenders[0].assign(measure="three", amount=np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        same = conformal_table(pd.concat(truth), pd.concat([*contenders, nowhere]), "L2", families)
    pd.testing.assert_frame_equal(same, found)


def test_of_few_strings_nothing_is_said():
    run = {"model": "a", "language": "L1", "size": 4, "seed": 0}
    ids = list("wxyz")
    truth = pd.DataFrame({**run, "string_id": ids, "self_influence": 0.1})
    contenders = pd.DataFrame({**run, "string_id": ids, "measure": "one", "amount": 1.0})
    found = conformal_table(truth, contenders, "L1", {"a": "A"})
    assert found.empty
    assert list(found.columns) == kinds.CONFORMAL.names
