"""The figure of records: rows of measures and models, and what is missing without a placebo."""

import numpy as np
import pytest

from helpers.record_worlds import shares
from palimpsest.records.figures.record_shares import record_shares

pytestmark = pytest.mark.figures
MODEL = "opt-1.3b-twin"


def places(axes):
    """The points of a panel, as (x, y)."""
    lines = [line.get_xydata() for line in axes.get_lines() if line.get_marker() == "o"]
    return np.array([point for line in lines for point in line if np.isfinite(point).all()])


def test_both_shares_and_every_seeds_difference_are_drawn():
    table = shares([MODEL], [0, 1, 2])
    left, right = record_shares(table).axes
    averages = table.groupby("measure", sort=False)[["share_unseen", "share_trained"]].mean()
    np.testing.assert_allclose(places(left)[:, 0], averages.to_numpy().ravel())
    by_measure = [found["difference"] for _, found in table.groupby("measure", sort=False)]
    np.testing.assert_allclose(places(right)[:, 0], np.concatenate(by_measure))


def test_seeds_of_a_measure_are_nearer_to_each_other_than_to_those_of_another():
    _, right = record_shares(shares([MODEL], [0, 1, 2])).axes
    steps = np.diff(np.sort(places(right)[:, 1]))
    of_a_measure = np.arange(len(steps)) % 3 != 2
    assert steps[of_a_measure].max() < steps[~of_a_measure].min()


def test_models_are_named_where_there_are_several():
    for models in ([MODEL], [MODEL, "opt-2.7b-twin"]):
        left, _ = record_shares(shares(models, [0])).axes
        names = [label.get_text() for label in left.get_yticklabels()]
        assert len(names) == 4 * len(models)
        assert all((MODEL in name) == (len(models) > 1) for name in names[:4])


def test_without_a_placebo_there_is_no_difference():
    with pytest.warns(UserWarning, match="the share of false alarms is unknown"):
        table = shares([MODEL], [0], placebo=False)
    left, right = record_shares(table).axes
    assert places(left)[:, 0].tolist() == table["share_trained"].tolist()
    assert not len(places(right))
