"""Objects that hold arrays show their sizes."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest.languages import Grammar
from palimpsest.memorisation import contextual
from palimpsest.short_repr import ShortRepr


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
