"""Intervals for records that no training left out, in worlds with a known truth."""

import numpy as np
import pandas as pd
import pytest

from helpers.experiments import message
from palimpsest import records, tables
from palimpsest.records import kinds
from palimpsest.records.kinds import MEMORISED, NOT_MEMORISED, OUTSIDE, UNDECIDED
from palimpsest.records.tables import answer, bounds


def world(chance, n=160, learned=1.0, per_group=1, known=0.4):
    """Losses at two checkpoints, and the exact values; half of the groups were trained on.

    Trained records lose `learned` nats, times a factor of their own, to what they would have.
    """
    group = np.arange(n) // per_group
    n_groups = group[-1] + 1
    trained = (np.arange(n_groups) % 2 == 0)[group]
    level = chance.uniform(1, 3, n)
    effect = learned * chance.uniform(0.2, 1, n_groups)[group] * trained
    without = level + chance.normal(0, 0.05, (2, n))
    loss = np.maximum(level + chance.normal(0, 0.05, (2, n)) - [[0], [1]] * effect, 0.01)
    exact = without[-1] - loss[-1]
    # As many known groups on either side
    is_known = (chance.permutation(n_groups // 2) < known * n_groups / 2)[group // 2]
    table = pd.DataFrame(
        {
            "id": np.tile([f"r{n}" for n in range(n)], 2),
            "checkpoint": np.repeat([0, 1], n),
            "loss": loss.ravel(),
            "loss_without": np.where(is_known, without, np.nan).ravel(),
            "trained": np.tile(trained, 2),
            "group": np.tile(group.astype(str), 2),
        }
    )
    return table, pd.Series(exact, index=[f"r{n}" for n in range(n)])


def bounded(table, **options):
    return records.conformal(records.to_losses(table), **options)


@pytest.mark.parametrize("per_group", [1, 2])
def test_intervals_have_the_value_as_often_as_they_say(per_group):
    """Of trained records and of the placebo; nothing is said of records that are known."""
    chance = np.random.default_rng(per_group)
    covered = []
    for _ in range(30):
        table, exact = world(chance, n=400 * per_group, per_group=per_group)
        found = bounded(table).table
        assert set(found["id"]) == set(table.loc[table["loss_without"].isna(), "id"])
        answered = found[found["verdict"] != OUTSIDE]
        value = exact[answered["id"]].to_numpy()
        inside = (answered["lower"] <= value) & (value <= answered["upper"])
        covered.append(inside.groupby(answered["trained"]).mean())
    means = pd.concat(covered, axis=1).mean(axis=1)
    assert means.between(0.87, 0.94).all(), means


def test_verdicts_follow_what_was_learned():
    """Of records that lost much, most are memorised; where nothing was learned, few are."""
    chance = np.random.default_rng(3)
    shares = {}
    for learned in (0.0, 1.0):
        verdicts = []
        for _ in range(8):
            found = bounded(world(chance, n=320, learned=learned)[0]).table
            verdicts.append((found["verdict"] == MEMORISED).groupby(found["trained"]).mean())
        shares[learned] = pd.concat(verdicts, axis=1).mean(axis=1)
    assert shares[0.0].max() < 0.02
    assert shares[1.0][True] > 0.7
    assert shares[1.0][False] < 0.02


def test_a_verdict_says_on_which_side_of_the_limit_the_interval_is():
    found = bounded(world(np.random.default_rng(4), n=400)[0])
    table = found.table
    assert found.limit > 0
    assert set(table["verdict"]) <= {MEMORISED, NOT_MEMORISED, UNDECIDED, OUTSIDE}
    assert (table["lower"] > found.limit).equals(table["verdict"] == MEMORISED)
    assert (table["upper"] <= found.limit).equals(table["verdict"] == NOT_MEMORISED)
    assert table["lower"].isna().equals(table["verdict"] == OUTSIDE)
    assert found.to_frame() is table
    assert 0.3 < found.shift < 0.7


def test_few_records_never_trained_on_have_no_intervals():
    """The limit is 0, and only trained records are bounded."""
    table, _ = world(np.random.default_rng(5))
    found = bounded(table[table["trained"] | (table["id"].isin(["r1", "r3"]))])
    assert found.limit == 0
    assert found.table["trained"].all()


def known_are_the_hard_ones(table):
    hard = table["id"].isin(table.loc[(table["checkpoint"] == 0) & (table["loss"] > 2), "id"])
    return table.assign(loss_without=table["loss"].where(hard) + 0.5)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            lambda table: table.assign(loss_without=1.0),
            "losses: the loss without the record is known for all records that were trained on; "
            "nothing is asked",
        ),
        (
            lambda table: table.drop(columns="loss_without"),
            "losses: the loss without the record is known for 0 groups of records that were "
            "trained on; 20 or more are needed, taken at random",
        ),
        (
            known_are_the_hard_ones,
            "losses: records with and without a known loss without the record can be told apart by "
            "their losses (AUC ",
        ),
    ],
)
def test_where_no_bound_holds_a_line_says_so(edit, said):
    table, _ = world(np.random.default_rng(6))
    found = message(lambda: bounded(edit(table)))
    assert found.startswith(said)
    assert "\n" not in found


