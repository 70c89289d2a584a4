"""The confidences of single models in some forget strings."""

import numpy as np
import pandas as pd
import pytest

from helpers.unlearning_world import FORGET, STRINGS, world
from palimpsest import tables
from palimpsest.sections import KINDS
from palimpsest.unlearning.evaluate.confidence_samples import chosen_strings, confidence_samples
from palimpsest.unlearning.evaluate.scores import Evaluation, Rules

IDS = STRINGS["string_id"][FORGET].tolist()
RULES = Rules("geometric_mean", "grid", 1e-5, 0.5, 0.2)


def ranked(n):
    return pd.DataFrame({"string_id": IDS[:n], "epsilon_sum": np.arange(n)[::-1] / 2})


def test_confidences_are_those_that_attacks_use(tmp_path):
    made = world(tmp_path, names=("reuse-n-n",), n=8, repetitions=2)
    problem = made.problem()
    methods = list(made.methods(problem))
    found = confidence_samples(problem, methods, RULES, ranked(9))
    tables.write(tmp_path / "confidences.parquet", found, KINDS["unlearning_confidences"])
    assert set(found["string_id"]) == {IDS[0], IDS[4], IDS[8]}
    assert set(found["method"]) == {"none", "good", "shifted", "retrain", "retrained"}
    assert (found.groupby(["method", "string_id"]).size() == 8).all()
    for method in methods:
        unlearned, retrained = Evaluation(problem, method, RULES).samples(problem.stock)
        of_method = found[found["string_id"] == IDS[4]].set_index("method")["confidence"]
        np.testing.assert_allclose(of_method[method.name], unlearned[:, 4])
        np.testing.assert_allclose(of_method["retrained"], retrained[:, 4])


@pytest.mark.parametrize(("n", "places"), [(1, [0]), (2, [0, 1]), (4, [0, 1, 3]), (9, [0, 4, 8])])
def test_the_hardest_the_median_and_the_easiest_are_chosen(n, places):
    shuffled = ranked(n).sample(frac=1, random_state=1)
    assert chosen_strings(shuffled) == [IDS[place] for place in places]
