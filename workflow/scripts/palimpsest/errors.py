"""Errors that a user can mend: one line with place, error, allowed values and remedy."""

import contextlib
import difflib
import os
import sys
from collections.abc import Iterable, Iterator

SHORT, MUCH = 3, 0.15  # letters of a word, and a difference of its likeness to others
WRITE_REMEDY = "make room or allow writing there, and give the same command again"


class UserError(Exception):
    """An input of the user is wrong; the message is one line that names the error and the remedy.

    Entry points print the message and exit with status 1, without a traceback.
    """

    def __init__(self, message: str):
        super().__init__(_printable(" ".join(message.split())))


def _printable(text: str) -> str:
    """A text with unprintable characters escaped, such as those that control a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Notice(UserWarning):
    """A warning that a user should see at once: one line. Jobs print it, and log it."""

    def __init__(self, message: str):
        super().__init__(_printable(" ".join(message.split())))


class OutOfMemory(UserError):
    """A device ran out of memory; the next attempt takes fewer strings per forward pass."""


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """End the process with one line and status 1 for an error that a user can mend."""
    try:
        yield
    except UserError as error:
        sys.exit(f"error: {error}")


def searched(path: str) -> str:
    """A hint where a relative path that was not found was looked for; nothing for any other."""
    if os.path.isabs(path):
        return ""
    return f"; paths begin at the folder where Snakemake runs, {os.getcwd()}"


def nearest(word: str, known: Iterable[str], cutoff: float | None = None) -> str:
    """A hint `` (did you mean 'L8'?)`` naming the known word closest to `word`, or nothing."""
    if cutoff is None:
        cutoff = 0.5 if len(str(word)) <= SHORT else 0.6  # L9 and L8 have half of their letters
    close = near_names(str(word), known, 1, cutoff)
    return f" (did you mean {close[0]!r}?)" if close else ""


def near_names(word: str, known: Iterable[str], most: int, cutoff: float) -> list[str]:
    """The known words most similar to a word, ignoring case; `cutoff` as in `difflib`.

    Words that are much less similar than the first are left out.
    """
    by_small = {name.casefold(): name for name in known}
    small = word.casefold()
    found = difflib.get_close_matches(small, by_small, n=most, cutoff=cutoff)
    likeness = [difflib.SequenceMatcher(None, one, small).ratio() for one in found]
    near = zip(found, likeness, strict=True)
    return [by_small[one] for one, own in near if own >= likeness[0] - MUCH]
