"""Set-ups: which models are samples of which distribution (figure 2 and table 1 of the paper)."""

import numpy as np
import pytest

from palimpsest.unlearning.run.setups import (
    SETUPS,
    Setup,
    n_originals,
    n_retrained,
    unlearned_models,
)

N, E, K = 4, 3, 10


def setup(name):
    """A small set-up."""
    return Setup(name, N, E, K)


@pytest.mark.parametrize(
    ("name", "originals", "retrained"),
    [("full", N * E, N * E), ("reuse-n-n", N, N), ("reuse-n-1", 1, N), ("bootstrap", K, K)],
)
def test_trainings_are_those_of_table_1(name, originals, retrained):
    """Number of original and of retrained models."""
    assert n_originals([setup(name)]) == originals
    assert n_retrained([setup(name)]) == retrained


@pytest.mark.parametrize("name", SETUPS)
def test_members_are_among_the_wanted_and_the_trained(name):
    """Every repetition has n models of each kind, and all these models are made."""
    made = set(unlearned_models([setup(name)]))
    for repetition in range(E):
        origins, unlearning_replicates, retrained = setup(name).members(repetition)
        assert len(origins) == len(unlearning_replicates) == len(retrained) == N
        assert set(zip(origins.tolist(), unlearning_replicates.tolist(), strict=True)) <= made
        assert retrained.max() < n_retrained([setup(name)])


def test_full_shares_nothing_between_repetitions():
    """Independent estimates of the forgetting quality."""
    members = [setup("full").members(repetition) for repetition in range(E)]
    assert len(np.unique(np.concatenate([m.origins for m in members]))) == N * E
    assert len(np.unique(np.concatenate([m.retrained for m in members]))) == N * E


def test_reuse_unlearns_anew_in_every_repetition():
    """The same trained models, other unlearned ones."""
    for name in ("reuse-n-n", "reuse-n-1"):
        seen = set()
        for repetition in range(E):
            origins, unlearning_replicates, retrained = setup(name).members(repetition)
            pairs = set(zip(origins.tolist(), unlearning_replicates.tolist(), strict=True))
            assert len(pairs) == N
            assert not pairs & seen
            assert retrained.tolist() == list(range(N))
            seen |= pairs
    assert setup("reuse-n-1").members(2).origins.tolist() == [0] * N


def test_bootstrap_draws_triplets_with_replacement():
    """The unlearned and the retrained model of a number go together; repetitions differ."""
    first, second = (setup("bootstrap").members(repetition) for repetition in (0, 1))
    assert (first.origins == first.retrained).all()
    assert (first.unlearning_replicates == 0).all()
    assert first.origins.tolist() != second.origins.tolist()
    assert first.origins.tolist() == setup("bootstrap").members(0).origins.tolist()
    many = Setup("bootstrap", 50, 1, 10).members(0)
    assert len(np.unique(many.origins)) <= 10


def test_set_ups_share_models():
    """The first repetition of full is also that of reuse-n-n, and made once."""
    assert len(unlearned_models([setup("full"), setup("reuse-n-n")])) == N * E + N * (E - 1)
