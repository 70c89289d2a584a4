"""Hard strings, agreement between methods, and the order of a grid's points."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from helpers.unlearning_world import FORGET, KEYS, STRINGS, world
from palimpsest import tables
from palimpsest.sections import KINDS
from palimpsest.unlearning.analyses import agreement, hardness, mean_epsilons, tuning
from palimpsest.unlearning.scores import Rules, retraining

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
    chance = np.random.default_rng(0)
    return {
        name: chance.exponential(size=(2, len(IDS))) for name in ("none", "z", "a", "m", "retrain")
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
    assert mean_epsilons(table, "reuse-n-n").shape == (len(IDS), 0)
    alone, pairs = hardness(made.problem(), table), agreement(made.problem(), table)
    assert (alone["epsilon_sum"] == 0).all()
    assert pairs.empty
    tables.write(tmp_path / "hardness.parquet", alone, KINDS["unlearning_hardness"])
    tables.write(tmp_path / "agreement.parquet", pairs, KINDS["unlearning_agreement"])


@pytest.mark.parametrize(
    ("cutoff", "order", "within"),
    [
        (0.2, ["shifted", "good", "other"], [True, False, True]),
        (100, ["good", "shifted", "other"], [True, True, True]),
    ],
)
def test_tuning_puts_the_best_point_within_the_cutoff_first(tmp_path, cutoff, order, within):
    """The better point of two takes a thousand steps, while retraining takes thirty."""
    made = world(tmp_path, methods=("shifted", "good", "other"), repetitions=2)
    slow = tables.read(made.models[1], KINDS["unlearned_models"]).assign(steps=1000)
    tables.write(made.models[1], slow, KINDS["unlearned_models"])
    points = {
        "shifted": {"method": "one", "settings": {"learning_rate": 0.1}},
        "good": {"method": "one", "settings": {"learning_rate": 0.2}},
        "other": {"method": "two", "settings": {}},
    }
    problem = made.problem()
    rules = Rules("geometric_mean", "exact", 1e-5, 0.5, cutoff)
    cost = retraining(problem, made.manifests, 10, 8)
    found = tuning(problem, made.methods(problem), points, rules, cost)
    assert found["point"].tolist() == order
    assert found["method"].tolist() == ["one", "one", "two"]
    assert found["within_cutoff"].tolist() == within
    score = found.set_index("point")["final_score"]
    assert score["good"] > score["shifted"] > score["other"] == 0
    assert json.loads(found.set_index("point")["settings"]["good"]) == {"learning_rate": 0.2}
    tables.write(tmp_path / "tuning.parquet", found, KINDS["unlearning_tuning"])
