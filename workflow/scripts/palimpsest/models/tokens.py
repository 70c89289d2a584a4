"""One token per terminal: the token of a tokenizer that represents a terminal.

This module is fast to import, so that it can be used before Snakemake builds its graph of jobs.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from palimpsest.errors import UserError
from palimpsest.models.table import Model


def single_token(
    row: Model,
    terminal: str,
    vocabulary: dict[str, int],
    encode: Callable[[str], list[int]],
    unknown: int | None,
) -> int:
    """The id of the single token that represents a terminal.

    If a token's text equals the terminal, it is used. Otherwise the terminal is encoded as a text,
    where some tokenizers add a blank at the start.

    Raises `UserError` if the tokenizer has no single token for the terminal.
    """
    if terminal in vocabulary:
        return vocabulary[terminal]
    ids = encode(terminal)
    if len(ids) == 1 and ids[0] != unknown:
        return ids[0]
    text_of = {token: text for text, token in vocabulary.items()}
    pieces = [text_of.get(token, str(token)) for token in ids]
    raise UserError(
        f"{row.model}: its tokenizer splits the terminal {terminal!r} into {len(ids)} tokens "
        f"{pieces}; every terminal must be one token: choose other terminals for the language or "
        "another model"
    )


def single_tokens(row: Model, terminals: Sequence[str], vocabulary, encode, unknown) -> tuple:
    """The ids of the terminals' tokens, all different; see `single_token`."""
    ids = [single_token(row, terminal, vocabulary, encode, unknown) for terminal in terminals]
    for place, terminal in enumerate(terminals):
        if ids[place] in ids[:place]:
            raise UserError(
                f"{row.model}: its tokenizer has one token for the terminals "
                f"{terminals[ids.index(ids[place])]!r} and {terminal!r}; every terminal must be a "
                "token of its own: choose other terminals for the language or another model"
            )
    return tuple(ids)


def check_local(row: Model, tokenizer_file: str | Path, terminals: Sequence[str]) -> None:
    """Raise `UserError` if the tokenizer of a local folder has no single token for a terminal."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
    except Exception as error:  # the library raises nothing narrower
        raise UserError(f"{row.model}: {tokenizer_file}: not a tokenizer: {error}") from None
    vocabulary = tokenizer.get_vocab()

    def encode(terminal: str) -> list[int]:
        return tokenizer.encode(terminal, add_special_tokens=False).ids

    single_tokens(row, terminals, vocabulary, encode, vocabulary.get("<unk>"))
