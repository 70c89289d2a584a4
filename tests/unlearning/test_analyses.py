"""Hard strings, and agreement between methods."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from helpers.unlearning_world import FORGET, KEYS, STRINGS, world
from palimpsest import tables
from palimpsest.sections import KINDS
from palimpsest.unlearning.attacks.quality import largest_epsilon
from palimpsest.unlearning.evaluate.analyses import agreement, hardness, mean_epsilons
from palimpsest.unlearning.run.setups import Setup

SETUP = Setup("reuse-n-n", n=16, repetitions=2, pool=16)
IDS = STRINGS["string_id"][FORGET].tolist()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return world(tmp_path_factory.mktemp("world"), repetitions=2)


def epsilons(values, strings=IDS):
    """A table of epsilons from dict of method -> float[repetitions, strings], of two set-ups."""
    rows = [
        {
            **KEYS,
            "method": method,
            "setup": setup,
            "repetition": repetition,
            "string_id": string,
            "epsilon": epsilon + (setup == "bootstrap"),
        }
        for method, repetitions in values.items()
        for setup in ("reuse-n-n", "bootstrap")
        for repetition, of_strings in enumerate(repetitions)
        for string, epsilon in zip(strings, of_strings, strict=True)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def values():
    """Below the largest epsilon of 16 models, so that none is clipped."""
    chance = np.random.default_rng(0)
    return {
        name: chance.uniform(0, 2.9, size=(2, len(IDS)))
        for name in ("none", "z", "a", "m", "retrain")
    }


def test_hardness_sums_the_methods_of_the_first_setup_without_the_ends(made, values, tmp_path):
    problem = made.problem()
    found = hardness(problem, epsilons(values))
    expected = sum(values[name].mean(axis=0) for name in ("z", "a", "m"))
    by_string = found.set_index("string_id").loc[IDS]
    np.testing.assert_allclose(by_string["epsilon_sum"], expected, atol=1e-8)
    assert (np.diff(found["epsilon_sum"]) <= 0).all()
    assert (found["n_methods"] == 3).all()
    forgotten = STRINGS[FORGET].set_index("string_id")
    for column in ("count", "log_prob"):
        np.testing.assert_array_equal(by_string[column], forgotten[column])
    retrained, original = problem.retrained.loss[:16].mean(0), problem.originals.loss.mean(0)
    np.testing.assert_allclose(by_string["loss_gap"], (retrained - original)[FORGET])
    assert (by_string["loss_gap"] > 0.5).all()
    tables.write(tmp_path / "hardness.parquet", found, KINDS["unlearning_hardness"])


def test_agreement_is_scipys_correlation_of_each_pair_once(made, values, tmp_path):
    found = agreement(made.problem(), epsilons(values))
    pairs = list(zip(found["method"], found["other"], strict=True))
    assert pairs == [("z", "a"), ("z", "m"), ("a", "m")]
    for (one, other), row in zip(pairs, found.itertuples(), strict=True):
        x, y = values[one].mean(axis=0), values[other].mean(axis=0)
        assert row.pearson == pytest.approx(stats.pearsonr(x, y).statistic)
        assert row.spearman == pytest.approx(stats.spearmanr(x, y).statistic)
        assert row.n_strings == len(IDS)
    tables.write(tmp_path / "agreement.parquet", found, KINDS["unlearning_agreement"])


def test_a_string_on_the_cap_of_epsilon_decides_nothing_alone(made):
    """Two methods put one string on the cap of 50, and disagree about all other strings."""
    rising = np.linspace(0.2, 2.2, len(IDS))
    values = {"a": rising.copy(), "z": rising[::-1].copy()}
    for of_strings in values.values():
        of_strings[3] = 50
    table = epsilons({name: np.stack([x, x]) for name, x in values.items()})
    assert stats.pearsonr(values["a"], values["z"]).statistic > 0.98
    assert agreement(made.problem(), table)["pearson"].item() < 0.5
    summed = hardness(made.problem(), table).set_index("string_id")["epsilon_sum"]
    assert summed[IDS[3]] == 2 * largest_epsilon(16) == 2 * np.ceil(np.log(15)) == 6


def test_no_correlation_without_spread(made, values):
    """Means of 0.1, 0.2 and 0.3 in another order differ by rounding only."""
    values["a"] = np.tile(np.array([[0.1], [0.2], [0.3]]), len(IDS))
    values["a"][:, 0] = values["a"][::-1, 0]
    found = agreement(made.problem(), epsilons(values)).set_index(["method", "other"])
    assert found.loc[[("z", "a"), ("a", "m")], ["pearson", "spearman"]].isna().all(axis=None)
    assert found.loc[("z", "m"), ["pearson", "spearman"]].notna().all()


def test_no_correlation_of_two_strings(made, values):
    few = {name: of_strings[:, :2] for name, of_strings in values.items()}
    found = agreement(made.problem(), epsilons(few, IDS[:2]))
    assert found[["pearson", "spearman"]].isna().all(axis=None)
    assert (found["n_strings"] == 2).all()


def test_no_methods_between_the_ends(made, values, tmp_path):
    table = epsilons({name: values[name] for name in ("none", "retrain")})
    assert mean_epsilons(table, SETUP).shape == (len(IDS), 0)
    alone, pairs = hardness(made.problem(), table), agreement(made.problem(), table)
    assert (alone["epsilon_sum"] == 0).all()
    assert pairs.empty
    tables.write(tmp_path / "hardness.parquet", alone, KINDS["unlearning_hardness"])
    tables.write(tmp_path / "agreement.parquet", pairs, KINDS["unlearning_agreement"])
