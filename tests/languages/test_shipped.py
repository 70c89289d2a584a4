"""The shipped languages, by their names."""

import warnings
from pathlib import Path

import pytest

from palimpsest.errors import UserError
from palimpsest.languages import Grammar, load

FILES = sorted((Path(__file__).parents[2] / "config/languages").glob("*.pcfg"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_language_is_its_file(file):
    loaded = load(file.stem)
    assert loaded.name == file.stem
    assert str(loaded) == str(Grammar.from_file(file))


def test_an_unknown_name_is_refused_with_those_that_there_are():
    with pytest.raises(
        UserError, match=r"unknown language .L44..*did you mean.*known: L1, L2"
    ) as e:
        load("L44")
    assert all(file.stem in str(e.value) for file in FILES)


def test_a_shipped_language_warns_of_nothing():
    """L3 has a rule that is never reached, as the paper prints it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load("L3")
