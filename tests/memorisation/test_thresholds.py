"""The study `thresholds`, by hand: two training strings, one of them three times, two unseen."""

import numpy as np
import pandas as pd
import pytest

from helpers.memorisation_runs import dataset, trace
from palimpsest.errors import UserError
from palimpsest.memorisation.claims.threshold_statistics import (
    range_over_thresholds,
    rules_differ,
    spread_over_thresholds,
)
from palimpsest.memorisation.studies import thresholds

LEARNING = pd.DataFrame(
    {
        "model": "m", "language": "L", "size": 4, "seed": 0, "variant": "base",
        "epoch": [0, 2, 4, 6], "test_loss": [2.0, 1.0, 0.5, 0.8], "optimal_epoch": 4,
        "still_learning": False,
    }
)  # fmt: skip


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr("palimpsest.traces.read", lambda path: trace())
    monkeypatch.setattr(
        "palimpsest.memorisation.likelihoods.read_runs",
        lambda paths, strings, learning: [(trace(), strings, 4) for _ in paths],
    )
    return thresholds.table(
        strings=dataset(), learning=LEARNING, traces=["a run"], loss_thresholds=[0.5, 0.7]
    )


def share(table, threshold, rule, column="share_memorised"):
    rows = table[(table["loss_threshold"] == threshold) & (table["start_rule"] == rule)]
    return rows.sort_values("epoch")[column].to_numpy()


def test_copies_count_and_each_threshold_has_its_own_curve(table):
    np.testing.assert_allclose(share(table, 0.5, "after_last_miss"), [0, 0, 0.75, 1])
    np.testing.assert_allclose(share(table, 0.7, "after_last_miss"), [0, 0, 1, 1])


def test_a_loss_that_rises_again_counts_only_by_the_first_crossing_and_while_it_is_low(table):
    """Unseen strings fall below 0.7 and rise to it or above."""
    unseen = "share_memorised_unseen"
    np.testing.assert_allclose(share(table, 0.7, "after_last_miss", unseen), 0)
    np.testing.assert_allclose(share(table, 0.7, "first_crossing", unseen), [0, 0.5, 1, 0])


def test_the_statistics_are_about_optimal_learning(table):
    assert range_over_thresholds(table).tolist() == [0.25]
    assert spread_over_thresholds(table, "share_memorised_unseen").tolist() == [0]
    assert rules_differ(table).tolist() == [0]


def test_a_run_without_its_dataset_is_refused(monkeypatch):
    monkeypatch.setattr("palimpsest.traces.read", lambda path: trace(seed=1))
    with pytest.raises(UserError, match="make them anew"):
        list(thresholds.likelihoods.read_runs(["a run"], dataset(), LEARNING, lambda _: trace(1)))
