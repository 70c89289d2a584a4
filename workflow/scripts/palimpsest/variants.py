"""Variants of a dataset. Only this module composes and parses the names of variants.

A variant is an intervention on the training strings. Some names have a variable part: `with-s0`
names its target string, and a run of leave-one-out names the string that it is trained without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

BASE = "base"  # independent strings
DEDUP = "dedup"  # each distinct string of base once
DEDUP_MATCHED = "dedup-matched"  # as many distinct strings as dedup, from the counterpart
LEAVE_ONE_OUT = "leave-one-out"  # many training strings have a run of their own, without the string
# The same runs once more, and one on the whole training set: with other initial weights and another
# order of the strings.
LEAVE_ONE_OUT_AGAIN = "leave-one-out-again"
WHOLE_AGAIN = "again"  # of these runs, the one on the whole training set
LEAVING_ONE_OUT = (LEAVE_ONE_OUT, LEAVE_ONE_OUT_AGAIN)
ORIGINAL = "original"  # the whole training set; some of its strings are to be forgotten
RETAIN = "retain"  # the training set without the strings to be forgotten
UNLEARNED = "unlearned"  # no dataset: models that were trained on original and forgot
DRAWN = "drawn"  # the strings to forget are drawn at random, and not read from a file
# A single pass over many strings, in macro-batches; and the same without one macro-batch, whose
# place other strings take
STREAM = "stream"
# A stream in which some strings, the probes, have known numbers of copies and positions; and the
# same without the probes, whose place other strings take
DILUTED = "diluted"
DILUTED_WITHOUT = "diluted-without-probes"
QUARTERS = 4  # of a diluted stream: it is measured after each
# Some test strings, or paraphrases of them, take the place of training strings; leaked-0-0 has the
# same test strings, and none of them is leaked
LEAKED = "leaked"
MOST_COPIES, MOST_PARAPHRASES = 1, 3  # of a leaked string
WITHOUT_PRODUCTION = "without-production"  # no training string begins with one of the productions
# A marker at the start agrees with the last symbol in so many percent of the training strings
MARKED = "marked"
# Distinct strings that are trained on for several epochs; and the placebo: strings of which each is
# trained on once, as many in every epoch
REPEATED, FRESH = "repeated", "fresh"
SHUFFLED = "shuffled"  # the last symbols of so many percent of the training strings are permuted
WITH, WITHOUT = "with", "without"  # with or without a target string in the training set

# A stream, or a stream without one macro-batch; and, with a number, a replicate of either
STREAMS = rf"{STREAM}(-{WITHOUT}-(?P<cohort>\d+))?(-(?P<draw>\d+))?"
LEAKS = rf"{LEAKED}-(?P<exact>[0-{MOST_COPIES}])-(?P<paraphrases>[0-{MOST_PARAPHRASES}])"
PRODUCTIONS_LEFT_OUT = rf"{WITHOUT_PRODUCTION}-(?P<production>\d+)"
MARKS = rf"{MARKED}-(?P<percent>\d+)"
SHUFFLES = rf"{SHUFFLED}-(?P<percent>\d+)"
TARGETED = rf"(?P<kind>{WITH}|{WITHOUT})-(?P<role>s\d+)"


@dataclass(frozen=True)
class Variant:
    """A variant, and the function that makes its datasets.

    `pattern` is a regular expression for the names of the variant. `made_by` names a function, such
    as "palimpsest.datasets.plain:dedup", that is imported on first use. The function takes a
    `palimpsest.datasets.build.Asked` and returns a table of kind `strings`.
    """

    pattern: str
    made_by: str


def maker(variants: Iterable[Variant], name: str) -> str:
    """The name of the function that makes the datasets of the variant with this name.

    Raises `ValueError` if no variant has such a name.
    """
    for variant in variants:
        if re.fullmatch(variant.pattern, name):
            return variant.made_by
    known = ", ".join(variant.pattern for variant in variants)
    raise ValueError(f"unknown variant {name!r}; the patterns of known ones: {known}")


def dataset_variant(name: str) -> str:
    """The variant whose dataset a run reads; leave-one-out reads base and leaves strings out."""
    if name in LEAVING_ONE_OUT:
        return BASE
    if stream_draw(name) is not None:
        return name.rpartition("-")[0]
    return name


# Target strings


def with_target(role: str) -> str:
    """The variant with a target string; roles are s0, s1, ..."""
    return f"{WITH}-{role}"


def without_target(role: str) -> str:
    """The variant without a target string."""
    return f"{WITHOUT}-{role}"


def target_of(name: str) -> str | None:
    """The role of the target that a variant is with or without; None for another variant."""
    found = re.fullmatch(TARGETED, name)
    return found["role"] if found else None


def target_rank(name: str) -> int:
    """The rank of the target that a variant is with or without: 0 for with-s0."""
    return int(target_of(name)[1:])


def is_with_target(name: str) -> bool:
    """Whether a variant has a target string among its training strings."""
    found = re.fullmatch(TARGETED, name)
    return found is not None and found["kind"] == WITH


# Runs of leave-one-out


def without_string(string_id: str) -> str:
    """The variant of a run that is trained without one string."""
    return f"{WITHOUT}-{string_id}"


def string_left_out(name: str) -> str:
    """The string that a run is trained without, from the run's variant."""
    return name.removeprefix(f"{WITHOUT}-")


