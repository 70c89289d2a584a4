"""The tables of the studies, on runs small enough to work out by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.memorisation_runs import LOSS, RULE, STRINGS, curve, dataset, trace
from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.memorisation import memorisation_tables
from palimpsest.memorisation.studies import STUDIES
from palimpsest.memorisation.studies.frequency import frequency_groups
from palimpsest.memorisation.studies.model_size import beside_sizes
from palimpsest.memorisation.studies.training_size import shared_thresholds
from palimpsest.sections import KINDS


@pytest.fixture(scope="module")
def made():
    return memorisation_tables([trace(0), trace(1)], [dataset(0), dataset(1)], *RULE, np.inf)


def test_training_strings_are_compared_with_their_stand_ins():
    """At epoch 4, d is below its contextual threshold, and c is not; c stands in for a, d for b."""
    loss = {**LOSS, "a": (2.0, 1.0, 1.0, 1.0), "d": (2.0, 1.0, 0.4, 0.25)}
    loss["c"] = (2.0, 0.6, 0.5, 0.9)
    made = memorisation_tables([trace(loss=loss)], [dataset()], *RULE, np.inf)
    starts = made["starts"]
    assert set(made["learning"]["optimal_epoch"]) == {4}
    # The thresholds are 0.5 for a, 0.25 for b, 0.15 for c and 0.6 for d.
    np.testing.assert_allclose(curve(starts, "contextual", "threshold_at_optimum"), [0.5, 0.25])
    np.testing.assert_array_equal(curve(starts, "contextual", "below_at_optimum"), [0, 0])
    np.testing.assert_array_equal(curve(starts, "contextual", "below_unseen"), [0, 1])
    np.testing.assert_allclose(curve(starts, "contextual", "margin_unseen"), [0, 1 / 3])
    np.testing.assert_array_equal(curve(starts, "recollection", "below_unseen"), [0, 0])
    frame = STUDIES["frequency"].table(
        starts=starts, scores=made["scores"], learning=made["learning"]
    )
    contextual = frame[frame["measure"] == "contextual"].groupby("group").first()
    assert contextual["below_unseen_matched"].to_dict() == {"bottom": 1, "top": 0}
    assert set(frame["coverage"]) == {1}


def with_variant(frame, name):
    return pd.concat([frame, frame.assign(variant=name)], ignore_index=True)


def test_studies_are_of_their_kind(made, tmp_path):
    models = pd.DataFrame({"model": ["m"], "family": ["F"], "parameters": [1000]})
    needs = {
        "tradeoff": ("training_set", "learning"),
        "frequency": ("starts", "scores", "learning"),
        "deduplication": ("training_set", "learning"),
        "training_size": ("starts", "training_set", "learning"),
        "model_size": ("training_set", "learning"),
    }
    n = made["training_set"]["measure"].nunique()
    rows = {
        "tradeoff": 2 * n * 4,
        "frequency": 2 * n * 2 * 4,
        "deduplication": 2 * 2 * n * 4,
        "training_size": 2 * n,
        "model_size": 2 * n * 4,
    }
    for name in needs:
        study = beside_sizes if name == "model_size" else STUDIES[name].table
        given = {kind: made[kind] for kind in needs[name]}
        if name == "deduplication":
            given = {kind: with_variant(frame, "dedup") for kind, frame in given.items()}
        if name == "model_size":
            given["models"] = models
        frame = study(**given)
        assert len(frame) == rows[name], name
        tables.write(tmp_path / f"{name}.parquet", frame, KINDS[name])
        tables.read(tmp_path / f"{name}.parquet", KINDS[name])


def test_adapters_are_compared_at_equal_test_loss():
    """The adapter learns half as fast and not as far, so it sets the loss of the comparison."""

    def frames(model, test_loss, below):
        keys = {"model": model, "language": "L", "size": 4, "seed": 0, "variant": "base"}
        n = len(test_loss)
        optimum = int(np.argmin(test_loss))
        dataset = pd.DataFrame(
            {"measure": "recollection", "epoch": range(n), "below_distinct": below}
        )
        dataset = dataset.assign(**keys, below_unseen=0.0)
        learning = pd.DataFrame({"epoch": range(n), "test_loss": test_loss})
        learning["train_loss_distinct"] = 2 - dataset["below_distinct"]
        return dataset, learning.assign(**keys, optimal_epoch=optimum, still_learning=False)

    full = frames("full", [2.0, 1.0, 0.5, 0.9], [0.0, 0.2, 0.8, 1.0])
    adapter = frames("adapter", [2.0, 1.4, 0.8, 0.75], [0.0, 0.0, 0.1, 0.3])
    dataset, learning = (pd.concat(both) for both in zip(full, adapter, strict=True))
    table = STUDIES["adapters"].table
    (row,) = table(training_set=dataset, learning=learning, reference="full").to_dict("records")
    assert (row["model"], row["reference"]) == ("adapter", "full")
    assert row["equal_test_loss"] == 0.75
    assert (row["epoch"], row["below_distinct"]) == (3, 0.3)
    # Half-way between epochs 1 and 2
    assert row["reference_epoch"] == pytest.approx(1.5)
    assert row["reference_below_distinct"] == pytest.approx(0.5)
    assert row["reference_train_loss_distinct"] == pytest.approx(1.5)
    assert row["train_loss_distinct"] == pytest.approx(1.7)
    swapped = table(training_set=dataset, learning=learning, reference="adapter").iloc[0]
    assert swapped["below_distinct"] == row["reference_below_distinct"]
    alone = dataset[dataset["model"] == "full"]
    assert table(training_set=alone, learning=learning, reference="full").empty


def test_frequency_by_hand(made):
    frame = STUDIES["frequency"].table(**{k: made[k] for k in ("starts", "scores", "learning")})
    contextual = frame[(frame["measure"] == "contextual") & (frame["seed"] == 0)]
    top, bottom = (contextual[contextual["group"] == group] for group in ("top", "bottom"))
    np.testing.assert_allclose(top["loss"], LOSS["a"])
    np.testing.assert_allclose(bottom["mean_score_distinct"], [0, 0, 0, 0.2])
    assert set(frame["n_strings"]) == {1}
    with pytest.raises(UserError, match=r"at most 0\.5"):
        STUDIES["frequency"].table(
            **{k: made[k] for k in ("starts", "scores", "learning")}, share=0.6
        )


def groups_of(count, share):
    """The names a, b, ... of the strings in the groups of a run with these numbers of copies."""
    starts = pd.DataFrame(
        {
            "model": "m",
            "language": "L",
            "size": sum(count),
            "seed": 0,
            "variant": "base",
            "string_id": list("abcdefghijklmnopqrst"[: len(count)]),
            "count": count,
            "measure": "contextual",
        }
    )
    groups = frequency_groups(pd.concat([starts, starts]), share)
    top, bottom = (groups.loc[groups["group"] == name, "string_id"] for name in ("top", "bottom"))
    return "".join(top), "".join(bottom)


@pytest.mark.parametrize(
    ("count", "share", "top", "bottom"),
    [
        # One repeated string of eight: it is the top, and all the others are equal.
        ([1, 11, 1, 1, 1, 1, 1, 1], 0.3, "b", "acdefgh"),
        # A share of a fifth is two of ten; three strings have the second most copies.
        ([5, 3, 3, 3, 2, 2, 1, 1, 1, 1], 0.2, "abcd", "ghij"),
        ([5, 3, 3, 3, 2, 2, 1, 1, 1, 1], 0.1, "a", "ghij"),
        ([5, 4, 3, 2], 0.5, "ab", "cd"),
        ([3, 3, 2, 2, 2, 1], 0.5, "abcde", "f"),
        ([2, 2, 2], 0.5, "", ""),
    ],
)
def test_equally_frequent_strings_stay_together(count, share, top, bottom):
    assert groups_of(count, share) == (top, bottom)


@given(count=st.lists(st.integers(1, 5), min_size=1, max_size=20), share=st.floats(0.01, 0.5))
def test_the_most_frequent_strings_are_more_frequent_than_the_least(count, share):
    top, bottom = groups_of(count, share)
    copies = dict(zip("abcdefghijklmnopqrst", count, strict=False))
    assert bool(top) == bool(bottom) == (len(set(count)) > 1)
    assert not set(top) & set(bottom)
    if top:
        others = set(copies) - set(top)
        assert min(copies[name] for name in top) > max(copies[name] for name in others)
        assert len(bottom) >= share * len(count) or set(top) | set(bottom) == set(copies)


def test_training_size_by_hand(made):
    frame = STUDIES["training_size"].table(
        **{k: made[k] for k in ("starts", "training_set", "learning")}
    )
    row = frame[(frame["measure"] == "contextual") & (frame["seed"] == 0)].iloc[0]
    assert row["optimal_epoch"] == 4
    assert row["n_repeated"] == 1
    np.testing.assert_allclose(
        row[["test_loss", "share_memorised", "mean_score", "mean_score_repeated"]].astype(float),
        [0.42, 0.75, 0.6, 0.8],
    )
    # Of one size, all strings with stand-ins are shared.
    starts = made["starts"].query("measure == 'contextual' and seed == 0")
    assert row["threshold_shared"] == pytest.approx(starts["threshold_at_optimum"].mean())


def test_thresholds_are_compared_on_the_same_strings():
    """The larger set has a rarer string c; b has no stand-ins in the larger set."""
    starts = pd.DataFrame(
        {
            "model": "m",
            "language": "L",
            "size": [2, 2, 2, 4, 4, 4, 4],
            "seed": 0,
            "variant": "base",
            "measure": "contextual",
            "string_id": ["a", "b", "d", "a", "b", "c", "d"],
            "threshold_at_optimum": [0.4, 0.5, 0.6, 0.3, np.nan, 0.9, 0.4],
        }
    )
    frame = shared_thresholds(starts)
    np.testing.assert_allclose(frame.set_index("size")["threshold_shared"], [0.5, 0.35])
    # The two seeds do not share strings, and a seed with one size compares nothing.
    other = shared_thresholds(pd.concat([starts, starts[:3].assign(seed=1)]))
    np.testing.assert_allclose(other["threshold_shared"], [0.5, 0.5, 0.35])
    assert list(other["seed"]) == [0, 1, 0]


def test_training_size_without_repeated_strings():
    once = STRINGS.assign(count=[1, 1, 0, 0, 0])
    made = memorisation_tables([trace()], [dataset(strings=once)], *RULE)
    frame = STUDIES["training_size"].table(
        **{k: made[k] for k in ("starts", "training_set", "learning")}
    )
    assert set(frame["n_repeated"]) == {0}
    assert frame["mean_score_repeated"].isna().all()


@pytest.mark.parametrize("study", ["deduplication", "tradeoff"])
def test_bands_by_hand(made, study):
    frame = STUDIES[study].table(training_set=made["training_set"], learning=made["learning"])
    contextual = frame[frame["measure"] == "contextual"]
    np.testing.assert_allclose(contextual["start_p10"], 4.2)
    np.testing.assert_allclose(contextual["start_p90"], 5.8)
    # Of a and b, b never starts: it counts as starting in epoch 7.
    bayes = frame[frame["measure"] == "bayes"]
    np.testing.assert_allclose(bayes["start_p10"], 4.3)
    np.testing.assert_allclose(bayes["start_p90"], 6.7)
    dataset = made["training_set"].groupby("measure")["never_starts"].first()
    assert dataset[["contextual", "bayes"]].tolist() == [0, 0.5]


def test_tables_of_different_runs_make_no_study(made):
    with pytest.raises(UserError, match="not of the same runs"):
        STUDIES["tradeoff"].table(
            training_set=made["training_set"],
            learning=made["learning"][made["learning"]["seed"] == 0],
        )
    with pytest.raises(UserError, match="model 'm' has no family"):
        beside_sizes(
            training_set=made["training_set"],
            learning=made["learning"],
            models=pd.DataFrame({"model": ["n"], "family": ["F"], "parameters": [1]}),
        )
