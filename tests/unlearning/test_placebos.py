"""Placebos of forget strings: unseen, and as hard."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.unlearning_world import FORGET, SPLITS, STRINGS, world
from palimpsest.errors import UserError
from palimpsest.unlearning.evaluate.placebos import (
    measured_strings,
    placebos,
    retained,
    strings_and_controls,
)

UNSEEN = np.array(SPLITS) == "test"


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    return world(folder, names=["reuse-n-n"], n=3, repetitions=1).problem()


def with_strings(problem, **columns):
    """The problem with other columns of its strings."""
    return replace(problem, strings=problem.strings.assign(**columns))


def test_a_placebo_is_the_unseen_string_with_the_nearest_optimal_loss(problem):
    """By hand: forget string i has the loss i, unseen string j has j + 0.2."""
    optimal = np.full(len(SPLITS), 5.0)
    optimal[FORGET] = np.arange(12)
    optimal[UNSEEN] = np.arange(20) + 0.2
    found = placebos(with_strings(problem, optimal_loss=optimal))
    assert found.tolist() == np.flatnonzero(UNSEEN)[:12].tolist()


def test_every_forget_string_has_a_placebo_of_its_own(problem):
    """All forget strings have the loss 1, so the twelve nearest unseen strings are chosen."""
    optimal = np.full(len(SPLITS), 5.0)
    optimal[FORGET], optimal[UNSEEN] = 1.0, np.arange(20)
    found = placebos(with_strings(problem, optimal_loss=optimal))
    assert sorted(found) == np.flatnonzero(UNSEEN)[:12].tolist()


def test_of_equally_near_strings_the_first_by_name_are_chosen(problem):
    found = placebos(with_strings(problem, optimal_loss=1.0))
    assert sorted(found) == np.flatnonzero(UNSEEN)[:12].tolist()


def test_a_string_of_the_training_set_is_no_placebo(problem):
    """A test string may also be in the retain set; the next one is taken then."""
    optimal = np.full(len(SPLITS), 5.0)
    optimal[FORGET], optimal[UNSEEN] = 1.0, np.arange(20)
    unseen = np.flatnonzero(UNSEEN)
    counts = STRINGS["count"].to_numpy().copy()
    counts[unseen[1]] = 1
    found = placebos(with_strings(problem, optimal_loss=optimal, count=counts))
    assert sorted(found) == [unseen[0], *unseen[2:13]]


def test_few_unseen_strings_are_used_equally_often(problem):
    """Five unseen strings for twelve forget strings: none is used more than three times."""
    counts = STRINGS["count"].to_numpy().copy()
    counts[np.flatnonzero(UNSEEN)[5:]] = 1
    found = placebos(with_strings(problem, count=counts))
    used = np.unique(found, return_counts=True)[1]
    assert (len(found), used.max()) == (12, 3)


def test_without_probabilities_the_retrained_models_say_how_hard_a_string_is(problem):
    """The sum of the distances is the smallest one: no two placebos are better exchanged."""
    loss = problem.reference.loss.mean(axis=0)
    found = placebos(with_strings(problem, optimal_loss=np.nan))
    assert len(set(found)) == FORGET.sum()
    assert UNSEEN[found].all()
    own = loss[FORGET]
    near = abs(own - loss[found])
    for one in range(len(found)):
        others = abs(own - loss[found][one]) + abs(own[one] - loss[found])
        assert (others >= near + near[one] - 1e-6).all()


def test_forget_strings_and_placebos_are_measured_side_by_side(problem):
    (forget, places), (placebo, others) = measured_strings(problem)
    assert (forget, placebo) == ("forget", "placebo")
    assert places.tolist() == np.flatnonzero(FORGET).tolist()
    assert others.tolist() == placebos(problem).tolist()


def test_retained_strings_were_trained_on_and_are_kept(problem):
    """Ten retained strings for twelve forget strings: each is used, and none more than twice."""
    kept = (STRINGS["count"] > 0).to_numpy() & ~FORGET
    found = retained(problem)
    assert kept[found].all()
    used = np.unique(found, return_counts=True)[1]
    assert (len(found), len(used), used.max()) == (12, kept.sum(), 2)
    names = [name for name, _ in strings_and_controls(problem)]
    assert names == ["forget", "placebo", "retained"]


def test_without_a_retained_string_there_is_no_such_control(problem):
    counts = np.where(FORGET, 1, 0)
    nothing = with_strings(problem, count=counts)
    assert retained(nothing) is None
    assert [name for name, _ in strings_and_controls(nothing)] == ["forget", "placebo"]


def test_without_an_unseen_string_the_remedy_is_named(problem):
    with pytest.raises(UserError) as error:
        placebos(with_strings(problem, count=1))
    assert str(error.value) == (
        "L, size 100, seed 0: every test string was trained on, so there is no placebo; raise "
        "datasets/test_size"
    )
