"""Texts as the token ids of a model's own tokenizer."""

from collections.abc import Sequence

import numpy as np

from palimpsest.models.build import TextTokens
from palimpsest.models.limits import Limits, check_positions, check_vocabulary, shown
from palimpsest.training.batches import TokenisedStrings


def encode_texts(
    name: str, tokenizer, most: Limits, texts: Sequence[str], what: str, remedy: str
) -> TokenisedStrings:
    """The tokens of texts, each after a start token: every token of the text is predicted.

    See `palimpsest.models.build.TextTokens` for what a tokenizer makes of a text.

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
    tokens = TextTokens.of(name, tokenizer)
    rows = [[tokens.start, *ids] for ids in tokens.rows(texts, what)]
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
    return TokenisedStrings.of_rows(rows, filler=tokens.start)