def test_a_record_has_a_loss_without_it_at_all_checkpoints_or_at_none():
    table, _ = world(np.random.default_rng(7))
    row = int(table["loss_without"].notna().to_numpy().argmax())
    name = table["id"][row]
    table.loc[row, "loss_without"] = np.nan
    assert message(lambda: records.to_losses(table)) == (
        f"losses: row {row + 1}: loss_without is empty, and the record {name!r} has one at another "
        "checkpoint; give it one at all checkpoints, or at none"
    )


def test_measures_that_need_a_training_answer_of_the_records_that_have_one():
    table, _ = world(np.random.default_rng(8))
    found = records.answers(records.to_losses(table))
    known = set(table.loc[table["loss_without"].notna(), "id"])
    of_measure = dict(list(found.table.groupby("measure")))
    for measure, rows in of_measure.items():
        expected = known if measure in ("counterfactual", "contextual") else set(table["id"])
        assert set(rows["id"]) == expected, measure
    counts = found.placebo.set_index("measure")[["n_trained", "n_unseen"]].sum(axis=1)
    assert counts["contextual"] == len(known)
    assert counts["loss attack"] == table["id"].nunique()
    # Alone, the known records have the same answers.
    alone = records.answers(records.to_losses(table[table["id"].isin(known)]))
    rows = alone.table[alone.table["measure"] == "contextual"].reset_index(drop=True)
    pd.testing.assert_frame_equal(of_measure["contextual"].reset_index(drop=True), rows)


def test_the_table_has_every_model_and_seed(tmp_path):
    """From trainings and from a user's table, with all that is known beside each row."""
    parts = []
    for seed in (0, 1):
        table, _ = world(np.random.default_rng(seed))
        parts.append(table.assign(language="mine", model="m-twin", seed=seed))
    retrained = pd.concat(parts)[kinds.RETRAINED.names]
    path = tmp_path / "losses.parquet"
    tables.write(path, retrained.astype({"checkpoint": float}), kinds.RETRAINED)
    read = tables.read(path, kinds.RETRAINED)
    found = bounds("mine", retrained=[read], false_alarms=0.05)
    assert found["seed"].unique().tolist() == [0, 1]
    assert (found["level"] == 0.9).all()
    assert (found["n_known"] == 32).all()
    tables.write(tmp_path / "conformal.parquet", found, kinds.CONFORMAL)
    parts[0][["id", "checkpoint", "loss", "loss_without", "trained", "group"]].to_csv(
        tmp_path / "mine.csv", index=False
    )
    given = bounds("own", given=tmp_path / "mine.csv", false_alarms=0.05)
    own = found[found["seed"] == 0]
    np.testing.assert_allclose(given["lower"], own["lower"])
    options = {"start": "after_last_miss", "loss_threshold": 0.5, "false_alarms": 0.1}
    shares = answer("mine", retrained=[read], **options)[kinds.SHARES.name]
    assert set(shares.loc[shares["measure"] == "contextual", "n_trained"]) == {32}
