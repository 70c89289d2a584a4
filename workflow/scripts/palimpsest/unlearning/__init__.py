"""Unlearning: how far unlearned models can be told from models retrained without the forget set."""

from palimpsest.unlearning.quality import forgetting_quality
from palimpsest.unlearning.thresholds import epsilon

__all__ = ["epsilon", "forgetting_quality"]
