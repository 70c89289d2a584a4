"""Mutations of text corpora (one string per line) and of files of documents (JSONL, Parquet)."""

import io
import json
import random
import re

import pyarrow as pa
import pyarrow.parquet as pq

from helpers.mutations.judge import Mutation

LINES = ["the cat sat", "el niño come", "猫 が 好き", "NA nan 01", "a b c d", "x"]
CORPUS = json.dumps([line.split() for line in LINES]).encode()
DOCUMENTS = [
    "one two three",
    'quotes " and \\ slashes',
    "ñandú 猫 🙂",
    "a\nline\tbreak",
    "NA",
    "01",
]
TEXTS = json.dumps(DOCUMENTS).encode()


def draw_corpus(chance: random.Random) -> Mutation:
    """A mutation of a text corpus: half of them keep the strings."""
    if chance.random() < 0.5:
        return _corpus_in_another_layout(chance)
    whole = "\n".join(LINES).encode()
    name, content, what = chance.choice(
        [
            ("text.txt", b"", "empty"),
            ("text.txt", b" \n\t\n\r\n", "blank"),
            ("text.txt", b"\xef\xbb\xbf", "a mark alone"),
            ("text.txt", "\n".join(LINES).encode("utf-16"), "utf-16"),
            ("text.txt", "el niño".encode("latin-1"), "latin-1"),
            ("text.txt", whole + b"\n\xff\xfe\n", "a line that is not UTF-8"),
            ("text.txt", whole[: whole.index("ñ".encode()) + 1], "cut within a letter"),
            ("text.txt", whole + b"\na\0b\n", "a zero byte"),
            ("text.text", whole, "another ending"),
            ("text.TXT", whole, "an ending in capitals"),
            ("text", whole, "no ending"),
        ]
    )
    return Mutation(f"text: {what}", {name: content}, None, (re.escape(name),))


def _corpus_in_another_layout(chance: random.Random) -> Mutation:
    between, end = chance.choice([" ", "  ", "\t", " \t "]), chance.choice(["\n", "\r\n"])
    lines = []
    for line in LINES:
        lines.append(between.join(line.split()) + chance.choice(["", " ", "\t"]))
        lines += [""] * chance.choice([0, 0, 1, 2])
    text = chance.choice(["", "\ufeff"]) + end.join(lines) + chance.choice(["", end, end * 3])
    what = f"layout: {between!r} {end!r} {text[:1]!r}"
    return Mutation(what, {"text.txt": text.encode()}, CORPUS, must_be_read=True)


def draw_documents(chance: random.Random) -> Mutation:
    """A mutation of a file of documents: half of them keep the texts."""
    if chance.random() < 0.5:
        return _documents_in_another_notation(chance)
    return chance.choice([_damaged_line, _damaged_documents])(chance)


def _documents_in_another_notation(chance: random.Random) -> Mutation:
    if chance.random() < 0.4:
        kind = chance.choice(
            [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
        )
        return Mutation(
            f"Parquet: {kind}",
            {"docs.parquet": _parquet(pa.array(DOCUMENTS, kind))},
            TEXTS,
            must_be_read=True,
        )
    end = chance.choice(["\n", "\r\n"])
    lines = []
    for number, text in enumerate(DOCUMENTS):
        others = chance.choice([{}, {"id": number}, {"id": number, "source": {"a": [1, None]}}])
        fields = chance.choice([{"text": text, **others}, {**others, "text": text}])
        escaped = chance.random() < 0.5
        lines.append(json.dumps(fields, ensure_ascii=escaped) + chance.choice(["", " "]))
        lines += [""] * chance.choice([0, 0, 1])
    content = chance.choice(["", "\ufeff"]) + end.join(lines) + chance.choice(["", end])
    return Mutation("JSONL: layout", {"docs.jsonl": content.encode()}, TEXTS, must_be_read=True)


def _damaged_line(chance: random.Random) -> Mutation:
    lines = [json.dumps({"text": text}) for text in DOCUMENTS]
    place = chance.randrange(len(lines))
    damage = chance.choice(
        [
            '{"text": null}',
            '{"text": 7}',
            '{"text": NaN}',
            '{"text": true}',
            '{"text": ["a"]}',
            '{"text": {"a": 1}}',
            '{"text": ""}',
            '{"text": " \\n "}',
            '{"texts": "a"}',
            '{"Text": "a"}',
            "{}",
            "[]",
            '"a"',
            "7",
            "null",
            '{"text": "a"',
            "{'text': 'a'}",
            '{"text": "a"} {"text": "b"}',
            '{"text": "a", "text": "b"}',
            '{"text": "\\ud800"}',
            "[" * 5000,
        ]
    )
    lines[place] = damage
    content = "\n".join(lines).encode()
    named = (rf"docs\.jsonl:{place + 1}\b",)
    return Mutation(f"line: {damage[:30]}", {"docs.jsonl": content}, None, named)


def _damaged_documents(chance: random.Random) -> Mutation:
    whole = _parquet(pa.array(DOCUMENTS))
    name, content, what = chance.choice(
        [
            ("docs.jsonl", b"", "empty"),
            ("docs.jsonl", b"\n \n", "blank"),
            ("docs.jsonl", '{"text": "niño"}'.encode("latin-1"), "latin-1"),
            ("docs.jsonl", '{"text": "a"}'.encode("utf-16"), "utf-16"),
            ("docs.jsonl", whole, "Parquet named JSONL"),
            ("docs.jsonl", json.dumps([{"text": "a"}], indent=1).encode(), "JSON on many lines"),
            ("docs.parquet", whole[: chance.randrange(1, len(whole) - 1)], "cut off"),
            ("docs.parquet", b"", "empty Parquet"),
            ("docs.parquet", b'{"text": "a"}\n', "JSONL named Parquet"),
            ("docs.parquet", _parquet(pa.array([1, 2])), "numbers"),
            ("docs.parquet", _parquet(pa.array(["a", None])), "a null"),
            ("docs.parquet", _parquet(pa.array([["a"], ["b"]])), "lists"),
            ("docs.parquet", _parquet(pa.array([b"a", b"b"])), "bytes"),
            ("docs.parquet", _parquet(pa.array(DOCUMENTS), "texts"), "another column"),
            ("docs.parquet", _parquet(pa.array([], pa.string())), "no rows"),
        ]
    )
    return Mutation(f"documents: {what}", {name: content}, None, (re.escape(name),))


def _parquet(values: pa.Array, name: str = "text") -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({name: values}), file)
    return file.getvalue()
