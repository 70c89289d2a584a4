"""Requests for runs: their paths, and how those of several sections become one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest import paths
from palimpsest.errors import UserError
from palimpsest.regimes import LeaveOneOut, Replicates
from palimpsest.requests import TOKENS, TRACE, WEIGHTS, Runs, merged, parts

BASE = Runs("opt-1.3b-twin", "L1", 16, seeds=(0, 1))
REPLICATES = Runs(
    "opt-1.3b-twin",
    "L1",
    16,
    "original",
    seeds=(5,),
    recipe="long",
    regime=Replicates(range(4, 11), 3),
    keeps=frozenset({TRACE, WEIGHTS}),
)


def test_equal_requests_are_one():
    """The result has the seeds of both, in the order of the requests."""
    more = replace(REPLICATES, seeds=(1, 5))
    other = Runs("opt-1.3b-twin", "L1", 24, seeds=(0,))
    assert merged([REPLICATES, other, more, replace(other, seeds=(7, 0))]) == [
        replace(more, seeds=(5, 1)),
        replace(other, seeds=(0, 7)),
    ]
    assert merged([BASE, BASE]) == [BASE]
    assert merged([]) == []


@pytest.mark.parametrize(
    "change",
    [
        {"model": "opt-2.7b-twin"},
        {"corpus": "L2"},
        {"size": 17},
        {"intervention": "retain"},
        {"recipe": "short"},
        {"recipe": "short", "regime": Replicates(range(4, 11), 4)},
        {"regime": Replicates(range(11, 12), 3)},
    ],
)
def test_what_differs_is_not_one(change):
    """Requests differ in a value other than the seeds and the kept results."""
    other = Runs(**{**vars(REPLICATES), **change})
    assert merged([REPLICATES, other]) == [REPLICATES, other]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"regime": Replicates(range(4, 11), 4)}, "replicates per job"),
        ({"regime": Replicates(range(4, 12), 3)}, "replicates"),
        ({"regime": Replicates(range(10, 12), 3)}, "replicates"),
    ],
)
def test_contradictory_requests_are_refused(change, name):
    """The same files cannot hold models that are trained in two ways, or in two jobs."""
    with pytest.raises(UserError, match=rf"original: its replicates are asked for with {name} "):
        merged([BASE, REPLICATES, replace(REPLICATES, **change)])


@pytest.mark.parametrize(
    ("runs", "change", "reason"),
    [
        (
            BASE,
            {"keeps": frozenset({TRACE, WEIGHTS}), "regime": LeaveOneOut()},
            "cannot ask for the weights of leave-one-out",
        ),
        (BASE, {"keeps": frozenset({TRACE, "gradients"})}, "keeps 'gradients', which no run"),
        (
            REPLICATES,
            {"keeps": frozenset({TRACE, WEIGHTS, TOKENS})},
            "only single runs keep the losses of tokens",
        ),
        (
            BASE,
            {"keeps": frozenset({TRACE, TOKENS}), "regime": LeaveOneOut()},
            "only single runs keep the losses of tokens",
        ),
        (REPLICATES, {"keeps": frozenset({TRACE})}, "replicates always keep their weights"),
    ],
)
def test_a_request_that_no_rule_can_meet_is_refused(runs, change, reason):
    """Only replicates have files of their own, and they always have weights."""
    with pytest.raises(ValueError, match=reason):
        merged([replace(runs, **change)])


def test_a_run_has_a_path_for_each_seed():
    """Of the variant; leave-one-out reads the base dataset."""
    assert BASE.paths(paths.TRACE) == [
        f"results/runs/base/default/opt-1.3b-twin/L1/n16-seed{seed}/trace.parquet"
        for seed in (0, 1)
    ]
    left_out = replace(BASE, regime=LeaveOneOut())
    assert left_out.datasets == [
        f"results/datasets/L1/n16-seed{seed}/base/strings.parquet" for seed in (0, 1)
    ]
    assert BASE.on("dedup").intervention == "dedup"
    # A pattern that names no seed is one path.
    assert BASE.paths("{model}/{language}") == ["opt-1.3b-twin/L1"]


def test_replicates_have_a_path_for_each_job():
    """Named by its first and its last replicate."""
    assert REPLICATES.jobs == [(4, 5), (6, 8), (9, 10)]
    assert REPLICATES.paths("{variant}/{seed}/{first}-{last}") == [
        "original/5/4-5", "original/5/6-8", "original/5/9-10"
    ]  # fmt: skip


def test_a_training_is_counted_for_each_model():
    """One for a seed, for each replicate, or for each string that is left out."""
    assert BASE.trainings == 1
    assert replace(BASE, regime=LeaveOneOut()).trainings == 16
    assert REPLICATES.trainings == 7


@given(st.integers(0, 50), st.integers(1, 200), st.integers(1, 60))
def test_parts_hold_every_number_once(first, count, most):
    """The parts are in order, of about equal size, and as few as possible."""
    found = list(parts(range(first, first + count), most))
    numbers = [number for start, last in found for number in range(start, last + 1)]
    assert numbers == list(range(first, first + count))
    sizes = [last - start + 1 for start, last in found]
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1
    assert len(found) == -(-count // most)
