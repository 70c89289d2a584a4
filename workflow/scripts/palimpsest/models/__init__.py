"""Models: the table of models, their twins, one token per terminal, and trained models."""

from palimpsest.models.sites import Site
from palimpsest.models.table import Model, read_models, resolve
from palimpsest.models.trained import Models, generate

__all__ = ["Model", "Models", "Site", "generate", "read_models", "resolve"]