# Streams


def stream_without(cohort: int) -> str:
    """The variant of a stream in which other strings take the place of one macro-batch."""
    return f"{STREAM}-{WITHOUT}-{cohort}"


def replaced_cohort(name: str) -> int | None:
    """The number of the macro-batch that a stream is without; None for the whole stream."""
    found = re.fullmatch(STREAMS, name)
    return int(found["cohort"]) if found and found["cohort"] else None


def stream_draw(name: str) -> int | None:
    """The number of a replicate of a stream; None for any other variant.

    For example, 2 for stream-2 and for stream-without-5-2.
    """
    found = re.fullmatch(STREAMS, name)
    return int(found["draw"]) if found and found["draw"] else None


def trained_apart(name: str) -> str:
    """What a twin's jobs are told apart by: "" for most variants, or a word for a group of them."""
    if (leak := leak_of(name)) is not None:
        return leaked_times(leak.exact)
    if production_left_out(name) is not None:
        return WITHOUT_PRODUCTION
    if percent_marked(name) is not None:
        return MARKED
    if percent_shuffled(name) is not None:
        return SHUFFLED
    if not is_stream(name):
        return ""
    return STREAM if stream_draw(name) is None else "replicates"


def is_stream(name: str) -> bool:
    """Whether the runs of a variant see each training string once, in the order of the cohorts."""
    return re.fullmatch(STREAMS, name) is not None or is_diluted(name) or name == FRESH


def is_diluted(name: str) -> bool:
    """Whether a variant is a diluted stream, with its probes or without them."""
    return name in (DILUTED, DILUTED_WITHOUT)


def measured_every(name: str, cohorts: int) -> int:
    """The number of macro-batches of a stream between two measurements.

    A profile needs a measurement after every macro-batch, and a replicate only the last one.
    """
    if is_diluted(name):
        return cohorts // QUARTERS
    return 1 if stream_draw(name) is None else cohorts


# Leakage


class Leak(NamedTuple):
    """How often each leaked string is among the training strings: its copies and paraphrases."""

    exact: int
    paraphrases: int


NO_LEAK = Leak(0, 0)
LEAK_CONDITIONS = tuple(
    Leak(exact, paraphrases)
    for exact in range(MOST_COPIES + 1)
    for paraphrases in range(MOST_PARAPHRASES + 1)
)


def leaked(leak: Leak) -> str:
    """The variant of one condition of the factorial of leakage, such as leaked-1-3."""
    return f"{LEAKED}-{leak.exact}-{leak.paraphrases}"


def leaked_times(exact: int) -> str:
    """What variants with equally many exact copies of the leaked strings share, as leaked-1."""
    return f"{LEAKED}-{exact}"


def leak_of(name: str) -> Leak | None:
    """The condition from the variant's name; None for any other variant."""
    found = re.fullmatch(LEAKS, name)
    return Leak(int(found["exact"]), int(found["paraphrases"])) if found else None


def without_production(number: int) -> str:
    """The variant without the strings of one production, numbered from 1."""
    return f"{WITHOUT_PRODUCTION}-{number}"


def production_left_out(name: str) -> int | None:
    """The number of the production that a variant is without; None for any other variant."""
    found = re.fullmatch(PRODUCTIONS_LEFT_OUT, name)
    return int(found["production"]) if found else None


# Shortcuts and labels to learn by heart


def marked(percent: int) -> str:
    """The variant whose marker agrees with the last symbol in this percent of training strings."""
    return f"{MARKED}-{percent}"


def shuffled(percent: int) -> str:
    """The variant in which the last symbols of this percent of training strings are permuted."""
    return f"{SHUFFLED}-{percent}"


def percent_marked(name: str) -> int | None:
    """The percent from the name of a variant with markers; None for any other variant."""
    return _percent(MARKS, name)


def percent_shuffled(name: str) -> int | None:
    """The percent from the name of a variant with permuted symbols; None for any other variant."""
    return _percent(SHUFFLES, name)


def _percent(pattern: str, name: str) -> int | None:
    found = re.fullmatch(pattern, name)
    return int(found["percent"]) if found else None


# Replicates


def of_replicate(name: str, replicate: int) -> str:
    """The variant of one replicate, numbered from 0: the third replicate of base is base-2."""
    return f"{name}-{replicate}"


def replicate_of(name: str, variant: str) -> int | None:
    """The number of a replicate from its name; None if it is not a replicate of `variant`.

    For example, base-2 is replicate 2 of base.
    """
    start, _, number = name.rpartition("-")
    return int(number) if start == variant and number.isdecimal() else None
