"""The statistics of whole training sets, by hand on small tables."""

import numpy as np
import pandas as pd
import pytest

from palimpsest.memorisation import training_set_statistics as sets


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
    frame = sizes(test_loss=[0.9, 0.8, 0.7, 0.3, 0.2, 0.1], weighted=[0.3, 0.2, 0.1, 0.6, 0.5, 0.4])
    (pooled,) = sets.pooled_with_test_loss(frame, "contextual")
    # 6 of the 15 pairs are concordant, the 9 pairs of two models are not.
    assert pooled == pytest.approx((6 - 9) / 15)
    (alone,) = sets.pooled_with_test_loss(frame[:3], "contextual")
    assert alone == 1
