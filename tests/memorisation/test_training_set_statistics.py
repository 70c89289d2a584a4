"""The statistics of whole training sets, by hand on small tables."""

import numpy as np
import pandas as pd
import pytest

from palimpsest.memorisation.claims import learning_statistics as learning
from palimpsest.memorisation.claims import training_set_statistics as sets
from palimpsest.memorisation.claims.claim_statistics import UNIT


def sizes(**columns):
    """Two models at three training sizes, one seed."""
    frame = pd.DataFrame({"model": ["m"] * 3 + ["n"] * 3, "size": [16, 64, 128] * 2})
    return frame.assign(seed=0, measure="contextual", **columns)


def test_the_change_per_doubling_is_a_slope_over_the_logarithm_of_the_size():
    """The sizes are 4, 6 and 7 doublings of one string."""
    frame = sizes(threshold_shared=[0.8, 0.6, 0.5, 0.3, 0.5, 0.6])
    found = sets.per_doubling(frame, "threshold_shared", "contextual")
    np.testing.assert_allclose(found, [-0.1, 0.1])
    assert found.index.names == ["model", "seed"]
    assert np.isnan(sets.per_doubling(frame[:1], "threshold_shared", "contextual")).all()
    assert sets.per_doubling(frame, "threshold_shared", "bayes").empty


def test_the_pooled_association_ranks_all_models_together():
    """In each model, a lower test loss goes with less memorisation; over both, with more."""
    frame = sizes(
        test_loss=[0.9, 0.8, 0.7, 0.3, 0.2, 0.1], mean_score=[0.3, 0.2, 0.1, 0.6, 0.5, 0.4]
    )
    (pooled,) = sets.pooled_with_test_loss(frame, "contextual", "mean_score")
    # 6 of the 15 pairs are concordant, the 9 pairs of two models are not.
    assert pooled == pytest.approx((6 - 9) / 15)
    (alone,) = sets.pooled_with_test_loss(frame[:3], "contextual", "mean_score")
    assert alone == 1
    # Of the unseen strings, the same share is called memorised: nothing is left to rank.
    frame = frame.assign(mean_score_unseen=frame["mean_score"])
    (left,) = sets.pooled_with_test_loss(
        frame, "contextual", "mean_score", minus="mean_score_unseen"
    )
    assert left == 0


def test_models_are_ranked_within_families_at_optimal_learning():
    frame = pd.DataFrame(
        {
            "model": ["a", "a", "b", "b", "c", "c"],
            "family": ["A", "A", "A", "A", "B", "B"],
            "size": 64,
            "seed": 0,
            "measure": "contextual",
            "epoch": [1, 2] * 3,
            "optimal_epoch": 2,
            "test_loss": [0.1, 0.5, 0.1, 0.3, 0.1, 0.2],
            "mean_score": [0.0, 0.4, 0.9, 0.2, 0.0, 0.9],
        }
    )
    found = sets.with_test_loss(frame, "contextual", "mean_score")
    assert found.index.names == ["family", "size", "seed"]
    np.testing.assert_array_equal(found, [1, np.nan])


def optimum(**columns):
    """Groups or measures of one run at its epoch of optimal learning."""
    frame = pd.DataFrame(columns)
    return frame.assign(model="m", size=64, seed=0, epoch=4, optimal_epoch=4)


def test_a_share_is_corrected_for_false_alarms():
    """Half of the unseen strings are below: of 0.9 below, 0.8 fell because of the training."""
    frame = optimum(measure=["contextual"], below_distinct=[0.9], below_unseen=[0.5])
    np.testing.assert_allclose(learning.share_made_to_fall(frame, "contextual"), [0.8])
    for below, unseen, share in ((0.3, 0.3, 0.0), (1.0, 0.5, 1.0), (1.0, 1.0, np.nan)):
        changed = frame.assign(below_distinct=below, below_unseen=unseen)
        np.testing.assert_allclose(learning.share_made_to_fall(changed, "contextual"), [share])


def test_the_correction_finds_the_share_that_training_made_to_fall():
    """Training brings 70 of 100 strings below; the others are below as often as unseen ones."""
    chance = np.random.default_rng(0)
    found = []
    for _ in range(400):
        anyway, unseen = chance.random(100) < 0.4, chance.random(100) < 0.4
        below = anyway | (np.arange(100) < 70)
        frame = optimum(
            measure=["contextual"], below_distinct=[below.mean()], below_unseen=[unseen.mean()]
        )
        found.append(learning.share_made_to_fall(frame, "contextual").item())
    assert np.mean(found) == pytest.approx(0.7, abs=0.01)


def frequencies():
    """By recollection, the frequent strings are ahead by as much as unseen strings are."""
    return optimum(
        measure=["recollection", "recollection", "contextual", "contextual"],
        group=["top", "bottom"] * 2,
        below_matched=[0.9, 0.4, 0.7, 0.8],
        below_unseen_matched=[0.8, 0.2, 0.3, 0.6],
    )


def test_groups_are_compared_beyond_unseen_strings_as_probable():
    frame = frequencies()
    found = sets.excess_top_minus_bottom(frame, "below", "recollection")
    np.testing.assert_allclose(found, [0.1 - 0.2])
    np.testing.assert_allclose(sets.excess_top_minus_bottom(frame, "below", "contextual"), [0.2])


def test_the_contradiction_is_of_recollection_as_it_is_with_the_contextual_excess():
    np.testing.assert_allclose(sets.contradiction(frequencies()), [0.5 - 0.2])


