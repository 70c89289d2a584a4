"""Results as data frames: the same numbers, and columns that the tables know."""

import numpy as np
import pandas as pd
import pytest

from palimpsest import audit, density, information, memorisation, profiles, records
from palimpsest.audit.kinds import CONTINUATIONS
from palimpsest.audit.passes import Pass
from palimpsest.memorisation.kinds import SCORES, STARTS, TARGET_SCORES
from palimpsest.sections import KINDS

LOSS = np.array([[2.0, 2.0], [1.2, 1.1], [0.5, 0.9], [0.1, 0.9]])
WITHOUT = np.array([[2.1, 2.0], [1.4, 1.2], [1.1, 0.8], [1.0, 0.9]])


def test_memorisation_by_string_and_epoch():
    found = memorisation.contextual(LOSS, WITHOUT)
    frame = found.to_frame(string_id=["a", "b"], epoch=[0, 5, 10, 15])
    assert set(frame) <= {*SCORES.names, *STARTS.names, "margin"}
    cells = frame.pivot(index="epoch", columns="string_id", values="score")
    assert np.array_equal(cells, found.score)
    starts = frame.groupby("string_id")["start"].first()
    assert starts["a"] == 10
    assert np.isnan(starts["b"])
    assert np.array_equal(found.to_frame()["string_id"].unique(), [0, 1])


def test_names_of_data_frames_are_kept():
    """The columns name strings and the index epochs; names that are given go before."""
    loss = pd.DataFrame(LOSS, index=[0, 5, 10, 15], columns=["a", "b"])
    without = pd.DataFrame(WITHOUT, index=loss.index, columns=loss.columns)
    named = memorisation.contextual(LOSS, WITHOUT).to_frame(["a", "b"], [0, 5, 10, 15])
    of_one = {
        "contextual": (loss, without),
        "counterfactual": (loss, without),
        "recollection": (loss, 0.2),
        "bayes": (loss, np.ones(2)),
    }
    for name, arguments in of_one.items():
        frame = getattr(memorisation, name)(*arguments).to_frame()
        pd.testing.assert_frame_equal(frame[["string_id", "epoch"]], named[["string_id", "epoch"]])
    pd.testing.assert_frame_equal(memorisation.contextual(loss, without).to_frame(), named)
    assert named.index.is_unique
    other = memorisation.contextual(loss, without).to_frame(string_id=["x", "y"])
    assert [*other["string_id"].unique()] == ["x", "y"]
    by_day = loss.set_axis(pd.date_range("2024-01-01", periods=4))
    days = memorisation.recollection(by_day, 0.2).to_frame().groupby("string_id")["start"].first()
    assert days["a"] == pd.Timestamp("2024-01-04")
    assert pd.isna(days["b"])


@pytest.mark.parametrize(("axis", "what"), [(0, "rows"), (1, "columns")])
def test_data_frames_in_another_order_are_refused(axis, what):
    loss, without = pd.DataFrame(LOSS), pd.DataFrame(WITHOUT)
    with pytest.raises(ValueError, match=f"must have the same {what} in the same order: "):
        memorisation.contextual(loss, without[::-1] if axis == 0 else without[[1, 0]])


def test_a_wrong_loss_is_named_plainly():
    with pytest.raises(ValueError, match=r"^threshold must be .* not negative; it is -1\.0$"):
        memorisation.recollection(LOSS, -1.0)
    wrong = np.where(LOSS == 1.1, np.nan, LOSS)
    with pytest.raises(ValueError, match=r"; loss\[1, 1\] is nan \(1 of 8 values are wrong\)$"):
        memorisation.recollection(wrong, 0.2)


@pytest.mark.parametrize("names", [{"string_id": ["a"]}, {"epoch": [0, 1]}])
def test_other_numbers_of_names_are_refused(names):
    with pytest.raises(ValueError, match=r"must be \[2\] and \[4\]"):
        memorisation.contextual(LOSS, WITHOUT).to_frame(**names)


def test_stand_ins_of_strings():
    frame = memorisation.stand_ins([1.0, 9.0], [1.1, 1.1, 2.0], [4, 4]).to_frame(["a", "b"])
    assert set(frame) - {"n_stand_ins"} <= {*STARTS.names, *TARGET_SCORES.names, "stand_in_gap"}
    assert frame["n_stand_ins"].tolist() == [2, 0]
    assert frame["stand_in_gap"].round(6).tolist() == [0.4, 28]


def test_losses_are_read_again_from_their_frame():
    rows = [
        {"id": name, "checkpoint": step, "loss": 1 / (step + 1), "loss_without": 2.0, "group": "g"}
        | {"trained": name == "a"}
        for name in "ab"
        for step in (3, 7)
    ]
    losses = records.to_losses(pd.DataFrame(rows))
    pd.testing.assert_frame_equal(
        losses.to_frame(), records.to_losses(losses.to_frame()).to_frame()
    )
    again = losses.to_frame().set_index(["id", "checkpoint"])["loss"]
    assert again["b", 7] == 1 / 8


def test_records_are_read_again_from_their_frame(tmp_path):
    mine = records.read_records("config/records/people.jsonl")
    file = tmp_path / "again.parquet"
    mine.to_frame().to_parquet(file)
    again = records.read_records(file)
    assert again.to_frame().equals(mine.to_frame())
    assert {"id", "text", "group", "split", "copies"} == set(mine.to_frame())


@pytest.mark.filterwarnings("ignore")
def test_panels_are_read_again_from_their_frame():
    panel = profiles.read_panel("config/panels/example.csv")
    frame = panel.to_frame()
    assert len(frame) == panel.outcome.size
    again = profiles.to_panel(frame)
    for name in ("times", "cohorts", "outcome", "units"):
        assert np.array_equal(getattr(again, name), getattr(panel, name)), name


def test_neighbours_parts_and_pairs():
    chance = np.random.default_rng(0)
    corpus, queries = chance.normal(size=(50, 4)), chance.normal(size=(3, 4))
    near = density.nearest(queries, corpus, k=2)
    frame = near.to_frame(["a", "b", "c"])
    assert frame.loc[frame["string_id"] == "b", "row"].tolist() == near.rows[1].tolist()
    assert (frame[frame["k"] == 1]["distance"].to_numpy() == near.distances[:, 0]).all()
    sizes = density.Approximation(k=5, m1=40, m2=20)
    parts = density.parts_of_density(queries, corpus, 1.0, approximation=sizes)
    assert (parts.to_frame()["combined"] == parts.combined).all()
    pairs = information.sampled_pairs(4, most=3)
    values = [0.1, 0.2, 0.3]
    assert pairs.to_frame(values).columns.tolist() == ["first", "second", "mutual_information"]
    assert {"first", "second", "mutual_information"} <= set(KINDS["pairs"].names)


def test_curves_passes_and_continuations():
    curve = audit.roc(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]))
    assert curve.to_frame()["tpr"].tolist() == curve.tpr.tolist()
    of_tokens = np.arange(3.0)
    one = Pass(np.array([2, 1]), -of_tokens, *[of_tokens] * 4)
    assert one.to_frame(["x", "y"])[["id", "place", "log_prob"]].to_numpy().tolist() == [
        ["x", 0, 0.0],
        ["x", 1, -1.0],
        ["y", 0, -2.0],
    ]
    from palimpsest.audit.continuations import Continued

    numbers = np.array([1, 2])
    frame = Continued(["a", None], numbers, numbers, numbers, numbers / 2).to_frame(["x", "y"])
    assert set(frame) <= set(CONTINUATIONS.names)
    assert frame["nll"].tolist() == [0.5, 1.0]
