"""The error and the warning for grammar files."""

from __future__ import annotations

from palimpsest.errors import UserError


class GrammarError(UserError, ValueError):
    """A grammar that cannot be used: one line, `FILE:LINE: what is wrong; what is allowed`."""


class GrammarWarning(UserWarning):
    """A usable grammar that may not be what its author meant; the format is that of an error."""
