"""Names of variants: written and read in one place, and found in a registry."""

import re
from collections import Counter

import pytest

from palimpsest import variants
from palimpsest.corpora import TextCorpus
from palimpsest.datasets.build import build, tabulate
from palimpsest.datasets.sampling import Sampler
from palimpsest.lazy_import import named
from palimpsest.sections import VARIANTS
from palimpsest.variants import Variant, maker


def test_names_are_read_as_they_are_written():
    for rank in (0, 11):
        role = f"s{rank}"
        with_it, without_it = variants.with_target(role), variants.without_target(role)
        assert (with_it, without_it) == (f"with-s{rank}", f"without-s{rank}")
        assert variants.target_of(with_it) == variants.target_of(without_it) == role
        assert variants.target_rank(with_it) == rank
        assert variants.is_with_target(with_it)
        assert not variants.is_with_target(without_it)
    name = variants.without_string("0123456789ab")
    assert variants.string_left_out(name) == "0123456789ab"
    assert variants.target_of(name) is None
    assert variants.replicate_of(variants.of_replicate("retain", 12), "retain") == 12


@pytest.mark.parametrize("name", ["original-3", "retain", "retain-", "retain-x", "retain-1-2"])
def test_a_replicate_of_another_variant_is_none(name):
    assert variants.replicate_of(name, "retain") is None


@pytest.mark.parametrize(
    ("name", "cohort", "draw", "dataset", "apart"),
    [
        ("stream", None, None, "stream", "stream"),
        ("stream-2", None, 2, "stream", "replicates"),
        ("stream-without-11", 11, None, "stream-without-11", "stream"),
        ("stream-without-11-0", 11, 0, "stream-without-11", "replicates"),
    ],
)
def test_streams_are_read_as_they_are_written(name, cohort, draw, dataset, apart):
    assert variants.is_stream(name)
    assert variants.replaced_cohort(name) == cohort
    assert variants.stream_draw(name) == draw
    assert variants.dataset_variant(name) == dataset
    assert variants.trained_apart(name) == apart


@pytest.mark.parametrize("name", ["base", "base-2", "streams", "stream-x", "stream-without-1-2-3"])
def test_other_variants_are_no_streams(name):
    assert not variants.is_stream(name)
    assert variants.stream_draw(name) is variants.replaced_cohort(name) is None
    assert variants.trained_apart(name) == ""


@pytest.mark.parametrize("leak", variants.LEAK_CONDITIONS)
def test_leaks_are_read_as_they_are_written(leak):
    name = variants.leaked(leak)
    assert name == f"leaked-{leak.exact}-{leak.paraphrases}"
    assert variants.leak_of(name) == leak
    assert variants.dataset_variant(name) == name
    assert variants.production_left_out(name) is None
    assert not variants.is_stream(name)
    assert variants.trained_apart(name) == variants.leaked_times(leak.exact)


def test_the_conditions_are_a_full_factorial():
    """Copies and paraphrases; the first condition has neither, and the last has most of both."""
    assert len(set(variants.LEAK_CONDITIONS)) == 8
    assert variants.LEAK_CONDITIONS[0] == variants.NO_LEAK == (0, 0)
    assert variants.LEAK_CONDITIONS[-1] == (variants.MOST_COPIES, variants.MOST_PARAPHRASES)


@pytest.mark.parametrize("number", [1, 12])
def test_left_out_productions_are_read_as_they_are_written(number):
    name = variants.without_production(number)
    assert name == f"without-production-{number}"
    assert variants.production_left_out(name) == number
    assert variants.leak_of(name) is None
    assert variants.dataset_variant(name) == name
    assert variants.trained_apart(name) == "without-production"
    assert variants.target_of(name) is None
    assert variants.replaced_cohort(name) is None


@pytest.mark.parametrize(
    "name",
    ["base", "leaked", "leaked-2-0", "leaked-0-4", "leaked-1", "leaked-1-3-0", "xleaked-0-0"],
)
def test_other_variants_leak_nothing(name):
    assert variants.leak_of(name) is None
    assert variants.trained_apart(name) == ""


@pytest.mark.parametrize(
    "name", ["without-production", "without-production-", "without-production-x", "without-s1"]
)
def test_other_variants_leave_no_production_out(name):
    assert variants.production_left_out(name) is None
    assert variants.trained_apart(name) == ""


def test_leave_one_out_reads_base():
    assert variants.dataset_variant("leave-one-out") == "base"
    assert variants.dataset_variant("dedup") == "dedup"


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.pattern)
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
    assert len([each for each in VARIANTS if re.fullmatch(each.pattern, name)]) == 1


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match="unknown variant 'bas'; the patterns of known ones: base"):
        maker(VARIANTS, "bas")


def backwards(asked):
    """The training strings of base, each from its end to its beginning."""
    train = Counter(tuple(reversed(string)) for string in asked.sampler.train(asked.size))
    return tabulate(asked, train, Counter())


def test_a_section_may_have_a_variant_of_its_own():
    """It is a row and a function; the function gets all that the others get."""
    row = Variant("backwards", f"{__name__}:backwards")
    sampler = Sampler("notes", TextCorpus("notes", [("a", "b", "c"), ("d", "e")] * 5), seed=0)
    made_by = maker([*VARIANTS, row], "backwards")
    frame = build(sampler, "backwards", 10, 0, predict_end=False, made_by=made_by)
    assert set(frame["text"]) == {"c b a", "e d"}
    assert set(frame["variant"]) == {"backwards"}
    assert frame["count"].sum() == 10


@pytest.mark.parametrize("percent", [0, 7, 100])
def test_markers_and_permuted_answers_are_read_as_they_are_written(percent):
    marked, shuffled = variants.marked(percent), variants.shuffled(percent)
    assert variants.percent_marked(marked) == variants.percent_shuffled(shuffled) == percent
    assert variants.percent_marked(shuffled) is variants.percent_shuffled(marked) is None
    assert variants.trained_apart(marked) == "marked"
    assert variants.trained_apart(shuffled) == "shuffled"
