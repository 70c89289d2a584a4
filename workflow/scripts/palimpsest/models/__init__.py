"""The models: the table of them, their twins, and one token per terminal symbol."""

from palimpsest.models.table import Model, read_models, resolve

__all__ = ["Model", "read_models", "resolve"]
