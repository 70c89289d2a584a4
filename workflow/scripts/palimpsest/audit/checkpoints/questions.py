"""Prompts and answers as the tokens of a model, put together as the program that trained it did."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from palimpsest.corpora.records import before_text
from palimpsest.errors import Notice, UserError
from palimpsest.models.checkpoints import Checkpoint
from palimpsest.models.limits import check_positions, check_vocabulary, shown
from palimpsest.training.batches import TokenisedStrings

PROMPT, ANSWER = "{prompt}", "{answer}"
SYSTEM = "system"


@dataclass(frozen=True)
class Template:
    """How a prompt and an answer stand in the training data of a model.

    Parameters
    ----------
    text : with `{prompt}`, and `{answer}` at its end; without it, a new line parts the two
    chat : the tokenizer's chat template takes the place of the text. `system` is the text of the
        first message, and all else is handed to the template.
    """

    text: str | None = None
    chat: Mapping[str, object] | None = None

    def rows(
        self, checkpoint: Checkpoint, prompts: Sequence[str], answers: Sequence[str]
    ) -> tuple[list[list[int]], list[list[int]]]:
        """The tokens of each prompt, and those of prompt, answer and end.

        Raises `UserError` if the tokenizer has no chat template, or no end token.
        """
        tokenizer = checkpoint.tokenizer
        if tokenizer.eos_token_id is None:
            raise UserError(f"{checkpoint.name}: its tokenizer has no end token (eos_token)")
        if self.chat is None:
            before = [self._before(prompt) for prompt in prompts]
            whole = [start + answer for start, answer in zip(before, answers, strict=True)]
            found = tokenizer(before)["input_ids"], tokenizer(whole)["input_ids"]
        else:
            found = self._of_chat(checkpoint, prompts, answers)
        return found[0], [_ended(row, tokenizer.eos_token_id) for row in found[1]]

    def _before(self, prompt: str) -> str:
        if self.text is None:
            return before_text(prompt)
        return self.text.removesuffix(ANSWER).replace(PROMPT, prompt)

    def _of_chat(
        self, checkpoint: Checkpoint, prompts: Sequence[str], answers: Sequence[str]
    ) -> tuple[list[list[int]], list[list[int]]]:
        tokenizer, values = checkpoint.tokenizer, dict(self.chat)
        if tokenizer.chat_template is None:
            raise UserError(
                f"{checkpoint.name}: its tokenizer has no chat template; leave out the key chat, "
                f"and write a template such as 'Question: {PROMPT}\\nAnswer: {ANSWER}'"
            )
        system = values.pop(SYSTEM, None)
        first = [] if system is None else [{"role": SYSTEM, "content": system}]
        asked = [[*first, {"role": "user", "content": prompt}] for prompt in prompts]
        answered = [
            [*before, {"role": "assistant", "content": answer}]
            for before, answer in zip(asked, answers, strict=True)
        ]
        return tuple(
            [
                tokenizer.apply_chat_template(
                    messages, add_generation_prompt=to_go_on, return_dict=False, **values
                )
                for messages in conversations
            ]
            for conversations, to_go_on in ((asked, True), (answered, False))
        )


class Encoded(NamedTuple):
    """Prompts alone as tokens, and all strings with what is predicted of them."""

    prompts: list[list[int]]
    strings: TokenisedStrings


def encoded(
    checkpoint: Checkpoint, template: Template, prompts: Sequence[str], answers: Sequence[str]
) -> Encoded:
    """Answers after their prompts as tokens: those of the answer and its end are predicted.

    The tokenizer adds a start token if it does so in training, and the names of special tokens in a
    text are special, as in the programs that trained such models. The answer begins after as many
    tokens as the prompt alone has.

    Raises `UserError` if a text is too long for the model, if no token of an answer is left, or as
    `Template.rows`.
    """
    before, rows = template.rows(checkpoint, prompts, answers)
    # Without a prompt and a start token, the first token of the answer is only read.
    before = [own or row[:1] for own, row in zip(before, rows, strict=True)]
    contexts = np.array([len(row) for row in before])
    lengths = np.array([len(row) for row in rows])
    if merged := sum(row[: len(own)] != own for own, row in zip(before, rows, strict=True)):
        warnings.warn(
            Notice(
                f"{checkpoint.name}: its tokenizer joins the end of the prompt with the beginning "
                f"of the answer in {merged:,} of {len(rows):,} texts, so the first token of these "
                "answers is not predicted; end the part before {answer} of the template otherwise"
            ),
            stacklevel=2,
        )
    if (lost := lengths <= contexts).any():
        raise UserError(
            f"{checkpoint.name}: its tokenizer leaves no token to the answer "
            f"{shown(answers[int(lost.argmax())])}; leave the record out"
        )
    longest = int(lengths.argmax())
    check_positions(
        checkpoint.name,
        f"the prompt with the answer {shown(answers[longest])}",
        int(lengths[longest]),
        checkpoint.limits.positions,
        lambda _: "shorten the record, or leave it out",
    )
    check_vocabulary(checkpoint.name, max(map(max, rows)), checkpoint.limits.vocabulary)
    end = checkpoint.tokenizer.eos_token_id
    return Encoded(before, TokenisedStrings.of_rows(rows, end, contexts - 1))


def _ended(row: list[int], end: int) -> list[int]:
    return row if row and row[-1] == end else [*row, end]