def test_the_change_per_doubling_may_be_that_of_an_excess():
    frame = sizes(margin=[0.8, 0.6, 0.5] * 2, unseen=[0.3, 0.3, 0.3, 0.7, 0.5, 0.4])
    found = sets.per_doubling(frame, "margin", "contextual", minus="unseen")
    np.testing.assert_allclose(found, [-0.1, 0.0], atol=1e-12)


def bands(**columns):
    """Runs of four seeds with ten epochs."""
    frame = pd.DataFrame(columns)
    seeds = range(len(frame))
    return frame.assign(
        model="m", size=64, seed=seeds, variant="dedup", measure="contextual", epoch=10
    )


def test_a_band_that_the_end_of_training_cuts_is_undefined():
    """A string that never starts counts as starting one epoch after the last."""
    frame = bands(start_p10=[2.0, 2.0, 11.0], start_p90=[8.0, 10.5, 11.0])
    expected = np.array([6, np.nan, np.nan])
    np.testing.assert_array_equal(sets.band(frame, "dedup", "contextual"), expected)
    np.testing.assert_array_equal(learning.band_width(frame, "contextual"), expected / 10)


def test_the_band_of_strings_that_never_start_reaches_beyond_the_training():
    """Inside; after the band; after the last start, but others never start; no start at all."""
    frame = bands(
        band_first=[2.0, 2.0, 2.0, np.nan],
        band_last=[8.0, 5.0, 5.0, np.nan],
        never_starts=[0.0, 0.0, 0.1, 1.0],
        optimal_epoch=6,
    )
    np.testing.assert_array_equal(learning.optimum_in_band(frame, "contextual"), [1, 0, 1, 0])
    unknown = frame.assign(never_starts=np.nan)
    assert learning.optimum_in_band(unknown, "contextual").isna().all()


def delays(**columns):
    """Data as sampled, of 10 strings, and deduplicated, of 4; ten epochs."""
    frame = pd.DataFrame({"variant": ["base", "dedup"], "n_train": [10, 4], **columns})
    return frame.assign(model="m", size=10, seed=0, measure="contextual", epoch=10)


def test_a_delay_in_epochs_can_be_none_in_trained_strings():
    frame = delays(optimal_epoch=[4, 6])
    np.testing.assert_array_equal(sets.optimum_delay(frame), [2])
    np.testing.assert_array_equal(sets.optimum_delay(frame, in_strings=True), [6 * 4 - 4 * 10])


def test_starts_are_delayed_in_epochs_or_in_trained_strings():
    frame = delays(start_p10=[1.0, 2.0], start_p90=[5.0, 10.0])
    np.testing.assert_array_equal(sets.start_delay(frame, "contextual"), [6 - 3])
    found = sets.start_delay(frame, "contextual", in_strings=True)
    np.testing.assert_array_equal(found, [6 * 4 - 3 * 10])
    # Ten epochs are fewer strings under deduplication: what never starts cannot be compared.
    cut = frame.assign(start_p90=[5.0, 11.0])
    np.testing.assert_array_equal(sets.start_delay(cut, "contextual"), [6.5 - 3])
    assert sets.start_delay(cut, "contextual", in_strings=True).isna().all()


def test_the_excess_before_optimal_learning_is_at_the_measurement_before():
    frame = pd.DataFrame(
        {
            "model": "m",
            "size": 64,
            "variant": "dedup",
            "seed": 0,
            "measure": "contextual",
            "epoch": [0, 2, 4, 6],
            "optimal_epoch": 4,
            "below_distinct": [0.0, 0.3, 0.6, 0.9],
            "below_unseen": [0.0, 0.1, 0.2, 0.3],
        }
    )
    np.testing.assert_allclose(sets.excess_before_optimum(frame, "contextual"), [0.2])
    np.testing.assert_allclose(learning.excess_at_optimum(frame, "below", "contextual"), [0.4])
    untrained = frame.assign(optimal_epoch=0)
    assert sets.excess_before_optimum(untrained, "contextual").empty


def test_the_lowest_excess_is_on_the_same_strings():
    """On the strings with stand-ins recollection is lower than over all strings."""
    frame = pd.DataFrame(
        {
            "model": "m",
            "size": 64,
            "seed": 0,
            "measure": ["recollection", "counterfactual", "contextual"],
            "epoch": 4,
            "optimal_epoch": 4,
            "below_distinct": [0.9, 0.8, 0.7],
            "below_unseen": [0.1, 0.1, 0.1],
            "below_covered": [0.5, 0.8, 0.7],
            "below_unseen_covered": [0.2, 0.1, 0.1],
        }
    )
    np.testing.assert_allclose(learning.least_excess_at_optimum(frame), [0.3])
    unknown = frame.assign(below_covered=[0.5, np.nan, 0.7])
    assert learning.least_excess_at_optimum(unknown).isna().all()


def test_slower_training_is_at_equal_weights_and_equal_steps():
    """The losses are 1 - 0.01 t and 1 - 0.005 t after t trained strings; dedup has half of them."""
    base, dedup = (
        pd.DataFrame(
            {
                "model": "m",
                "size": 64,
                "seed": 0,
                "variant": name,
                "measure": "contextual",
                "epoch": [0, 1, 2, 3, 4],
                "n_train": n,
                "train_loss_distinct": 1 - rate * n * np.arange(5),
            }
        )
        for name, n, rate in (("base", 10, 0.01), ("dedup", 5, 0.005))
    )
    # Dedup reaches 20 trained strings: the differences after 0, 10 and 20 are 0, 0.05 and 0.1.
    found = sets.slower_training(pd.concat([base, dedup]))
    np.testing.assert_allclose(found, [0.05])
    assert found.index.names == UNIT
    assert sets.slower_training(base).isna().all()
