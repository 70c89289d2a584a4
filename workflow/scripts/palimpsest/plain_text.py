"""Files of plain text in UTF-8, and words whose letters are written in two ways."""

import contextlib
import gzip
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from palimpsest.errors import UserError

AS_UTF8 = "save the file as UTF-8"
MOST_NAMED = 3  # characters of a kind that a remark names
REPLACED = "\ufffd"  # what a program writes for bytes that it could not read
ENCODING = "utf-8-sig"  # UTF-8, with or without a mark of the byte order
GZIP = ".gz"  # the ending of a compressed file
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)  # a compressed file is cut off, or is none
AT_ONCE = 2**20  # bytes


def read_text(path: str | Path) -> str:
    """The text of a file, in which each line ends with LF.

    Raises `UserError`, with the line, if the file cannot be read, is not UTF-8 or has bytes of 0.
    """
    return "".join(read_lines(path))


def stripped_lines(path: str | Path) -> list[str]:
    """The lines of a file without the white space around them, but for empty ones.

    Raises `UserError` as `read_text` does.
    """
    return [stripped for line in read_lines(path) if (stripped := line.strip())]


def read_lines(path: str | Path, newline: str | None = None) -> Iterator[str]:
    """Yield the lines of a file, which may be compressed (NAME.gz); `newline` as in `open`.

    Raises `UserError` as `read_text` does.
    """
    number = 0
    try:
        with _opener(path)(path, "rt", encoding=ENCODING, newline=newline) as file:
            for number, line in enumerate(file, 1):
                if "\0" in line:
                    raise UserError(has_zero_bytes(path, line, number))
                yield line
    except UnicodeDecodeError:
        raise UserError(not_utf8(path)) from None
    except DAMAGED as error:
        raise UserError(
            f"{path}:{number + 1}: cannot be uncompressed from here on: {error}; compress the file "
            "again"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error}") from None


def _opener(path: str | Path) -> Callable:
    return gzip.open if Path(path).suffix.lower() == GZIP else open


def _content(path: str | Path) -> bytes:
    """The bytes of a file; of a compressed one that is damaged, those before the damage."""
    parts = []
    with _opener(path)(path, "rb") as file, contextlib.suppress(*DAMAGED):
        while part := file.read1(AT_ONCE):
            parts.append(part)
    return b"".join(parts)


def not_utf8(path: str | Path) -> str:
    """What is wrong with a file that is not UTF-8, with the line of the first such byte."""
    data = _content(path)
    try:
        data.decode(ENCODING)
    except UnicodeDecodeError as error:
        # Another reader's error may have a part of the file only, so lines are counted here.
        line = data.count(b"\n", 0, error.start) + 1
        return f"{path}:{line}: not UTF-8 text (byte 0x{data[error.start]:02x}); {AS_UTF8}"
    return f"{path}: was not UTF-8 text, and has changed since; give the same command again"


def has_zero_bytes(path: str | Path, text: str, first_line: int = 1) -> str:
    """What is wrong with a text that has a byte of 0: its file is in UTF-16, or no text.

    `first_line` is the number of the text's first line in the file.
    """
    line = first_line + text.partition("\0")[0].count("\n")
    return f"{path}:{line}: has a byte of 0, so it is not UTF-8 text; {AS_UTF8}"


def same_when_composed(words: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups of different words that have the same characters and look alike, in order.

    An accented letter can be one character (Unicode's form NFC) or a letter followed by an accent
    (NFD). Each group has two words or more, the shortest first.
    """
    groups = defaultdict(list)
    # A word of ASCII alone is no other word's form.
    words = {word for word in words if not word.isascii()}
    for word in sorted(words, key=lambda word: (len(word), word)):
        groups[unicodedata.normalize("NFC", word)].append(word)
    return sorted(tuple(group) for group in groups.values() if len(group) > 1)


def unusual_characters(
    lines: Sequence[tuple[int, str]], of_spaces: str, of_unseen: str
) -> Iterator[str]:
    """Remarks on white space other than blanks and tabs, and on characters that nobody sees.

    `lines` are the texts of some numbered lines. `of_spaces` and `of_unseen` say what such
    characters do there, such as `is part of a word`.
    """
    found = set().union(*(line for _, line in lines)) - set(" \t\n")
    spaces = {character for character in found if character.isspace()}
    unseen = set(unseen_characters(found - spaces))
    for characters, what in ((spaces, of_spaces), (unseen, of_unseen)):
        first = {c: _first_place(c, lines) for c in characters}
        in_order = sorted(first, key=first.get)
        for character in in_order[:MOST_NAMED]:
            name = unicodedata.name(character, "a control character").lower()
            times = sum(line.count(character) for _, line in lines)
            line = lines[first[character][0]][0]
            yield f"U+{ord(character):04X} ({name}) {what} ({times:,} times, first in line {line})"
        if more := in_order[MOST_NAMED:]:
            yield f"so do {len(more)} other characters"


def unseen_characters(words: Iterable[str]) -> list[str]:
    """The characters of words that nobody sees, or that stand for a lost one; no white space."""
    found = {c for word in words for c in word if not c.isprintable() or c == REPLACED}
    return sorted(c for c in found if not c.isspace())


def _first_place(character: str, lines: Sequence[tuple[int, str]]) -> tuple[int, int]:
    """Where a character stands first: the place of the line, and the place in the line."""
    place = next(place for place, (_, line) in enumerate(lines) if character in line)
    return place, lines[place][1].index(character)


def two_spellings(
    words: Iterable[str], lines: Iterable[tuple[int, Sequence[str]]], noun: str
) -> Iterator[str]:
    """A remark on words that look alike: with composed and with decomposed letters (NFC, NFD).

    `lines` are the words of numbered lines, and `noun` is what the words are called.
    """
    groups = same_when_composed(words)
    if groups:
        first = {word: number for number, found in reversed(list(lines)) for word in found}
        numbers = sorted({first[word] for word in groups[0]})
        where = f"line{'s' if len(numbers) > 1 else ''} {' and '.join(map(str, numbers))}"
        yield (
            f"{len(groups):,} {noun} are written with composed and with decomposed letters, such "
            f"as {unicodedata.normalize('NFC', groups[0][0])!r} in {where}, and count as different "
            f"{noun}; to make them one, save the text in Unicode's normal form NFC"
        )
