"""Datasets: a training multiset, a test set, and the variants of the training multiset."""

from palimpsest.datasets.build import build
from palimpsest.datasets.strings import string_id, target_strings

__all__ = ["build", "string_id", "target_strings"]
