"""Objects that hold arrays show their sizes."""

import inspect
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from palimpsest import density, profiles
from palimpsest.languages import Grammar
from palimpsest.memorisation import contextual
from palimpsest.short_repr import ShortRepr, short_repr
from test_library_page import PUBLIC


@dataclass(frozen=True, repr=False)
class Mixed(ShortRepr):
    name: str
    losses: np.ndarray
    table: pd.DataFrame
    many: tuple
    mean: np.float64
    absent: None = None


def test_values_are_shown_or_counted():
    made = Mixed("a", np.zeros((2, 3)), pd.DataFrame({"x": [1, 2]}), (1,) * 99, np.float64(0.5))
    assert repr(made) == (
        "Mixed(name='a', losses=float64[2, 3], table=2 rows × 1 columns, many=99 items, "
        "mean=np.float64(0.5), absent=None)"
    )


def test_what_a_notebook_shows_is_one_line():
    grammar = Grammar.from_file("config/languages/L3.pcfg")
    assert repr(grammar).startswith("Grammar(name='config/languages/L3.pcfg', start='S', rules=")
    assert len(repr(grammar)) < 120
    losses = np.ones((50, 1000))
    assert "score=float64[50, 1000]" in repr(contextual(losses, losses))


class Both(NamedTuple):
    first: np.ndarray
    second: list

    __repr__ = short_repr


def test_a_named_tuple_is_shown_likewise():
    assert repr(Both(np.arange(3), ["letters"] * 20)) == "Both(first=int64[3], second=20 items)"


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_class_with_arrays_has_a_short_repr(name):
    """Of its package, and those that its functions return."""
    package = import_module(f"palimpsest.{name}")
    public = [getattr(package, one) for one in package.__all__]
    functions = filter(inspect.isfunction, public)
    returned = {str(inspect.signature(one).return_annotation) for one in functions}
    modules = [inspect.getmodule(one) for one in public]
    found = {getattr(module, one) for one in returned for module in modules if hasattr(module, one)}
    for one in {*found, *filter(inspect.isclass, public)}:
        holds = [str(kind) for kind in getattr(one, "__annotations__", {}).values()]
        is_record = is_dataclass(one) or hasattr(one, "_fields")
        if is_record and any("ndarray" in kind or "list" in kind for kind in holds):
            assert one.__repr__ is short_repr, one


def test_panels_and_files_of_vectors(tmp_path):
    panel = profiles.read_panel("config/panels/example.csv")
    assert repr(panel).startswith("Panel(times=float64[")
    assert len(repr(panel)) < 300
    np.save(tmp_path / "a.npy", np.zeros((5, 2), dtype=np.float32))
    assert repr(density.Shards(tmp_path)) == "Shards(1 files, float32[5, 2])"
