"""The tables of the share of the gap closed."""

import numpy as np
import pytest

from helpers.unlearning_world import FORGET, world
from palimpsest import tables
from palimpsest.sections import KINDS
from palimpsest.unlearning.evaluate.gap_tables import gap_tables
from palimpsest.unlearning.evaluate.gaps import clear_gaps

ENDS = ["lower", "upper"]


def found_in(made):
    problem = made.problem()
    return gap_tables(problem, made.methods(problem))


@pytest.mark.parametrize("control", ["placebo", "retained"])
def test_controls_have_the_gaps_of_their_forget_strings(tmp_path, control):
    """Their rise is divided by them; which are clear does not depend on the controls' losses."""
    made = world(tmp_path, ["reuse-n-n"], n=4, repetitions=1)
    problem = made.problem()
    found = found_in(made)["unlearning_gaps"].set_index(["method", "string_role"])
    stock = problem.stock
    sides = problem.originals.of(stock.origins), problem.retrained.of(stock.retrained)
    before, retrained = (side.loss[:, FORGET] for side in sides)
    clear = clear_gaps(before, retrained)
    for method in ("good", "shifted", "retrain"):
        forget, other = (found.loc[(method, kind)] for kind in ("forget", control))
        assert (forget["share"].notna() == clear).all()
        assert (other["share"].notna() == clear).all()
        rise = (other["after"] - other["before"]).to_numpy()
        gap = (forget["retrained"] - forget["before"]).to_numpy()
        np.testing.assert_allclose(other["share"][clear], (rise / gap)[clear])
    np.testing.assert_allclose(found.loc[("none", control), "share"][clear], 0, atol=1e-12)


@pytest.mark.parametrize("names", [["reuse-n-1"], ["reuse-n-1", "reuse-n-n"]])
def test_models_of_one_original_model_give_no_interval(tmp_path, names):
    found = found_in(world(tmp_path, names, n=5, repetitions=2))
    for kind, table in found.items():
        tables.write(tmp_path / f"{kind}.parquet", table, KINDS[kind])
        known = table["share"].notna()
        assert known.any()
        assert (table.loc[known, ENDS].notna() == (len(names) == 2)).all(axis=None)
