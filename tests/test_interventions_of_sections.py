"""Names of interventions: written and read in one place, and found in a registry."""

import re
from collections import Counter

import pytest

from palimpsest.corpora import TextCorpus
from palimpsest.datasets.build import build, tabulate
from palimpsest.datasets.sampling import Sampler
from palimpsest.density.interventions import (
    LEAK_CONDITIONS,
    MOST_COPIES,
    MOST_PARAPHRASES,
    NO_LEAK,
    leak_of,
    leaked,
    production_left_out,
    without_production,
)
from palimpsest.information import interventions as informing
from palimpsest.interventions import Intervention, maker
from palimpsest.lazy_import import named
from palimpsest.memorisation.interventions import (
    target_of,
    with_target,
    without_target,
)
from palimpsest.profiles.interventions import replaced_cohort, stream_without
from palimpsest.sections import INTERVENTIONS


def test_names_are_read_as_they_are_written():
    for rank in (0, 11):
        role = f"s{rank}"
        with_it, without_it = with_target(role), without_target(role)
        assert (with_it, without_it) == (f"with-s{rank}", f"without-s{rank}")
        assert target_of(with_it) == target_of(without_it) == role
    assert target_of("without-0123456789ab") is None


def test_streams_are_read_as_they_are_written():
    assert replaced_cohort("stream") is None
    assert replaced_cohort(stream_without(11)) == 11


@pytest.mark.parametrize("name", ["base", "base-2", "streams", "stream-x", "stream-without-1-2-3"])
def test_other_interventions_are_no_streams(name):
    assert replaced_cohort(name) is None


@pytest.mark.parametrize("leak", LEAK_CONDITIONS)
def test_leaks_are_read_as_they_are_written(leak):
    name = leaked(leak)
    assert name == f"leaked-{leak.n_copies}-{leak.paraphrases}"
    assert leak_of(name) == leak
    assert production_left_out(name) is None


def test_the_conditions_are_a_full_factorial():
    """Copies and paraphrases; the first condition has neither, and the last has most of both."""
    assert len(set(LEAK_CONDITIONS)) == 8
    assert LEAK_CONDITIONS[0] == NO_LEAK == (0, 0)
    assert LEAK_CONDITIONS[-1] == (MOST_COPIES, MOST_PARAPHRASES)


@pytest.mark.parametrize("number", [1, 12])
def test_left_out_productions_are_read_as_they_are_written(number):
    name = without_production(number)
    assert name == f"without-production-{number}"
    assert production_left_out(name) == number
    assert leak_of(name) is None
    assert target_of(name) is None
    assert replaced_cohort(name) is None


@pytest.mark.parametrize(
    "name",
    ["base", "leaked", "leaked-2-0", "leaked-0-4", "leaked-1", "leaked-1-3-0", "xleaked-0-0"],
)
def test_other_variants_leak_nothing(name):
    assert leak_of(name) is None


@pytest.mark.parametrize(
    "name", ["without-production", "without-production-", "without-production-x", "without-s1"]
)
def test_other_variants_leave_no_production_out(name):
    assert production_left_out(name) is None


@pytest.mark.parametrize("variant", INTERVENTIONS, ids=lambda variant: variant.pattern)
def test_what_makes_a_variant_stands_where_its_row_says(variant):
    assert callable(named(variant.made_by))
    assert named(variant.made_by).__doc__


@pytest.mark.parametrize(
    "name",
    [
        "base",
        "dedup",
        "dedup-matched",
        "with-s0",
        "without-s12",
        "original",
        "retain",
        "leaked-0-0",
        "leaked-1-3",
        "without-production-2",
    ],
)
def test_each_name_has_one_maker(name):
    """Two patterns that match one name would hide each other."""
    assert len([each for each in INTERVENTIONS if re.fullmatch(each.pattern, name)]) == 1


def test_an_unknown_variant_is_refused():
    with pytest.raises(
        ValueError, match="unknown intervention 'bas'; the patterns of known ones: base"
    ):
        maker(INTERVENTIONS, "bas")


def backwards(asked):
    """The training strings of base, each from its end to its beginning."""
    train = Counter(tuple(reversed(string)) for string in asked.sampler.train(asked.size))
    return tabulate(asked, train, Counter())


def test_a_section_may_have_a_variant_of_its_own():
    """It is a row and a function; the function gets all that the others get."""
    row = Intervention("backwards", f"{__name__}:backwards")
    sampler = Sampler("notes", TextCorpus("notes", [("a", "b", "c"), ("d", "e")] * 5), seed=0)
    made_by = maker([*INTERVENTIONS, row], "backwards")
    frame = build(sampler, "backwards", 10, 0, predict_end=False, made_by=made_by)
    assert set(frame["text"]) == {"c b a", "e d"}
    assert set(frame["variant"]) == {"backwards"}
    assert frame["count"].sum() == 10


@pytest.mark.parametrize("percent", [0, 7, 100])
def test_markers_and_permuted_answers_are_read_as_they_are_written(percent):
    marked, shuffled = informing.marked(percent), informing.shuffled(percent)
    assert informing.percent_marked(marked) == informing.percent_shuffled(shuffled) == percent
    assert informing.percent_marked(shuffled) is informing.percent_shuffled(marked) is None
