"""Files that are not UTF-8, in every format that is read, and words written in two ways."""

import gzip

import pytest

from helpers.experiments import message
from palimpsest.corpora import read_corpus
from palimpsest.density.segments import read_texts
from palimpsest.plain_text import not_utf8, same_when_composed

# A name, the function that reads the file, a first line, and a second with a place for bytes
FORMATS = {
    "a grammar": ("a.pcfg", read_corpus, b"S -> 'a' [0.5]\n", b"S -> '%s' [0.5]\n"),
    "a text as a language": ("a.txt", read_corpus, b"one two\n", b"three %s\n"),
    "texts, CSV": ("a.csv", read_texts, b"text\n", b"three %s\n"),
    "texts, TSV": ("a.tsv", read_texts, b"text\n", b"three %s\n"),
    "texts, JSONL": ("a.jsonl", read_texts, b'{"text": "one"}\n', b'{"text": "%s"}\n'),
    "texts, JSON": ("a.json", read_texts, b'[{"text": "one"},\n', b'{"text": "%s"}]\n'),
    "texts, plain": ("b.txt", read_texts, b"one two\n", b"three %s\n"),
}
COMPRESSED = [name for name in FORMATS if name.startswith("texts")]


@pytest.mark.parametrize("n_lines", [1, 9000], ids=["few lines", "many lines"])
@pytest.mark.parametrize("name", [*FORMATS, *(f"{name}, compressed" for name in COMPRESSED)])
def test_the_first_line_that_is_not_utf8_is_named(tmp_path, name, n_lines):
    """Long files are decoded part by part, and the line is still that of the whole file."""
    form = name.removesuffix(", compressed")
    file, read, first, second = FORMATS[form]
    if form == "texts, JSON":
        n_lines = 1
    path, content = tmp_path / file, first * n_lines + second % b"caf\xe9"
    if form != name:
        path, content = tmp_path / f"{file}.gz", gzip.compress(content)
    path.write_bytes(content)
    line = message(lambda: list(read(path)))
    assert f"{path}:{n_lines + 1}: not UTF-8 text (byte 0xe9); save the file as UTF-8" == line


@pytest.mark.parametrize("name", FORMATS)
def test_utf16_without_a_mark_is_refused(tmp_path, name):
    """It is valid UTF-8, with a byte of 0 in each character."""
    file, read, first, second = FORMATS[name]
    path = tmp_path / file
    path.write_text((first + second % b"two").decode(), encoding="utf-16-le")
    assert "a byte of 0, so it is not UTF-8 text" in message(lambda: list(read(path)))


def test_the_line_is_found_in_a_compressed_file_that_is_cut_off_later(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\n\xff\n" + b"three\n" * 9000)[:-20])
    assert not_utf8(path).startswith(f"{path}:2: not UTF-8 text (byte 0xff)")


def test_a_file_that_became_text_since_is_not_blamed(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("text")
    assert not_utf8(path).endswith("has changed since; give the same command again")


def test_only_two_forms_of_one_word_are_a_group():
    """A decomposed word alone is a word like any other."""
    words = ["\u00e9", "e\u0301", "o\u0308", "a", "\u1e69", "s\u0323\u0307", "s\u0307\u0323"]
    assert same_when_composed(words) == [
        ("\u00e9", "e\u0301"),
        ("\u1e69", "s\u0307\u0323", "s\u0323\u0307"),
    ]
