"""Texts as the token ids of a model's own tokenizer."""

from collections.abc import Sequence

import numpy as np

from palimpsest.errors import UserError
from palimpsest.models.limits import Limits, check_positions, check_vocabulary, shown
from palimpsest.training.batches import TokenisedStrings


def encode_texts(
    name: str, tokenizer, most: Limits, texts: Sequence[str], what: str, remedy: str
) -> TokenisedStrings:
    """The tokens of texts, each after a start token: every token of the text is predicted.

    A text is only text: the name of a special token in it, such as `</s>`, is read letter by
    letter. A tokenizer without a start token gives its end token for it.

    Parameters
    ----------
    name : the model's, in messages
    tokenizer : of transformers
    most : the model's limits
    what : what a text is called in messages, such as segment
    remedy : what to do about a text that is too long

    Raises `UserError` if a text has no token, more tokens than the model takes, or one that its
    weights do not have.
    """
    start = tokenizer.bos_token_id
    start = tokenizer.eos_token_id if start is None else start
    if start is None:
        raise UserError(f"{name}: its tokenizer has neither a start nor an end token")
    found = tokenizer(
        list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False
    )["input_ids"]
    if empty := [text for text, ids in zip(texts, found, strict=True) if not ids]:
        raise UserError(
            f"{name}: its tokenizer has no token for the {what} {shown(empty[0])}, and leaves it "
            "out; leave the text out, too, or choose a model that knows its characters"
        )
    rows = [[start, *ids] for ids in found]
    lengths = np.array([len(row) for row in rows])
    longest = int(lengths.argmax())
    check_positions(
        name,
        f"the {what} {shown(texts[longest])}",
        int(lengths[longest]),
        most.positions,
        lambda _: remedy,
    )
    check_vocabulary(name, max(map(max, rows)), most.vocabulary)
    return TokenisedStrings.of_rows(rows, filler=start)
