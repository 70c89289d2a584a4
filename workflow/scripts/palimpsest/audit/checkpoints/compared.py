"""A set of checkpoints with the scores of records under each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Compared:
    """The checkpoints of a set: `scores` by name, in the order of the roles, and `role` of each.

    All tables of scores have the same records in the same order.
    """

    name: str
    language: str
    scores: Mapping[str, pd.DataFrame]
    role: Mapping[str, str]

    def of_role(self, role: str) -> list[str]:
        return [name for name in self.scores if self.role[name] == role]

    @cached_property
    def about(self) -> pd.DataFrame:
        """The names, groups and splits of the records."""
        return next(iter(self.scores.values()))[["id", "group", "split"]]

    def is_of(self, split: str) -> np.ndarray:
        """bool[records]"""
        return (self.about["split"] == split).to_numpy()

    @property
    def group(self) -> np.ndarray:
        return self.about["group"].to_numpy()

    def values(self, names: Sequence[str], column: str) -> np.ndarray:
        """float[models, records]"""
        return np.array([self.scores[name][column].to_numpy() for name in names])
