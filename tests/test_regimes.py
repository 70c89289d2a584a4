"""Regimes: their names, their folders, and the names of the models in their files."""

import pytest

from palimpsest import regimes
from palimpsest.regimes import SINGLE, LeaveOneOut, OnePass, Removals, Replicates


@pytest.mark.parametrize(
    ("regime", "name", "folder", "trainings"),
    [
        (SINGLE, "single", "base", 1),
        (LeaveOneOut(), "leave-one-out", "leave-one-out", 16),
        (LeaveOneOut(5), "leave-one-out", "leave-one-out", 5),
        (LeaveOneOut(5, again=True), "leave-one-out-again", "leave-one-out-again", 6),
        (Removals(), "removals:all:0", "removals", 16),
        (Removals(5, 8, again=True), "removals-again:5:8", "removals-again", 14),
        (OnePass(8, 40), "one-pass:1", "base", 1),
        (OnePass(8, 40, 8, replicate=2), "one-pass:8:2", "base-2", 1),
        (Replicates(range(4, 11), 3), "replicates", "base", 7),
    ],
)
def test_a_regime_says_where_and_how_often_it_trains(regime, name, folder, trainings):
    assert regime.name == name
    assert regime.folder("base") == folder
    assert regime.trainings(16) == trainings


@pytest.mark.parametrize(
    "regime",
    [
        *(SINGLE, LeaveOneOut(5), LeaveOneOut(5, again=True), OnePass(0, 0, 3)),
        *(Removals(), Removals(5, 8, again=True)),
    ],
)
def test_a_regime_is_read_as_it_is_written(regime):
    assert regimes.named(regime.name, left_out=5) == regime
    assert regimes.named("one-pass:8:2") == OnePass(0, 0, 8, 2)


@pytest.mark.parametrize(
    "name", ["", "base", "one-pass", "one-pass:1:2:3", "replicates", "removals:all"]
)
def test_another_name_is_refused(name):
    with pytest.raises(ValueError, match=r"unknown regime|invalid literal"):
        regimes.named(name)


def test_the_models_in_files_are_read_as_they_are_written():
    assert regimes.string_left_out(regimes.without_string("0123456789ab")) == "0123456789ab"
    assert regimes.replicate_of(regimes.of_replicate("retain", 12), "retain") == 12
    assert regimes.intervention_of_replicate("stream-without-5-2") == "stream-without-5"
    assert regimes.half_of(regimes.of_half(7)) == 7
    assert regimes.half_of("base-7") is None


@pytest.mark.parametrize("name", ["original-3", "retain", "retain-", "retain-x", "retain-1-2"])
def test_a_replicate_of_another_intervention_is_none(name):
    assert regimes.replicate_of(name, "retain") is None
