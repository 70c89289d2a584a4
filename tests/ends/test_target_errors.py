"""Near names of a target that no rule makes."""

from types import SimpleNamespace

import pytest

from palimpsest.ends.ending import Ending
from palimpsest.ends.targets import unknown_target
from palimpsest.errors import nearest

KNOWN = ["all", "tradeoff", "memorisation", "report", "stale_state", "results/report.html"]
KNOWN += [f"results/figures/tradeoff-L{n}.svg" for n in range(1, 9)]


@pytest.mark.parametrize(
    ("target", "nearest"),
    [
        ("tradeof", "tradeoff"),
        ("memorization", "memorisation"),
        ("Report", "report"),
        ("TRADEOFF", "tradeoff"),
        ("stale-state", "stale_state"),
        ("results/reprot.html", "results/report.html"),
        ("results/figures/tradeof-L1.svg", "results/figures/tradeoff-L1.svg"),
        ("results/figure/tradeoff-L1.svg", "results/figures/tradeoff-L1.svg"),
    ],
)
def test_the_nearest_name_is_the_first(target, nearest):
    """A word is compared with words, a path with paths."""
    line = unknown_target(target, KNOWN)
    assert line.startswith(f"{target}: no rule makes this target (did you mean '{nearest}'")
    assert line.endswith("; snakemake --list-target-rules lists the names of targets")


@pytest.mark.parametrize("target", ["quux", "x/y/z", "."])
def test_without_a_near_name_none_is_offered(target):
    """A hint that is no hint would mislead."""
    assert "did you mean" not in unknown_target(target, KNOWN)


@pytest.mark.parametrize("name", ["诗", "mo by", "naïve", "a~b"])
def test_a_name_that_no_rule_can_have(name):
    """The line says which characters a name may have."""
    line = unknown_target(f"results/languages/{name}/summary.json", KNOWN)
    assert "names have only letters from a to z, digits, '.', '_' and '-'" in line


def test_a_rule_whose_variants_are_of_no_model_has_no_pattern():
    """With `models: []`, its output is empty."""
    made = [
        SimpleNamespace(name="train", output=["results/{model}/trace"], has_wildcards=lambda: True),
        SimpleNamespace(name="streams", output=[], has_wildcards=lambda: True),
        SimpleNamespace(name="report", output=["results/report"], has_wildcards=lambda: False),
    ]
    ending = Ending(None, SimpleNamespace(rules=made))
    assert ending.patterns() == {"train": "results/{model}/trace"}


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("recods", ["records", "thresholds"], " (did you mean 'records'?)"),
        ("figure", ["figures", "figured", "plan"], " (did you mean 'figures' or 'figured'?)"),
    ],
)
def test_only_the_nearest_names_are_named(word, known, hint):
    assert hint in unknown_target(word, known)


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("mien", ["kookmin", "npo"], ""),
        ("mien", ["kookmin", "mine"], " (did you mean 'mine'?)"),
        ("L9", ["L8", "people"], " (did you mean 'L8'?)"),
    ],
)
def test_a_hint_is_a_near_name(word, known, hint):
    assert nearest(word, known) == hint
