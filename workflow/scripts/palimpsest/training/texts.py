"""Texts as the token ids of a model's own tokenizer."""

from collections.abc import Sequence

from palimpsest.models.build import TextTokens
from palimpsest.models.checkpoints import Checkpoint
from palimpsest.models.limits import Limits, check_positions, check_vocabulary, shown
from palimpsest.training.batches import TokenisedStrings, encode


def encode_texts(
    name: str,
    tokenizer,
    most: Limits,
    texts: Sequence[str],
    what: str,
    remedy: str,
    prompts: Sequence[int] | None = None,
) -> TokenisedStrings:
    """The tokens of texts, each after a start token: every token after the prompt is predicted.

    See `palimpsest.models.build.TextTokens` for what a tokenizer makes of a text.

    Parameters
    ----------
    name : the model's, in messages
    tokenizer : of transformers
    most : the model's limits
    what : what a text is called in messages, such as segment
    remedy : what to do about a text that is too long
    prompts : the number of the first letters of each text that are its prompt

    Raises `UserError` if a text has no token, more tokens than the model takes, or one that its
    weights do not have.
    """
    tokens = TextTokens.of(name, tokenizer)
    encoded = encode(texts, tokens, False, prompts, what, filler=tokens.start)
    longest = int(encoded.lengths.argmax())
    check_positions(
        name,
        f"the {what} {shown(texts[longest])}",
        int(encoded.lengths[longest]),
        most.positions,
        lambda _: remedy,
    )
    check_vocabulary(name, int(encoded.ids.max()), most.vocabulary)
    return encoded


def encode_records(
    checkpoint: Checkpoint, texts: Sequence[str], prompts: Sequence[int] | None = None
) -> TokenisedStrings:
    """Records as the tokens of a model that is only asked. See `encode_texts`."""
    return encode_texts(
        checkpoint.name,
        checkpoint.tokenizer,
        checkpoint.limits,
        texts,
        "record",
        "cut the records into windows: the key window of the corpus, or records.in_windows",
        prompts,
    )
