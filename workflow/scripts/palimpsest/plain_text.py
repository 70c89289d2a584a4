"""Files of plain text in UTF-8, and words whose letters are written in two ways."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from palimpsest.errors import UserError

AS_UTF8 = "save the file as UTF-8"
ENCODING = "utf-8-sig"  # UTF-8, with or without a mark of the byte order


def read_text(path: str | Path) -> str:
    """The text of a file, in which each line ends with LF.

    Raises `UserError`, with the line, if the file cannot be read, is not UTF-8 or has bytes of 0.
    """
    try:
        text = Path(path).read_text(encoding=ENCODING)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    except UnicodeDecodeError:
        raise UserError(not_utf8(path)) from None
    if "\0" in text:
        refuse_zero_bytes(path, text.count("\n", 0, text.index("\0")) + 1)
    return text


def not_utf8(path: str | Path) -> str:
    """What is wrong with a file that is not UTF-8, with the line of the first such byte."""
    data = Path(path).read_bytes()
    try:
        data.decode(ENCODING)
    except UnicodeDecodeError as error:
        # Another reader's error may have a part of the file only, so lines are counted here.
        line = data.count(b"\n", 0, error.start) + 1
        return f"{path}:{line}: not UTF-8 text (byte 0x{data[error.start]:02x}); {AS_UTF8}"
    return f"{path}: was not UTF-8 text, and has changed since; give the same command again"


def refuse_zero_bytes(path: str | Path, line: int) -> None:
    """Raise `UserError`: such a line is of a file in UTF-16, or of no text."""
    raise UserError(f"{path}:{line}: has a byte of 0, so it is not UTF-8 text; {AS_UTF8}")


def same_when_composed(words: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups of different words that have the same characters and look alike, in order.

    An accented letter can be one character (Unicode's form NFC) or a letter with an accent behind
    it (NFD). Each group has two words or more, the shortest first.
    """
    groups = defaultdict(list)
    # A word of ASCII alone is no other word's form.
    words = {word for word in words if not word.isascii()}
    for word in sorted(words, key=lambda word: (len(word), word)):
        groups[unicodedata.normalize("NFC", word)].append(word)
    return sorted(tuple(group) for group in groups.values() if len(group) > 1)
