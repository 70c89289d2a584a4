"""Inputs of users, mutated: each is read as before, or refused in one true line.

`tests/benchmarks/bench_mutations.py` tries a thousand of them.
"""

import random

import pytest

from helpers.mutations.families import FAMILIES
from helpers.mutations.judge import (
    NEITHER,
    REFUSED,
    SAME,
    Family,
    Mutation,
    fault_of_line,
    judged,
    verdict,
)
from palimpsest.errors import UserError

SEED = 1
SIZES = {"configurations": 20, "panels": 120, "text corpora": 60, "grammars": 40}
SIZES["density texts"] = 80


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_mutation_is_read_as_before_or_refused_in_one_true_line(family):
    tally = judged(family, SIZES[family.name], SEED)
    assert len(tally.verdicts) == SIZES[family.name]
    assert tally.count(SAME) > 0.1 * len(tally.verdicts)
    assert tally.count(REFUSED) > 0.1 * len(tally.verdicts)
    assert not [f"{found.mutation.what}: {found.why}" for found in tally.faults]


# The judge itself

LINE = "my.csv: row 3: time 'soon' is not a number; correct it"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (LINE, ""),
        (LINE.replace("row 3", "row 4"), "does not name"),
        (LINE.replace("'soon'", "np.str_('soon')"), "speaks of the implementation"),
        (LINE.partition(";")[0], "no remedy"),
        (LINE + "\nTraceback", "not one line"),
    ],
)
def test_the_judge_of_a_refusal(line, fault):
    found = fault_of_line(line, [r"my\.csv", r"row 3\b"])
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


def read(path) -> bytes:
    """A reader of text files, with each kind of fault."""
    content = path.read_bytes()
    if content == b"crash":
        raise KeyError("x")
    if content == b"write":
        path.with_name("left").touch()
    if content == b"refused":
        raise UserError(f"{path}: is refused; mend it")
    return content.strip()


@pytest.mark.parametrize(
    ("content", "expected", "must_be_read", "outcome"),
    [
        (b" a ", b"a", True, SAME),
        (b"a", b"b", True, NEITHER),
        (b"a", None, False, NEITHER),
        (b"refused", None, False, REFUSED),
        (b"refused", b"refused", False, REFUSED),
        (b"refused", b"refused", True, NEITHER),
        (b"crash", None, False, NEITHER),
        (b"write", b"write", False, NEITHER),
    ],
)
def test_the_judge_of_a_mutation(content, expected, must_be_read, outcome):
    family = Family("texts", read, lambda chance: None)
    mutation = Mutation("", {"a.txt": content}, expected, (r"a\.txt",), must_be_read)
    assert verdict(family, mutation).outcome == outcome


def test_mutations_are_the_same_for_a_seed():
    for family in FAMILIES:
        assert family.draw(random.Random(SEED)) == family.draw(random.Random(SEED))
