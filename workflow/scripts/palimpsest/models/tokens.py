"""One token per terminal: the token of a tokenizer that represents a terminal.

This module is fast to import, so that it can be used before Snakemake builds its graph of jobs.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from palimpsest.errors import UserError
from palimpsest.models.table import Model

# Some tokenizers begin a text with a blank. After this character, a token is that of a word within
# a text.
BEFORE = "\n"
BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")  # the name of a token that is one byte of a letter


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer, as far as one token per terminal needs it.

    `encode` gives the token ids of a text, without a start or an end token. `name` gives the name
    of a token, which is not its text: in a byte-level vocabulary, `é` is the name of one byte.
    `special` are the names of the tokens that are no text, such as those of start, end and padding,
    by id; `unknown` are the ids for text that the tokenizer does not know.
    """

    encode: Callable[[str], list[int]]
    name: Callable[[int], str | None]
    special: Mapping[int, str]
    unknown: frozenset[int]

    @classmethod
    def of_transformers(cls, tokenizer) -> "Vocabulary":
        """The vocabulary of a tokenizer of transformers."""
        added = tokenizer.added_tokens_decoder
        marked = {token: str(text) for token, text in added.items() if text.special}
        named = zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
        return cls(
            encode=lambda text: tokenizer.encode(text, add_special_tokens=False),
            name=tokenizer.convert_ids_to_tokens,
            special={**marked, **dict(named)},
            unknown=frozenset({tokenizer.unk_token_id} - {None}),
        )

    @classmethod
    def of_file(cls, path: str | Path) -> "Vocabulary":
        """The vocabulary of a `tokenizer.json`, and of the configuration in the same folder.

        Raises `ValueError` or `OSError` if it cannot be read.
        """
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(str(error)) from None
        # A file may ask for both, which would change the number of tokens.
        tokenizer.no_padding()
        tokenizer.no_truncation()
        added = tokenizer.get_added_tokens_decoder()
        special = {token: text.content for token, text in added.items() if text.special}
        named = {
            **_special_names(Path(path).with_name("special_tokens_map.json")),
            **_special_names(Path(path).with_name("tokenizer_config.json")),
        }
        ids = {role: tokenizer.token_to_id(name) for role, name in named.items()}
        special |= {ids[role]: name for role, name in named.items() if ids[role] is not None}
        unknown = ids.get("unk_token"), _unknown_of_model(tokenizer, path)
        return cls(
            encode=lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
            name=tokenizer.id_to_token,
            special=special,
            unknown=frozenset(unknown) - {None},
        )


def _special_names(path: Path) -> dict[str, str]:
    """The names of the special tokens by role, such as `bos_token`, in a file beside a tokenizer.

    Raises `ValueError` if the file is no JSON.
    """
    if not path.is_file():
        return {}
    found = {}
    for role, value in json.loads(path.read_text(encoding="utf-8")).items():
        name = value.get("content") if isinstance(value, dict) else value
        if role.endswith("_token") and isinstance(name, str):
            found[role] = name
    return found


def _unknown_of_model(tokenizer, path: str | Path) -> int | None:
    """The id of the unknown token in the model of a `tokenizers.Tokenizer`."""
    if hasattr(tokenizer.model, "unk_token"):
        name = tokenizer.model.unk_token
        return None if name is None else tokenizer.token_to_id(name)
    # The library does not show this number of its unigram models.
    return json.loads(Path(path).read_text(encoding="utf-8"))["model"].get("unk_id")


def single_token(row: Model, terminal: str, vocabulary: Vocabulary) -> int:
    """The id of the single token that represents a terminal.

    The tokenizer encodes the terminal as a word within a text or, if these are several tokens, as
    a text of its own, where some tokenizers add a blank at the start. The names of tokens are not
    compared with the terminal, because a name need not be the text that it stands for.

    Raises `UserError` if the tokenizer has no single token for the terminal, or if that token is
    special.
    """
    alone = vocabulary.encode(terminal)
    ids = next((ids for ids in (_within(vocabulary, terminal), alone) if len(ids) == 1), alone)
    remedy = "choose other terminals for the language or another model"
    names = [vocabulary.name(token) or str(token) for token in ids]
    if unknown := vocabulary.unknown.intersection(ids):
        raise UserError(
            f"{row.model}: its tokenizer does not know the terminal {terminal!r}, and gives its "
            f"unknown token {vocabulary.name(min(unknown))!r} for it; {remedy}"
        )
    if special := [vocabulary.special[token] for token in ids if token in vocabulary.special]:
        raise UserError(
            f"{row.model}: its tokenizer takes the terminal {terminal!r} for its special token "
            f"{special[0]!r}, which is no text; {remedy}"
        )
    if len(ids) != 1:
        raise UserError(
            f"{row.model}: its tokenizer splits the terminal {terminal!r} into {len(ids)} tokens "
            f"{names}; every terminal must be one token: {remedy}"
        )
    if names == [terminal] and BYTE.fullmatch(terminal):
        raise UserError(
            f"{row.model}: its tokenizer takes the terminal {terminal!r} for one byte of a letter; "
            f"{remedy}"
        )
    return ids[0]


def _within(vocabulary: Vocabulary, terminal: str) -> list[int]:
    """The tokens of a terminal after another character; [] if they merge with that character."""
    before, both = vocabulary.encode(BEFORE), vocabulary.encode(BEFORE + terminal)
    return both[len(before) :] if both[: len(before)] == before else []


def single_tokens(row: Model, terminals: Sequence[str], vocabulary: Vocabulary) -> tuple[int, ...]:
    """The ids of the terminals' tokens, all different; see `single_token`."""
    terminal_of: dict[int, str] = {}
    for terminal in terminals:
        token = single_token(row, terminal, vocabulary)
        if token in terminal_of:
            raise UserError(
                f"{row.model}: its tokenizer has one token for the terminals "
                f"{terminal_of[token]!r} and {terminal!r}; every terminal must be a token of its "
                "own: choose other terminals for the language or another model"
            )
        terminal_of[token] = terminal
    return tuple(terminal_of)


def check_local(row: Model, file: str | Path, languages: Iterable[Sequence[str]]) -> None:
    """Raise `UserError` if the `tokenizer.json` of a local folder has no token for a terminal.

    `languages` are the terminals of each language.
    """
    try:
        vocabulary = Vocabulary.of_file(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{row.model}: {file}: not a tokenizer: {error}") from None
    for terminals in languages:
        single_tokens(row, terminals, vocabulary)
