"""Records that a user brings: texts with names, groups, and whether a model was trained on them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from palimpsest import tables
from palimpsest.allowed import WHOLE
from palimpsest.arguments import FRAME, FilePath, Made, takes
from palimpsest.corpora import questions
from palimpsest.corpora.kinds import CORPUS
from palimpsest.corpora.record_forms import Form, columns_of, form_of
from palimpsest.errors import UserError, nearest
from palimpsest.making import makes
from palimpsest.short_repr import ShortRepr
from palimpsest.tables import saved_folders, user_files
from palimpsest.tables.kinds import LIST, NAME, NUMBER, TRUTH, Column, UserKind
from palimpsest.tables.user_columns import named_columns
from palimpsest.tables.user_tables import UserTable, table_in, user_table

ID, TEXT, TRAINED, GROUP = "id", "text", "trained", "group"
SPLIT, COPIES, PROMPT = saved_folders.SPLIT, "copies", "prompt"
PARAPHRASED, PERTURBED = "paraphrased", "perturbed"
SUBJECT, REPHRASED = questions.SUBJECT, "rephrased"
QUESTIONS = "questions"  # the form of files of questions with several choices
SPLITS = ("train", "test", "holdout", "forget", "retain")
# Which records they are
WHICH = (
    Column(TRAINED, TRUTH, "whether the model was trained on the record: true or false"),
    Column(GROUP, NAME, "the name of the record's group, such as a person"),
)
NEEDED = (Column(TEXT, NAME, "the text of the record"),)
OPTIONAL = (
    Column(ID, NAME, "the name of the record"),
    *WHICH,
    Column(SPLIT, NAME, f"the part of the data ({user_files.listed(SPLITS)})"),
    Column(COPIES, NUMBER, "how often the record is in the training data: a whole number from 1"),
    Column(PROMPT, NAME, "the text before the record, on which no loss is measured", nullable=True),
    Column(PARAPHRASED, LIST, "other texts that say the same as the record's", nullable=True),
    Column(PERTURBED, LIST, "texts like the record's that are false", nullable=True),
)
RENAMED = "{text: body, id: key}"
LARGEST = 2**53  # whole numbers below it are exact as floats


@dataclass(frozen=True, repr=False)
class Records(ShortRepr):
    """Records of a user's own.

    Parameters
    ----------
    ids : str[records], in the order of the file; without a column `id`, numbers from 1, or those of
        the lines of a .txt file
    texts : str[records]
    trained : bool[records] or None
        Whether the model was trained on the record. Records on which it was not are the placebo.
    groups : str[records]; without a column `group`, each record is a group of its own
    source : the name of the file in messages
    splits : str[records], each one of `SPLITS`, or None
    copies : int64[records] or None
        How often the record is in the training data, from 1. None: each record once.
    prompts : str[records] or None
        The text before the record's own text, on which no loss is measured; '' for none.
    paraphrased, perturbed : tuple[str, ...] of each record, or None
        Answers to the same prompt that say the same, and that are false.
    subjects : str[records] or None
        Of questions with several choices (`questions`); '' for no subject.
    rephrased : tuple[str, ...] of each record, or None
        Prompts of such questions that say the same.
    """

    ids: np.ndarray
    texts: np.ndarray
    trained: np.ndarray | None
    groups: np.ndarray
    source: str = "records"
    splits: np.ndarray | None = None
    copies: np.ndarray | None = None
    prompts: np.ndarray | None = None
    paraphrased: list[tuple[str, ...]] | None = None
    perturbed: list[tuple[str, ...]] | None = None
    subjects: np.ndarray | None = None
    rephrased: list[tuple[str, ...]] | None = None

    def to_frame(self) -> pd.DataFrame:
        """A row per record, with those of the columns that `read_records` reads which it has."""
        columns = {
            ID: self.ids,
            TEXT: self.texts,
            TRAINED: self.trained,
            GROUP: self.groups,
            SPLIT: self.splits,
            COPIES: self.copies,
            PROMPT: self.prompts,
            PARAPHRASED: self.paraphrased,
            PERTURBED: self.perturbed,
            SUBJECT: self.subjects,
            REPHRASED: self.rephrased,
        }
        return pd.DataFrame({name: one for name, one in columns.items() if one is not None})

    @cached_property
    def prompts_or_blank(self) -> list[str]:
        """The prompt of each text; empty texts if the records have none."""
        return [""] * len(self.texts) if self.prompts is None else self.prompts

    @cached_property
    def prompt_letters(self) -> list[int]:
        """The length of each prompt, with the new line that follows one without white space."""
        return [len(before_text(prompt)) for prompt in self.prompts_or_blank]

    @cached_property
    def whole_texts(self) -> list[str]:
        """The texts, each after its prompt."""
        return after_prompts(self.prompts_or_blank, self.texts)


RECORDS = Made(Records, "records.read_records(path)")


def after_prompts(prompts: Iterable[str], texts: Iterable[str]) -> list[str]:
    """Texts, each after its prompt, which may be empty."""
    return [before_text(prompt) + text for prompt, text in zip(prompts, texts, strict=True)]


def before_text(prompt: str) -> str:
    """What stands before a text: its prompt, and a new line unless white space ends the prompt."""
    return prompt if not prompt or prompt[-1].isspace() else f"{prompt}\n"


@takes(path=FilePath(of_frame="records.to_records(frame)"))
def read_records(
    path: str | Path, columns: Mapping[str, str] | None = None, form: str | None = None
) -> Records:
    """Read records from a file with one row for each of them.

    Parameters
    ----------
    path : a .csv, .tsv, .jsonl, .json or .parquet file with the column text, and any of id, trained
        (true or false, yes or no, 1 or 0), group, split, copies, prompt, paraphrased and perturbed
        (each a text, or a list of texts). The same in a folder
        that `datasets` saved with save_to_disk; the names of its splits are the column split, if
        its records have none. Or a .txt file with a record a line, whose ids are the numbers of the
        lines; or a folder of .txt files with a record each, whose ids are their names without the
        ending. Files of text may be compressed, such as .jsonl.gz.
    columns : the file's own names of columns, such as {"text": "body"}
    form : "tofu", "muse" or "wikimia", for files of this benchmark; `columns` go before its names

    Raises `UserError` if there is no such file, if it cannot be read, if a text is empty or blank,
    if two records have one id, if a split is not one of `SPLITS`, if a number of copies is not a
    whole number from 1, or if no record was trained on. The message names the row.
    """
    published = form_of(form)
    try:
        return _records(path, columns or {}, published)
    except MemoryError:
        raise UserError(
            f"{path}: does not fit into memory; split it, or read it where there is more memory"
        ) from None


@takes(frame=FRAME)
def to_records(
    frame: pd.DataFrame,
    source: str = "records",
    columns: Mapping[str, str] | None = None,
    form: str | None = None,
) -> Records:
    """The records in a table with one row for each of them.

    Parameters
    ----------
    frame : the columns of `read_records`
    source : name of the table in messages
    columns, form : as for `read_records`

    Raises `UserError` as `read_records` does. The message names the row, counted from 1.
    """
    published, known = form_of(form), [str(name) for name in frame.columns]
    kind, named = _kind(source, known, columns or {}, published)
    return _in_table(user_table(frame, kind, source, named), published)


def _records(path: str | Path, asked: Mapping[str, str], form: Form) -> Records:
    file = opened(path)
    kind, columns = _kind(file.where, file.columns, asked, form)
    table = table_in(file, str(path), kind, columns)
    return _in_table(table, form, user_files.format_of(path) == user_files.TXT)


def _in_table(table: UserTable, form: Form, are_lines: bool = False) -> Records:
    texts, ids = _texts(table), ids_of(table, are_lines)
    return Records(
        ids,
        texts,
        _trained(table),
        table.names(GROUP).by_row() if GROUP in table.cells else ids,
        table.source,
        splits_of(table, form.splits),
        _copies(table),
        _prompts(table),
        *(table.lists(name) if name in table.cells else None for name in (PARAPHRASED, PERTURBED)),
    )


def _kind(
    where: str, names: Sequence[str], asked: Mapping[str, str], form: Form
) -> tuple[UserKind, dict[str, str]]:
    """What is read of a table of records with these columns, and its own names of them."""
    columns = columns_of(form, where, names, asked)
    known = (*NEEDED, *there(OPTIONAL, names, columns))
    rows = "one row for each record"
    return UserKind("table of records", rows, "record", known, renamed=RENAMED), columns


def opened(path: str | Path) -> user_files.Opened:
    """A file or folder of records, of which the names of the columns are read.

    Raises `UserError` if there is none, or if it cannot be read.
    """
    folder = Path(path)
    if folder.is_dir() and (saved_folders.is_saved(folder) or not user_files.holds_texts(folder)):
        return saved_folders.opened(folder)
    return user_files.opened(path, user_files.TEXTS, "a table of records")


def ids_of(table: UserTable, are_lines: bool) -> np.ndarray:
    if ID not in table.cells:
        numbers = range(1, table.n_rows + 1)
        if are_lines:
            numbers = map(table.number, range(table.n_rows))
        return np.array([str(number) for number in numbers], dtype=object)
    ids = table.names(ID).by_row()
    if (again := pd.Series(ids).duplicated()).any():
        row = int(again.to_numpy().argmax())
        earlier = table.another(int((ids == ids[row]).argmax()))
        raise UserError(
            f"{table.at(row)}: the id {ids[row]!r} is that of {earlier} already; give every "
            "record an id of its own"
        )
    return ids


def _texts(table: UserTable) -> np.ndarray:
    texts = table.names(TEXT).by_row()
    if blank := [row for row, text in enumerate(texts) if not text.strip()]:
        raise table.wrong(TEXT, blank[0], "has no words")
    return texts


def _trained(table: UserTable) -> np.ndarray | None:
    if TRAINED not in table.cells:
        return None
    trained = table.truths(TRAINED)
    check_trained(table, trained)
    return trained


def splits_of(table: UserTable, names: Mapping[str, str]) -> np.ndarray | None:
    """The splits; `names` has the names of those that are called differently in the table."""
    if SPLIT not in table.cells:
        return None
    splits = table.names(SPLIT)
    for value, row in zip(splits.values, splits.first_rows().tolist(), strict=True):
        if value not in (*SPLITS, *names):
            folder = Path(table.source) / value
            alone = f" (its folder can be read alone: {folder})" if folder.is_dir() else ""
            raise table.wrong(SPLIT, row, f"is no such part{nearest(value, SPLITS)}{alone}")
    return splits._replace(values=[names.get(value, value) for value in splits.values]).by_row()


def _copies(table: UserTable) -> np.ndarray | None:
    if COPIES not in table.cells:
        return None
    copies = table.numbers(COPIES)
    is_count = (copies >= 1) & (copies == np.floor(copies)) & (copies < LARGEST)
    if not is_count.all():
        raise table.wrong(COPIES, int(is_count.argmin()), "is not a whole number from 1")
    return copies.astype(np.int64)


def _prompts(table: UserTable) -> np.ndarray | None:
    if PROMPT not in table.cells:
        return None
    return table.names(PROMPT).by_row(missing="")


def there(
    columns: Iterable[Column], known: Sequence[str], asked: Mapping[str, str]
) -> list[Column]:
    """Those of some optional columns that a table has, or that the user names."""
    return [column for column in columns if column.name in asked or column.name in known]


def check_trained(table: UserTable, trained: np.ndarray) -> None:
    """Raise `UserError` unless the model was trained on some record."""
    if not trained.any():
        raise UserError(f"{table.source}: no record was trained on; add some to ask about")


def read_questions(path: str | Path, columns: Mapping[str, str]) -> Records:
    """Read questions with several choices from a file with one row for each of them.

    Parameters
    ----------
    path : as for `read_records`, with the columns question, choices and answer, and any of id,
        subject, split (train or test) and paraphrases
    columns : the file's own names of columns

    Raises `UserError` if the file cannot be read, or as `questions.questions_in`.
    """
    file = opened(path)
    table = table_in(file, str(path), _kind_of_questions(file, columns), columns)
    found = questions.questions_in(table)
    ids = ids_of(table, user_files.format_of(path) == user_files.TXT)
    return Records(
        ids,
        np.array(found.answers, dtype=object),
        None,
        ids,
        table.source,
        splits_of(table, questions.SPLITS),
        prompts=np.array(found.prompts, dtype=object),
        perturbed=found.wrong,
        subjects=np.array(found.subjects, dtype=object),
        rephrased=found.rephrased,
    )


@takes(records=RECORDS, n_words=WHOLE)
def in_windows(records: Records, n_words: int) -> Records:
    """Records cut into windows of at most so many words, each a record; for long documents.

    The windows of a record are in its group, and named after it: the second of `a` is `a:2`. Words
    are what white space separates, and no letter is lost.

    Raises `UserError` if a record has a prompt or another answer, or the name of a window.
    """
    beside = {"prompts": records.prompts, PARAPHRASED: records.paraphrased}
    for name, values in {**beside, PERTURBED: records.perturbed}.items():
        if values is not None and any(values):
            raise UserError(
                f"{records.source}: has {name}, and a window would part a text from its prompt and "
                f"its other answers; leave out the window or the {name}"
            )
    pieces = [_windows(text, n_words) for text in records.texts]
    place = np.repeat(np.arange(len(pieces)), [len(windows) for windows in pieces])
    names = [
        f"{id}:{number}" if len(windows) > 1 else id
        for id, windows in zip(records.ids, pieces, strict=True)
        for number in range(1, len(windows) + 1)
    ]
    if (again := pd.Series(names).duplicated()).any():
        name = names[int(again.to_numpy().argmax())]
        raise UserError(
            f"{records.source}: {name!r} is the name of a window and of another record; rename the "
            "record"
        )

    def of_windows(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else values[place]

    return Records(
        np.array(names, dtype=object),
        np.array([window for windows in pieces for window in windows], dtype=object),
        of_windows(records.trained),
        records.groups[place],
        records.source,
        of_windows(records.splits),
        of_windows(records.copies),
    )


def some_of(records: Records, rows: np.ndarray) -> Records:
    """The records at some places, int[n]."""

    def at_rows(values: np.ndarray | list | None) -> np.ndarray | list | None:
        return [values[row] for row in rows] if isinstance(values, list) else values[rows]

    columns = {
        field.name: at_rows(value)
        for field in fields(records)
        if field.name != "source" and (value := getattr(records, field.name)) is not None
    }
    return replace(records, **columns)


def _windows(text: str, n_words: int) -> list[str]:
    """A text in parts of so many words; white space before a word belongs to it."""
    words = re.findall(r"\s*\S+", text)
    tail = text[sum(map(len, words)) :]
    parts = ["".join(words[start : start + n_words]) for start in range(0, len(words), n_words)]
    parts[-1] += tail
    return parts


def check_head(path: str | Path, names: Mapping[str, str | int]) -> None:
    """Raise `UserError` unless a file has the columns that `read_as_named` needs.

    Only the head of the file is read: its header or schema, or its first objects.
    """
    asked = {name: own for name, own in names.items() if name not in ("form", "window")}
    file = opened(path)
    if names.get("form") == QUESTIONS:
        kind = _kind_of_questions(file, asked)
    else:
        kind, asked = _kind(file.where, file.columns, asked, form_of(names.get("form")))
    named_columns(file.where, kind, file.columns, asked, True)


def _kind_of_questions(file: user_files.Opened, asked: Mapping[str, str]) -> UserKind:
    optional = (*(column for column in OPTIONAL if column.name in (ID, SPLIT)), *questions.MORE)
    known = (*questions.NEEDED, *there(optional, file.columns, asked))
    return UserKind("file of questions", "one row for each question", "question", known, RENAMED)


def read_as_named(path: str | Path, names: Mapping[str, str | int]) -> Records:
    """Read records as the configuration names their columns, and perhaps a form and a window.

    See `read_records` and `in_windows`.
    """
    columns = dict(names)
    form, window = columns.pop("form", None), columns.pop("window", None)
    if form == QUESTIONS:
        if window is not None:
            raise UserError(f"{path}: has questions, which no window can cut; leave out the window")
        return read_questions(path, columns)
    records = read_records(path, columns, form)
    return records if window is None else in_windows(records, window)


def column_of_trained(trained: np.ndarray | None, n: int) -> pd.arrays.BooleanArray:
    """The column `trained` of a table of n records; all of it is null if nothing is known."""
    return pd.array([None] * n if trained is None else trained, "boolean")


@makes(CORPUS)
def corpus_table(records: str | Path, columns: Mapping[str, str] | None) -> pd.DataFrame:
    """The table of kind `corpus` of a user's file, see `read_as_named`."""
    found = read_as_named(records, columns or {})
    n_records = len(found.ids)
    missing = [None] * n_records
    return pd.DataFrame(
        {
            ID: found.ids,
            TEXT: found.texts,
            GROUP: found.groups,
            TRAINED: column_of_trained(found.trained, n_records),
            SPLIT: missing if found.splits is None else found.splits,
            COPIES: np.ones(n_records, int) if found.copies is None else found.copies,
            PROMPT: missing if found.prompts is None else found.prompts,
            PARAPHRASED: missing
            if found.paraphrased is None
            else [*map(json.dumps, found.paraphrased)],
            PERTURBED: missing if found.perturbed is None else [*map(json.dumps, found.perturbed)],
            SUBJECT: missing if found.subjects is None else found.subjects,
            REPHRASED: missing if found.rephrased is None else [*map(json.dumps, found.rephrased)],
        }
    )


def records_of_table(path: str | Path) -> Records:
    """The records in a table of kind `corpus`."""
    frame = tables.read(path, CORPUS)

    def unless_missing(name: str) -> np.ndarray | None:
        return None if frame[name].isna().any() else frame[name].to_numpy()

    def lists(name: str) -> list[tuple[str, ...]] | None:
        written = unless_missing(name)
        return None if written is None else [tuple(json.loads(texts)) for texts in written]

    ids, texts, groups = (frame[name].to_numpy(dtype=object) for name in (ID, TEXT, GROUP))
    trained = unless_missing(TRAINED)
    return Records(
        ids,
        texts,
        None if trained is None else trained.astype(bool),
        groups,
        str(path),
        unless_missing(SPLIT),
        frame[COPIES].to_numpy(),
        unless_missing(PROMPT),
        *(lists(name) for name in (PARAPHRASED, PERTURBED)),
        unless_missing(SUBJECT),
        lists(REPHRASED),
    )
