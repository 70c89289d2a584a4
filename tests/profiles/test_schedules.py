"""Streams in two recipes: does memorisation follow the learning rate, or the position?"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers import profile_worlds as worlds
from helpers.experiments import DEFAULT, ROOT, experiment, message
from palimpsest import tables
from palimpsest.claims import judge_all
from palimpsest.profiles import kinds
from palimpsest.profiles.claims import CLAIMS
from palimpsest.profiles.profile import tables_of_seeds
from palimpsest.profiles.schedules import schedules

CLAIM = "Memorisation just after training follows the learning rate."
SEEDS = (0, 1, 2)


@pytest.fixture(scope="module")
def of_recipes():
    """The table `profile` of a model in two recipes; in the second, the rate stays as it is."""
    model = "llama-3.2-1b-twin"
    falling = worlds.streams(model, SEEDS)
    constant = [
        replace(stream, rates=dict.fromkeys(stream.rates, 2e-3))
        for stream in worlds.streams(model, SEEDS, strength=2.0)
    ]
    return [tables_of_seeds(made, worlds.PANEL)["profile"] for made in (falling, constant)]


def test_two_recipes_stand_side_by_side(of_recipes, tmp_path):
    """The estimates just after the treatment, and two times before it, of each."""
    made = schedules(*of_recipes)
    tables.write(tmp_path / "table.parquet", made, kinds.PROFILE_SCHEDULES)
    assert len(made) == len(SEEDS) * worlds.COHORTS
    one, other = (
        table[
            (table["estimator"] == "difference_in_differences")
            & (table["string_role"] == "trained")
            & (table["outcome"] == "log_likelihood")
        ].set_index(["seed", "cohort", "time"])["estimate"]
        for table in of_recipes
    )
    row = made.set_index(["seed", "cohort"]).loc[(1, 3)]
    assert (row["estimate"], row["other_estimate"]) == (one.loc[(1, 3, 3)], other.loc[(1, 3, 3)])
    assert (row["before"], row["other_before"]) == (one.loc[(1, 3, 1)], other.loc[(1, 3, 1)])
    assert (row["learning_rate"], row["other_rate"]) == (worlds.RATES[3], 2e-3)
    assert made.set_index("cohort").loc[1, "before"].isna().all()


def world(effect, seeds=range(8), cohorts=8):
    """A table `profile_schedules`, in which the effect depends on the rate and the position."""
    rows = []
    for seed in seeds:
        chance = np.random.default_rng(seed)
        for cohort in range(1, cohorts + 1):
            falling, constant = 1e-3 * (cohorts + 1 - cohort) / cohorts, 0.5e-3
            noise = 0.05 * chance.normal(size=4)
            rows.append(
                {
                    "cohort": cohort,
                    "seed": seed,
                    "learning_rate": falling,
                    "other_rate": constant,
                    "estimate": effect(falling, cohort) + noise[0],
                    "other_estimate": effect(constant, cohort) + noise[1],
                    "before": noise[2],
                    "other_before": noise[3],
                }
            )
    table = pd.DataFrame(rows).assign(model="twin", language="L1", size=256)
    return {"profile_schedules": table[kinds.PROFILE_SCHEDULES.names]}


EFFECTS = {
    # Even if late strings are memorised much more in both recipes
    "the learning rate": (lambda rate, cohort: 1000 * rate + cohort, "agrees"),
    # The rate falls with the position: in one recipe, this looks like an effect of the rate.
    "the position alone": (lambda rate, cohort: 1.0 - 0.1 * cohort, "cannot tell"),
    "the learning rate, the other way round": (lambda rate, cohort: 1 - 1000 * rate, "disagrees"),
}


@pytest.mark.parametrize("what", EFFECTS)
def test_the_verdict_is_about_the_rate_at_equal_position(what):
    effect, expected = EFFECTS[what]
    row = judge_all(CLAIMS, world(effect)).set_index("claim").loc[CLAIM]
    assert row["verdict"] == expected
    assert "before the treatment" in row["note"]


def test_without_a_second_recipe_there_is_no_row():
    assert CLAIM not in set(judge_all(CLAIMS, {})["claim"])


def over(**contrast):
    recipes = {"again": contrast}
    return {"recipes": recipes, "profiles": {"contrast_recipe": "again"}}


def test_streams_are_trained_in_both_recipes(monkeypatch):
    monkeypatch.chdir(ROOT)
    made = experiment(DEFAULT, command_line=over(schedule="constant"))
    streams = [runs for runs in made.requests if runs.variant == "stream"]
    models = made.settings.block("profiles")["models"]
    assert [(runs.recipe, runs.model) for runs in streams] == [
        (recipe, model) for recipe in ("default", "again") for model in models
    ]
    files = [path for path in made.outputs["profiles"] if path.endswith("schedules.parquet")]
    assert len(files) == len(models)
    # The claims and figures of one recipe do not mix with those of the other.
    assert "/again/" not in "".join(made.tables(kinds.PROFILE))


def test_a_recipe_with_the_same_rates_is_refused(monkeypatch):
    monkeypatch.chdir(ROOT)
    said = message(lambda: experiment(DEFAULT, command_line=over(epochs=3)))
    assert "profiles/contrast_recipe: again has the learning rates of default" in said


def test_an_unknown_schedule_is_refused(monkeypatch):
    monkeypatch.chdir(ROOT)
    said = message(lambda: experiment(DEFAULT, command_line=over(schedule="cosin")))
    assert "recipes/again/schedule" in said
    assert "cosine" in said
