"""One token per terminal: the token of a tokenizer that represents a terminal."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from palimpsest.errors import UserError
from palimpsest.models.folders import read_json
from palimpsest.models.table import Model

# Some tokenizers begin a text with a blank. After this character, a token is that of a word within
# a text.
BEFORE = "\n"
BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")  # the name of a token that stands for one byte of a letter
REPLACED = "\ufffd"  # in the text of a token that stands for a part of a letter
REMEDY = "choose other terminals for the language or another model"
# Lists of special tokens in the files next to a tokenizer
LISTS = ("additional_special_tokens", "extra_special_tokens")


class Token(NamedTuple):
    """A token of a text, and how many of the text's characters it stands for; None if unknown."""

    id: int
    width: int | None


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer, as far as one token per terminal needs it.

    `encode` gives the tokens of a text, without a start or an end token. `text` gives the text of a
    token, and `name` its name, which may differ: in a byte-level vocabulary, `é` is the name of one
    byte. `special` are the names of the tokens that are no text, such as those of start, end and
    padding, by id; `unknown` are the ids for text that the tokenizer does not know.
    """

    encode: Callable[[str], list[Token]]
    text: Callable[[int], str]
    name: Callable[[int], str | None]
    special: Mapping[int, str]
    unknown: frozenset[int]

    @classmethod
    def of_transformers(cls, tokenizer) -> "Vocabulary":
        def encode(text: str) -> list[Token]:
            if not tokenizer.is_fast:
                ids = tokenizer.encode(text, add_special_tokens=False)
                return [Token(token, None) for token in ids]
            found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            return _tokens(found["input_ids"], found["offset_mapping"])

        added = tokenizer.added_tokens_decoder
        marked = {token: str(text) for token, text in added.items() if text.special}
        named = zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
        of_model = _unknown_of_model(tokenizer.backend_tokenizer) if tokenizer.is_fast else None
        return cls(
            encode=encode,
            text=lambda token: tokenizer.decode([token], clean_up_tokenization_spaces=False),
            name=tokenizer.convert_ids_to_tokens,
            special={**marked, **dict(named)},
            unknown=frozenset({tokenizer.unk_token_id, of_model} - {None}),
        )

    @classmethod
    def of_file(cls, path: str | Path) -> "Vocabulary":
        """The vocabulary of a `tokenizer.json`, and of the configuration in the same folder.

        Raises `UserError`, with the name of the file, if one of them cannot be read.
        """
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise UserError(
                f"{path}: not a tokenizer: {error}; save the tokenizer again with save_pretrained"
            ) from None
        # A file may enable both, which would change the number of tokens.
        tokenizer.no_padding()
        tokenizer.no_truncation()
        named = [
            *_special_names(Path(path).with_name("special_tokens_map.json")),
            *_special_names(Path(path).with_name("tokenizer_config.json")),
        ]
        # As transformers does with a name that the vocabulary does not have
        tokenizer.add_special_tokens([name for _, name in named])
        added = tokenizer.get_added_tokens_decoder()
        marked = {token: text.content for token, text in added.items() if text.special}
        unknown = {tokenizer.token_to_id(name) for role, name in named if role == "unk_token"}

        def encode(text: str) -> list[Token]:
            found = tokenizer.encode(text, add_special_tokens=False)
            return _tokens(found.ids, found.offsets)

        return cls(
            encode=encode,
            text=lambda token: tokenizer.decode([token], skip_special_tokens=False),
            name=tokenizer.id_to_token,
            special={**marked, **{tokenizer.token_to_id(name): name for _, name in named}},
            unknown=frozenset({*unknown, _unknown_of_model(tokenizer)} - {None}),
        )


def _tokens(ids: Sequence[int], offsets: Sequence[tuple[int, int]]) -> list[Token]:
    return [Token(id, end - start) for id, (start, end) in zip(ids, offsets, strict=True)]


def _special_names(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the role and the name of each special token in a file next to a tokenizer.

    The role is a key, such as `bos_token`. Raises `UserError` if the file is no JSON object.
    """
    if not path.is_file():
        return
    for role, value in read_json(path).items():
        values = [value] if role.endswith("_token") else []
        if role in LISTS:
            values = _elements(value)
        if role == "added_tokens_decoder":
            values = [v for v in _elements(value) if isinstance(v, dict) and v.get("special")]
        for each in values:
            name = each.get("content") if isinstance(each, dict) else each
            if name and isinstance(name, str):
                yield role, name


def _elements(value: object) -> list:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _unknown_of_model(tokenizer) -> int | None:
    """The id of the unknown token in the model of a `tokenizers.Tokenizer`; None without one."""
    if hasattr(tokenizer.model, "unk_token"):
        name = tokenizer.model.unk_token
        return None if name is None else tokenizer.token_to_id(name)
    # The library does not show this number of its unigram models.
    return json.loads(tokenizer.to_str())["model"].get("unk_id")


