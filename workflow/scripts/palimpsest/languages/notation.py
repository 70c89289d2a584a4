"""Reading NLTK's PCFG notation: from the text of a grammar to its rules as printed."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from palimpsest.languages.errors import GrammarError

EXAMPLE = "a rule reads A -> B 'c' [0.5]"
TOKEN = re.compile(
    r"""\s*(?:
      (?P<arrow>->)
    | (?P<bar>\|)
    | (?P<comment>\#.*)
    | (?P<probability>\[[^\]]*\])
    | (?P<terminal>'[^']*'|"[^"]*")
    | (?P<nonterminal>[\w/](?:(?!->)[\w/^<>-])*)
    )""",
    re.VERBOSE,
)
UNFINISHED = {"'": "unclosed quote", '"': "unclosed quote", "[": "unclosed bracket"}


class Symbol(NamedTuple):
    """A terminal (a symbol of strings) or a non-terminal (to be expanded)."""

    name: str
    terminal: bool

    def __str__(self) -> str:
        if not self.terminal:
            return self.name
        return f'"{self.name}"' if "'" in self.name else f"'{self.name}'"


class PrintedRule(NamedTuple):
    """One alternative of a rule, as it stands in the file."""

    lhs: str
    rhs: tuple[Symbol, ...]
    probability: float
    line: int


class PrintedGrammar(NamedTuple):
    """Everything a grammar file says, unchecked but for its syntax."""

    name: str
    rules: tuple[PrintedRule, ...]
    start: str
    start_line: int


class _Token(NamedTuple):
    kind: str
    text: str


def load(path: str | Path) -> str:
    """The text of a grammar file.

    Raises
    ------
    GrammarError
        If the file is missing, cannot be read, or is not UTF-8.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise GrammarError(
            f"{path}: no such file; a language is a grammar file such as config/languages/L1.pcfg"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise GrammarError(
            f"{path}: cannot be read ({reason}); give the path of a readable grammar file"
        ) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise GrammarError(
            f"{path}:{line}: not UTF-8 text (byte 0x{data[error.start]:02x}); "
            "save the file as UTF-8"
        ) from None


def read(text: str, name: str) -> PrintedGrammar:
    """Read a grammar in NLTK's PCFG notation; its start symbol is the first left-hand side.

    Parameters
    ----------
    text : str
        Lines such as ``A -> B 'c' [0.5] | 'd' [0.5]``; ``#`` starts a comment, ``%start A``
        names another start symbol, and a line that ends in a backslash goes on in the next.
    name : str
        What to call the text in messages, normally its path.

    Raises
    ------
    GrammarError
        If a line is not a rule, or there is no rule at all.
    """
    rules: list[PrintedRule] = []
    start: tuple[str, int] | None = None
    for number, line in _lines(text):
        where = f"{name}:{number}"
        if line.startswith("%"):
            start = _read_start(line, where), number
        else:
            rules += _read_rule(line, where, number)
    if not rules:
        raise GrammarError(f"{name}: empty file, it has no rules; {EXAMPLE}")
    start = start or (rules[0].lhs, rules[0].line)
    return PrintedGrammar(name, tuple(rules), *start)


def read_symbols(text: str) -> tuple[Symbol, ...]:
    """The symbols of a right-hand side, such as ``B 'c'``.

    Raises `GrammarError` if the text is not a right-hand side.
    """
    return tuple(_symbol(token, text) for token in _tokens(text, text))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that say something, each with the number of the line it begins on."""
    begun, number = "", 0
    for current, line in enumerate(text.split("\n"), start=1):
        number = number if begun else current
        line = begun + line.strip()
        if line.endswith("\\") and not line.startswith("#"):
            begun = line[:-1].rstrip() + " "
            continue
        begun = ""
        if line and not line.startswith("#"):
            yield number, line
    if begun.strip():
        yield number, begun.strip()


def _read_start(line: str, where: str) -> str:
    directive, *rest = line.split(maxsplit=1)
    if directive != "%start":
        raise GrammarError(f"{where}: unknown directive {_short(directive)}; only %start is known")
    tokens = _tokens(rest[0] if rest else "", where)
    if len(tokens) != 1 or tokens[0].kind != "nonterminal":
        raise GrammarError(f"{where}: %start must name one non-terminal, as in %start S")
    return tokens[0].text


def _read_rule(line: str, where: str, number: int) -> list[PrintedRule]:
    tokens = _tokens(line, where)
    if not tokens:
        return []
    lhs, *rest = tokens
    if lhs.kind != "nonterminal":
        raise GrammarError(
            f"{where}: the left-hand side is {_short(lhs.text)}; it must be a non-terminal, "
            f"not quoted: {EXAMPLE}"
        )
    if not rest or rest[0].kind != "arrow":
        raise GrammarError(f"{where}: missing arrow '->' after {_short(lhs.text)}; {EXAMPLE}")
    alternatives = _split(rest[1:])
    return [_read_alternative(lhs.text, tokens, where, number) for tokens in alternatives]


def _split(tokens: list[_Token]) -> list[list[_Token]]:
    """The alternatives between the bars."""
    alternatives: list[list[_Token]] = [[]]
    for token in tokens:
        if token.kind == "bar":
            alternatives.append([])
        else:
            alternatives[-1].append(token)
    return alternatives


def _read_alternative(lhs: str, tokens: list[_Token], where: str, number: int) -> PrintedRule:
    symbols = [token for token in tokens if token.kind in ("terminal", "nonterminal")]
    if not symbols:
        raise GrammarError(
            f"{where}: empty right-hand sides are not supported; "
            f"give every rule of {_short(lhs)} at least one symbol"
        )
    if any(token.kind == "arrow" for token in tokens):
        raise GrammarError(f"{where}: a second arrow '->'; write one rule per line")
    if tokens[-1].kind != "probability":
        last = _short(symbols[-1].text)
        raise GrammarError(f"{where}: missing probability after {last}; {EXAMPLE}")
    if len(tokens) != len(symbols) + 1:
        raise GrammarError(f"{where}: a rule has one probability, at its end; {EXAMPLE}")
    rhs = tuple(_symbol(token, where) for token in symbols)
    return PrintedRule(lhs, rhs, _probability(tokens[-1].text, where), number)


def _symbol(token: _Token, where: str) -> Symbol:
    if token.kind == "nonterminal":
        return Symbol(token.text, terminal=False)
    if len(token.text) == 2:
        raise GrammarError(f"{where}: an empty terminal ''; a terminal needs at least one letter")
    return Symbol(token.text[1:-1], terminal=True)


def _probability(text: str, where: str) -> float:
    try:
        value = float(text[1:-1])
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise GrammarError(
            f"{where}: probability {_short(text)} must be a number from 0 to 1, such as [0.3333]"
        )
    return value


def _tokens(line: str, where: str) -> list[_Token]:
    tokens, position, line = [], 0, line.rstrip()
    while position < len(line):
        match = TOKEN.match(line, position)
        if not match:
            rest = line[position:].lstrip()
            what = UNFINISHED.get(rest[0], "cannot read")
            raise GrammarError(f"{where}: {what} {_short(rest)}; {EXAMPLE}")
        tokens.append(_Token(match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return [token for token in tokens if token.kind != "comment"]


def _short(text: str, limit: int = 40) -> str:
    """The text in quotes, cut so that a message stays readable."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
