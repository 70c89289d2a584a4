"""Methods on another problem: the points of light tuning, and what is chosen and judged."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.experiments import DEFAULT, experiment, message
from palimpsest.unlearning.methods import read_methods
from palimpsest.unlearning.tuning import transfer as transfers
from palimpsest.unlearning.tuning.choice import KEPT, SearchProblem
from palimpsest.unlearning.tuning.jobs import light_points, transfer_of

ROOT = Path(__file__).parents[2]
TABLE = read_methods(ROOT / "config/unlearning.yaml")
OTHER = {"languages": ["L1"], "tuning_seeds": [100], "seeds": [200, 201], "n": 4}


def asked(**values):
    return experiment(DEFAULT, command_line={"unlearning": {"transfer": {**OTHER, **values}}})


def rates(method):
    return [
        (placed.role, placed.phase.rate)
        for placed in method.placed
        if hasattr(placed.phase, "rate")
    ]


def test_light_tuning_changes_the_rates_of_each_role_together():
    points = light_points(TABLE["scrub"])
    assert len(points) == 9
    assert points["direct"][1] is TABLE["scrub"]
    found = set()
    for factors, method in points.values():
        expected = [(role, rate * factors[role]) for role, rate in rates(TABLE["scrub"])]
        assert [role for role, _ in rates(method)] == [role for role, _ in expected]
        np.testing.assert_allclose([r for _, r in rates(method)], [r for _, r in expected])
        found.add((factors["erase"], factors["repair"]))
    assert found == {(one, other) for one in (1 / 3, 1, 3) for other in (1 / 3, 1, 3)}


@pytest.mark.parametrize("name", TABLE)
def test_every_method_has_three_or_nine_points_and_nothing_but_rates_changes(name):
    points = light_points(TABLE[name])
    roles = {role for role, _ in rates(TABLE[name])}
    assert len(points) == 3 ** len(roles)
    for _, method in points.values():
        assert len(method.placed) == len(TABLE[name].placed)
        for ours, shipped in zip(method.placed, TABLE[name].placed, strict=True):
            changed = {
                key: value
                for key, value in vars(shipped.phase).items()
                if vars(ours.phase)[key] != value
            }
            assert changed.keys() <= {"rate"}


def test_every_problem_tries_all_points_of_all_methods():
    jobs = transfer_of(asked().settings)
    assert jobs is not None
    assert [one.seed for one in jobs.unlearning_runs] == [100, 200, 201]
    assert set(jobs.methods) == set(jobs.jobs.block["methods"])
    assert jobs.phases()["scrub"]["direct"] == TABLE["scrub"].written
    (path,) = jobs.tables()
    assert path in asked().outputs["unlearning"]
    assert transfer_of(experiment(DEFAULT).settings) is None


def test_a_language_of_the_search_is_no_other_problem():
    given = {"languages": ["L3"], "transfer": {**OTHER, "languages": ["L3-short"]}}
    said = "L3-short is in unlearning/search/languages, too"
    assert said in message(lambda: experiment(DEFAULT, command_line={"unlearning": given}))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"languages": ["L3-short"]}, "L3-short is in unlearning/languages, too"),
        ({"seeds": [5, 100]}, "seed 100 is in tuning_seeds, too"),
    ],
)
def test_a_problem_that_is_no_other_one_is_refused(wrong, said):
    assert said in message(lambda: asked(**wrong))


# The table


def rows_of(point, losses, seed, retain=1.0, method="m"):
    """Four models with these losses of two forget strings."""
    return pd.DataFrame(
        {
            "model": "t", "language": "L", "size": 8, "seed": seed, "method": method,
            "point": point, "origin": np.repeat(range(4), 2), "string_id": ["a", "b"] * 4,
            "loss": losses * 4, "retain_loss": retain, "unseen_loss": 1.0, "steps": 1,
        }
    )  # fmt: skip


SETTINGS = {"m": {"direct": {"repair": 1.0}, "repair-3": {"repair": 3.0}}}
IDS = np.array(["a", "b"], dtype=object)
SPREAD = 0.1 * np.arange(8).reshape(4, 2)


@pytest.fixture
def of_losses(monkeypatch):
    """The table of searched rows, for retrained models with losses of about 3 on both strings."""

    def made(rows):
        keys = {("t", "L", 8, seed) for seed in rows["seed"]}
        kept = dict.fromkeys(KEPT, np.exp(-1.0))
        problem = SearchProblem(IDS, 3 + SPREAD, np.full(2, 5), kept, 10)
        monkeypatch.setattr(transfers, "problems_of", lambda *given: dict.fromkeys(keys, problem))
        return transfers.transfer(
            rows, [], [], settings=SETTINGS, tuning_seeds=[100], confidence="geometric_mean",
            thresholds="exact", delta=1e-5, bin_width=0.5, cutoff=0.2, epochs=1, batch_size=8,
        )  # fmt: skip

    return made


def searched(better_in_tuning, better_in_judging):
    parts = []
    for seed, better in ((100, better_in_tuning), (200, better_in_judging)):
        parts += [rows_of("none", [1.0, 1.0], seed)]
        for point in ("direct", "repair-3"):
            parts.append(rows_of(point, [2.8, 2.8] if point == better else [1.5, 1.5], seed))
    return pd.concat(parts)


@pytest.mark.parametrize("chosen", ["direct", "repair-3"])
def test_the_tuning_seeds_choose_and_the_others_judge(of_losses, chosen):
    """The other point is better where it is judged; it is not chosen for that."""
    other = {"direct": "repair-3", "repair-3": "direct"}[chosen]
    table = of_losses(searched(chosen, other)).set_index("tuning")
    assert set(table["seed"]) == {200}
    assert table.loc["light", "point"] == chosen
    assert json.loads(table.loc["light", "settings"]) == SETTINGS["m"][chosen]
    assert table.loc["direct", "point"] == "direct"
    assert table.loc["light", "distance_left"] == pytest.approx((1.8 + 1.9) / (2.3 + 2.4))


def test_a_score_loses_what_is_lost_on_other_strings(of_losses):
    rows = searched("direct", "direct")
    chosen = (rows["point"] == "direct") & (rows["seed"] == 200)
    rows.loc[chosen, "loss"] = (3 + SPREAD).ravel()  # exactly as retrained
    rows.loc[chosen, "retain_loss"] = 1 + np.log(2)
    row = of_losses(rows).set_index("tuning").loc["direct"]
    assert row["forgetting_quality"] == 1.0
    assert row["final_score"] == pytest.approx(0.5)
    assert row["n_models"] == 4


def test_losses_that_are_not_finite_have_no_quality(of_losses):
    rows = searched("repair-3", "repair-3")
    ruined = (rows["point"] == "direct") & (rows["seed"] == 200)
    rows.loc[ruined, ["loss", "retain_loss", "unseen_loss"]] = np.inf
    row = of_losses(rows).set_index("tuning").loc["direct"]
    assert (row["forgetting_quality"], row["final_score"]) == (0.0, 0.0)
