"""Variants of a dataset. Their names are written and read here, and nowhere else.

A variant is an intervention on the training strings. Some names have a part that differs: the
target string of `with-s0`, or the string that a run of leave-one-out is trained without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

BASE = "base"  # independent strings
DEDUP = "dedup"  # each distinct string of base once
DEDUP_MATCHED = "dedup-matched"  # as many distinct strings of the high-entropy counterpart
LEAVE_ONE_OUT = "leave-one-out"  # every training string has a run of its own, without that string
ORIGINAL = "original"  # all of a train set, some of whose strings are to be forgotten
RETAIN = "retain"  # the same without these
UNLEARNED = "unlearned"  # no dataset: models that were trained on original and forgot
DRAWN = "drawn"  # what is to be forgotten is drawn at random, and not read from a file
WITH, WITHOUT = "with", "without"  # a target string is trained on, or is not

TARGETED = rf"(?P<kind>{WITH}|{WITHOUT})-(?P<role>s\d+)"


@dataclass(frozen=True)
class Variant:
    """A variant, and what makes its datasets.

    `pattern` is a regular expression of its names. `made_by` names a function
    ("palimpsest.datasets.plain:dedup") from a `palimpsest.datasets.build.Asked` to a table of kind
    `strings`; it is imported when it is used.
    """

    pattern: str
    made_by: str


def maker(variants: Iterable[Variant], name: str) -> str:
    """What makes the datasets of a variant, by the variant's name.

    Raises `ValueError` if no variant has such a name.
    """
    for variant in variants:
        if re.fullmatch(variant.pattern, name):
            return variant.made_by
    known = ", ".join(variant.pattern for variant in variants)
    raise ValueError(f"unknown variant {name!r}; the patterns of known ones: {known}")


def dataset_variant(name: str) -> str:
    """The variant whose dataset is read; leave-one-out leaves strings of base out."""
    return BASE if name == LEAVE_ONE_OUT else name


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


# Replicates


def of_replicate(name: str, replicate: int) -> str:
    """The variant of one of many trainings on a dataset: the third of base is base-2."""
    return f"{name}-{replicate}"


def replicate_of(name: str, variant: str) -> int | None:
    """The number of a training on a variant, from its own variant; None if it is of another."""
    start, _, number = name.rpartition("-")
    return int(number) if start == variant and number.isdecimal() else None
