"""Numbers within bounds, and how a value that is not allowed is named."""

import numpy as np
import pytest

from helpers.experiments import message
from palimpsest.allowed import Number, checked_number, checked_word

RATE = Number(above=0, most=1)
COUNT = Number(least=1, below=10_000_000, whole=True)


@pytest.mark.parametrize(
    ("allowed", "value", "expected"),
    [(RATE, 1, 1.0), (RATE, np.float32(0.5), 0.5), (COUNT, np.int64(3), 3), (COUNT, 1, 1)],
)
def test_numbers_become_pythons_own(allowed, value, expected):
    found = checked_number("rate", value, allowed)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("value", [0, 1.5, np.nan, np.inf, 10**400, True, None, "0.5", 1j, [0.5]])
def test_what_is_not_allowed_is_named(value):
    said = message(lambda: checked_number("rate", value, RATE, "; lower it"))
    assert said.startswith("rate: is ")
    assert said.endswith(" and must be a number above 0 and at most 1; lower it")
    assert len(said) < 130


def test_all_digits_of_a_whole_bound_are_said():
    said = message(lambda: checked_number("n", 1.0, COUNT))
    assert said == "n: is 1.0 and must be a whole number at least 1 and below 10000000"


def test_a_word_is_one_of_those_that_are_known():
    assert checked_word("index", "ivf", ("exact", "ivf")) == "ivf"
    said = message(lambda: checked_word("index", "flat", ("exact", "ivf")))
    assert said == "index: 'flat' is unknown; choose from exact, ivf"