def single_token(row: Model, terminal: str, vocabulary: Vocabulary) -> int:
    """The id of the single token that represents a terminal.

    The tokenizer encodes the terminal as a word within a text or, if these are several tokens, as a
    text of its own, where some tokenizers add a blank at the start. The names of tokens are not
    compared with the terminal, because a name may differ from its token's text.

    Raises `UserError` if the tokenizer has no single token for the whole terminal, or if that token
    is special.
    """
    tokens = _of_terminal(vocabulary, terminal)
    ids = [token.id for token in tokens]
    names = [vocabulary.name(token) or str(token) for token in ids]
    if unknown := vocabulary.unknown.intersection(ids):
        raise UserError(
            f"{row.model}: its tokenizer does not know the terminal {terminal!r}, and gives its "
            f"unknown token {vocabulary.name(min(unknown))!r} for it; {REMEDY}"
        )
    if special := [vocabulary.special[token] for token in ids if token in vocabulary.special]:
        raise UserError(
            f"{row.model}: its tokenizer takes the terminal {terminal!r} for its special token "
            f"{special[0]!r}, which is no text; {REMEDY}"
        )
    if not ids:
        raise UserError(
            f"{row.model}: its tokenizer has no token for the terminal {terminal!r}; {REMEDY}"
        )
    if len(ids) != 1:
        raise UserError(
            f"{row.model}: its tokenizer splits the terminal {terminal!r} into {len(ids)} tokens "
            f"{names}; every terminal must be one token: {REMEDY}"
        )
    if names == [terminal] and BYTE.fullmatch(terminal):
        raise UserError(
            f"{row.model}: its tokenizer takes the terminal {terminal!r} for one byte of a letter; "
            f"{REMEDY}"
        )
    if not _is_whole(vocabulary, terminal, tokens[0]):
        raise UserError(
            f"{row.model}: its tokenizer leaves out a part of the terminal {terminal!r}, and gives "
            f"the token {names[0]!r} for it; {REMEDY}"
        )
    return ids[0]


def _of_terminal(vocabulary: Vocabulary, terminal: str) -> list[Token]:
    """The tokens of a terminal: within a text if that is one token, else alone."""
    alone = _encoded(vocabulary, terminal)
    both = (_within(vocabulary, terminal), alone)
    return next((tokens for tokens in both if len(tokens) == 1), alone)


def _within(vocabulary: Vocabulary, terminal: str) -> list[Token]:
    """The tokens of a terminal after another character; empty if they merge with that character."""
    before, both = _encoded(vocabulary, BEFORE), _encoded(vocabulary, BEFORE + terminal)
    return both[len(before) :] if both[: len(before)] == before else []


def _encoded(vocabulary: Vocabulary, text: str) -> list[Token]:
    """The tokens of a text; empty if the tokenizer fails, for example without an unknown token."""
    try:
        return vocabulary.encode(text)
    except Exception:  # the library raises nothing narrower
        return []


def _is_whole(vocabulary: Vocabulary, terminal: str, token: Token) -> bool:
    """Whether a terminal's single token stands for all of its characters.

    A tokenizer may drop letters that it does not know, and blanks at the ends. A token may stand
    for fewer characters than the terminal has if its letters become composed, see `forms`, or if
    a byte-level tokenizer counts no blanks, which are in the token's text. Where a tokenizer does
    not say how many characters a token stands for, the token's text must be the terminal, but for
    such forms, capitals and a blank before it.
    """
    text = vocabulary.text(token.id)
    if text == terminal:
        return True
    is_blank = not text.strip() and terminal.strip()  # such as of `▁`, which means one
    if REPLACED in text or is_blank:
        return False
    if token.width is None:
        plain, wanted = (unicodedata.normalize("NFKC", t).casefold() for t in (text, terminal))
        return plain in (wanted, f" {wanted}")
    forms = [terminal, *(unicodedata.normalize(form, terminal) for form in ("NFC", "NFKC"))]
    return any(
        found.width >= len(form)
        for form in dict.fromkeys(forms)
        for found in _of_terminal(vocabulary, form)
        if found.id == token.id
    )


def single_tokens(row: Model, terminals: Sequence[str], vocabulary: Vocabulary) -> tuple[int, ...]:
    """The ids of the terminals' tokens, all different; see `single_token`."""
    terminal_of: dict[int, str] = {}
    for terminal in terminals:
        token = single_token(row, terminal, vocabulary)
        if token in terminal_of:
            raise UserError(
                f"{row.model}: its tokenizer has one token for the terminals "
                f"{terminal_of[token]!r} and {terminal!r}; every terminal must be a token of its "
                f"own: {REMEDY}"
            )
        terminal_of[token] = terminal
    return tuple(terminal_of)


def check_local(row: Model, file: str | Path, languages: Iterable[Sequence[str]]) -> None:
    """Raise `UserError` if the `tokenizer.json` of a local folder has no token for a terminal.

    `languages` are the terminals of each language.
    """
    vocabulary = Vocabulary.of_file(file)
    for terminals in languages:
        single_tokens(row, terminals, vocabulary)
