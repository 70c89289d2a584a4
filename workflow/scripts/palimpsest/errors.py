"""Errors that a user can act on: one line that says where, what, what is allowed, the remedy."""

import difflib
from collections.abc import Iterable

WRITE_REMEDY = "make room or allow writing there, and give the same command again"


class UserError(Exception):
    """Something the user gave is wrong; the message is a single line that names it and the remedy.

    Entry points print the message and exit with status 1; nobody is shown a traceback for it.
    """

    def __init__(self, message: str):
        super().__init__(_printable(" ".join(message.split())))


def _printable(text: str) -> str:
    """A text in which what would steer a terminal, or turn the line around, is spelt out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class OutOfMemory(UserError):
    """A device ran out of memory, and the next attempt will take less at once."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint `` (did you mean 'L8'?)`` naming the known word closest to `word`, or nothing."""
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""
