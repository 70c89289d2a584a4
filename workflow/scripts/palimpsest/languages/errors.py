"""What can be wrong, or odd, in a grammar file."""

from palimpsest.errors import UserError


class GrammarError(UserError, ValueError):
    """A grammar that cannot be used: one line, `FILE:LINE: what is wrong; what is allowed`."""


class GrammarWarning(UserWarning):
    """A grammar that can be used but may not say what its author meant; worded like an error."""
