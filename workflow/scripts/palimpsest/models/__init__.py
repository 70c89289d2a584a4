"""The models: the table of them, their twins, one token per terminal symbol, and trained ones."""

from palimpsest.models.table import Model, read_models, resolve
from palimpsest.models.trained import Models, generate

__all__ = ["Model", "Models", "generate", "read_models", "resolve"]
