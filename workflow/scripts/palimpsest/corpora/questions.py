"""Questions with several choices as records: the answer is a letter, on which the loss is measured.

The prompt is that of the evaluation harness for MMLU, with the question, and a line with a letter
for every choice. The model predicts the letter of the right choice.

Sources: LMD3: Language Model Data Density Dependence, section 5.3, appendices A.2.3 and A.3;
github.com/EleutherAI/lm-evaluation-harness, lm_eval/tasks/mmlu/default.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from palimpsest.corpora.corpus import String, text_string
from palimpsest.corpora.records import (
    ID,
    OPTIONAL,
    RENAMED,
    SPLIT,
    Records,
    after_prompts,
    before_text,
    ids_of,
    opened,
    splits_of,
    there,
)
from palimpsest.corpora.records_corpus import RecordsCorpus
from palimpsest.errors import UserError
from palimpsest.tables import user_files
from palimpsest.tables.kinds import LIST, NAME, Column, UserKind
from palimpsest.tables.user_tables import UserTable, table_in

QUESTION, CHOICES, ANSWER, SUBJECT = "question", "choices", "answer", "subject"
PARAPHRASES = "paraphrases"
LETTERS = string.ascii_uppercase
NEEDED = (
    Column(QUESTION, NAME, "the text of the question"),
    Column(CHOICES, LIST, "a list of choices, two or more"),
    Column(ANSWER, NAME, "the right choice: its number from 0, its letter from A, or its text"),
)
MORE = (
    *(column for column in OPTIONAL if column.name in (ID, SPLIT)),
    Column(SUBJECT, NAME, "the subject of the question", nullable=True),
    Column(PARAPHRASES, LIST, "the same question in other words", nullable=True),
)
HEAD = "The following are multiple choice questions (with answers){}.\n\n"


class Question(NamedTuple):
    """What belongs to a question's string: its subject, '' for none, and other strings.

    `rephrased` are the question in other words, with the right answer, and `wrong` the question
    with every wrong answer.
    """

    subject: str
    rephrased: list[String]
    wrong: list[String]


class QuestionsCorpus(RecordsCorpus):
    """Questions as a corpus of records. A string is a prompt and the letter of the right choice."""

    when_too_few = "add questions"

    def __init__(self, name: str, records: Records):
        super().__init__(name, records)
        self.questions: dict[String, Question] = {}
        rows = zip(
            records.prompts,
            records.texts,
            records.subjects,
            records.rephrased,
            records.perturbed,
            strict=True,
        )
        for own, (prompt, answer, subject, rephrased, wrong) in zip(
            self.strings, rows, strict=True
        ):
            other_prompts = after_prompts(rephrased, [answer] * len(rephrased))
            others = after_prompts([prompt] * len(wrong), wrong)
            self.questions[own] = Question(
                subject, [*map(text_string, other_prompts)], [*map(text_string, others)]
            )
            self.prompts |= {text: len(text) - len(answer) for text in other_prompts}
            self.prompts |= {text: len(before_text(prompt)) for text in others}

    def productions(self) -> list[str]:
        """The subjects of the questions that are never trained on, sorted."""
        strings = [self.strings[place] for place in self.unseen]
        return sorted({self.questions[s].subject for s in strings} - {""})


def read_questions(path: str | Path, columns: Mapping[str, str]) -> Records:
    """Read questions from a file with one row for each of them.

    Parameters
    ----------
    path : as for `read_records`, with the columns question, choices and answer, and any of id,
        subject, split (train or test) and paraphrases
    columns : the file's own names of columns

    Raises `UserError` if the file cannot be read, if a question has fewer than two choices or two
    equal ones, if the answer is none of them, or if two rows ask the same. The message names the
    row.
    """
    file = opened(path)
    known = (*NEEDED, *there(MORE, file.columns, columns))
    kind = UserKind("file of questions", "one row for each question", "question", known, RENAMED)
    table = table_in(file, str(path), kind, columns)
    questions, choices = table.names(QUESTION).by_row(), table.lists(CHOICES)
    answers, n = table.names(ANSWER).by_row(), table.n_rows
    subjects = [""] * n
    if SUBJECT in table.cells:
        subjects = [subject or "" for subject in table.names(SUBJECT).by_row(missing="")]
    paraphrases = table.lists(PARAPHRASES) if PARAPHRASES in table.cells else [()] * n
    prompts, texts, wrong, rephrased = [], [], [], []
    seen: dict[str, int] = {}
    for row in range(n):
        place = _place_of_answer(table, row, choices[row], answers[row])
        own = [
            prompt_of(words, choices[row], subjects[row])
            for words in (questions[row], *paraphrases[row])
        ]
        if (first := seen.setdefault(own[0], row)) != row:
            raise UserError(
                f"{table.at(row)}: asks the same as {table.another(first)}; leave one of them out"
            )
        prompts.append(own[0])
        rephrased.append(tuple(dict.fromkeys(p for p in own[1:] if p != own[0])))
        letters = LETTERS[: len(choices[row])]
        texts.append(letters[place])
        wrong.append(tuple(letter for letter in letters if letter != letters[place]))
    ids = ids_of(table, user_files.format_of(path) == user_files.TXT)
    return Records(
        ids,
        np.array(texts, dtype=object),
        None,
        ids,
        table.source,
        splits_of(table, {"auxiliary_train": "train", "validation": "train", "dev": "train"}),
        None,
        np.array(prompts, dtype=object),
        perturbed=wrong,
        subjects=np.array(subjects, dtype=object),
        rephrased=rephrased,
    )


def prompt_of(question: str, choices: Sequence[str], subject: str) -> str:
    """The prompt of a question; the letter of the answer follows in a line of its own."""
    about = f" about {subject.replace('_', ' ')}" if subject else ""
    lines = [f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=False)]
    return "\n".join([HEAD.format(about) + question.strip(), *lines, "Answer:"])


def _place_of_answer(table: UserTable, row: int, choices: Sequence[str], answer: str) -> int:
    """The place of the right choice; `UserError` if the choices are not such, or lack it."""
    if len(choices) < 2:
        raise table.wrong(CHOICES, row, f"has {len(choices)}, and a question needs two")
    if len(choices) > len(LETTERS):
        raise table.wrong(CHOICES, row, f"has {len(choices)}, and letters are {len(LETTERS)}")
    if len(set(choices)) < len(choices):
        raise table.wrong(CHOICES, row, "has one choice twice")
    if answer.isascii() and answer.isdigit() and int(answer) < len(choices):
        return int(answer)
    if answer in choices:
        return choices.index(answer)
    if len(answer) == 1 and answer in LETTERS[: len(choices)]:
        return LETTERS.index(answer)
    raise table.wrong(ANSWER, row, f"is none of the {len(choices)} choices")
