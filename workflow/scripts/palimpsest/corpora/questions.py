"""Questions with several choices as records: the answer is a letter, on which the loss is measured.

The prompt is that of the evaluation harness for MMLU, with the question, and a line with a letter
for every choice. The model predicts the letter of the right choice.

Sources: LMD3: Language Model Data Density Dependence, section 5.3, appendices A.2.3 and A.3;
github.com/EleutherAI/lm-evaluation-harness, lm_eval/tasks/mmlu/default.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import NamedTuple

from palimpsest.errors import UserError
from palimpsest.tables.kinds import LIST, NAME, Column
from palimpsest.tables.user_tables import UserTable

QUESTION, CHOICES, ANSWER, SUBJECT = "question", "choices", "answer", "subject"
PARAPHRASES = "paraphrases"
LETTERS = string.ascii_uppercase
WAYS = NUMBER, TEXT, LETTER = "number from 0", "text", "letter"  # to write an answer
NEEDED = (
    Column(QUESTION, NAME, "the text of the question"),
    Column(CHOICES, LIST, "a list of choices, two or more"),
    Column(ANSWER, NAME, "the right choice: its number from 0, its letter from A, or its text"),
)
MORE = (
    Column(SUBJECT, NAME, "the subject of the question", nullable=True),
    Column(PARAPHRASES, LIST, "the same question in other words", nullable=True),
)
HEAD = "The following are multiple choice questions (with answers){}.\n\n"
# Published names of parts of questions that may be trained on
SPLITS = {"auxiliary_train": "train", "validation": "train", "dev": "train"}


class Questions(NamedTuple):
    """The questions of a file, in its order.

    `prompts` and `answers` are those of every question, `wrong` its other letters, `subjects` its
    subject ('' for none), and `rephrased` its prompts in other words.
    """

    prompts: list[str]
    answers: list[str]
    wrong: list[tuple[str, ...]]
    subjects: list[str]
    rephrased: list[tuple[str, ...]]


def questions_in(table: UserTable) -> Questions:
    """The questions of a table with the columns `NEEDED`, and perhaps `MORE`.

    All answers are read in one way, if there is one: as numbers, as texts or as letters. Raises
    `UserError` if a question has fewer than two choices or two equal ones, if the answer is none of
    them or may be two of them, or if two rows ask the same. The message names the row.
    """
    questions, choices = table.names(QUESTION).by_row(), table.lists(CHOICES)
    given, n = table.names(ANSWER).by_row(), table.n_rows
    subjects = [""] * n
    if SUBJECT in table.cells:
        subjects = [subject or "" for subject in table.names(SUBJECT).by_row(missing="")]
    paraphrases = table.lists(PARAPHRASES) if PARAPHRASES in table.cells else [()] * n
    found, seen = Questions([], [], [], subjects, []), {}
    places = _places_of_answers(table, choices, given)
    for row, place in enumerate(places):
        prompt, *others = (
            prompt_of(words, choices[row], subjects[row])
            for words in (questions[row], *paraphrases[row])
        )
        if (first := seen.setdefault(prompt, row)) != row:
            raise UserError(
                f"{table.at(row)}: asks the same as {table.another(first)}; leave one of them out"
            )
        letters = LETTERS[: len(choices[row])]
        found.prompts.append(prompt)
        found.answers.append(letters[place])
        found.wrong.append(tuple(letter for letter in letters if letter != letters[place]))
        found.rephrased.append(tuple(dict.fromkeys(p for p in others if p != prompt)))
    return found


def prompt_of(question: str, choices: Sequence[str], subject: str) -> str:
    """The prompt of a question; the letter of the answer follows in a line of its own."""
    about = f" about {subject.replace('_', ' ')}" if subject else ""
    lines = [f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=False)]
    return "\n".join([HEAD.format(about) + question.strip(), *lines, "Answer:"])


def _places_of_answers(
    table: UserTable, choices: Sequence[Sequence[str]], given: Sequence[str]
) -> list[int]:
    """The place of the right choice of every row; see `questions_in`."""
    readings = [
        _readings(table, row, own, answer)
        for row, (own, answer) in enumerate(zip(choices, given, strict=True))
    ]
    ways = [way for way in WAYS if all(way in own for own in readings)] or WAYS
    places = []
    for row, own in enumerate(readings):
        possible = {way: own[way] for way in ways if way in own}
        if len(set(possible.values())) > 1:
            said = " and ".join(f"{LETTERS[place]} by its {way}" for way, place in possible.items())
            raise table.wrong(ANSWER, row, f"is choice {said}; write all answers in another way")
        places += set(possible.values())
    return places


def _readings(table: UserTable, row: int, choices: Sequence[str], answer: str) -> dict[str, int]:
    """The place of the right choice by each of `WAYS` in which it can be read.

    Raises `UserError` if the choices are not such, or lack the answer.
    """
    if len(choices) < 2:
        raise table.wrong(CHOICES, row, f"has {len(choices)}, and a question needs two")
    if len(choices) > len(LETTERS):
        raise table.wrong(CHOICES, row, f"has {len(choices)}, and letters are {len(LETTERS)}")
    if len(set(choices)) < len(choices):
        raise table.wrong(CHOICES, row, "has one choice twice")
    found = {}
    if answer.isascii() and answer.isdigit() and int(answer) < len(choices):
        found[NUMBER] = int(answer)
    if table.holds_number(ANSWER, row) and found:
        return found
    if answer in choices:
        found[TEXT] = choices.index(answer)
    if len(answer) == 1 and answer in LETTERS[: len(choices)]:
        found[LETTER] = LETTERS.index(answer)
    if not found:
        raise table.wrong(ANSWER, row, f"is none of the {len(choices)} choices")
    return found
