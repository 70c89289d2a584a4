"""Reading NLTK's PCFG notation: from the text of a grammar to its rules as printed."""

import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from palimpsest.errors import nearest
from palimpsest.languages.errors import GrammarError
from palimpsest.plain_text import ENCODING, has_zero_bytes, not_utf8

EXAMPLE = "a rule reads A -> B 'c' [0.5]"
# A name may hold a bar only before '<', as in the names A|<B-C> of NLTK's Chomsky normal form.
TOKEN = re.compile(
    r"""\s*(?:
      (?P<arrow>->|\u2192)
    | (?P<bar>\|)
    | (?P<comment>\#.*)
    | (?P<probability>\[[^\]]*\])
    | (?P<terminal>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<nonterminal>(?:(?!->)[^\s'"\[\]|;\#\u2192\u2018\u2019\u201c\u201d]|\|(?=<))+)
    )""",
    re.VERBOSE,
)
ESCAPE = re.compile(r"""\\([\\'"])""")
NEEDS_ESCAPE = re.compile(r"""\\(?=[\\'"]|\Z)""")
NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?|\d+\s*/\s*0*[1-9]\d*", re.ASCII)
PERCENT = re.compile(r"(\d+\.?\d*|\.\d+)\s*%", re.ASCII)
COMMA = re.compile(r"\d*,\d+", re.ASCII)
MOST_DIGITS = 400  # of a probability; the smallest float64 takes 330 without an exponent
SMALLEST = sys.float_info.min
START, TEXT, FIELD = DIRECTIVES = "%start", "%text", "%field"
NLTK_HEADER = re.compile(r"Grammar with \d+ productions \(start state = (.+)\)")
UNFINISHED = {
    "'": "unclosed quote",
    '"': "unclosed quote",
    "[": "unclosed bracket",
    **dict.fromkeys("\u2018\u2019\u201c\u201d", "curly quotes are not read; write ' or \" for"),
}


class Symbol(NamedTuple):
    """A terminal (a symbol of strings) or a non-terminal (to be expanded)."""

    name: str
    terminal: bool

    def __str__(self) -> str:
        if not self.terminal:
            return self.name
        name = NEEDS_ESCAPE.sub(r"\\\\", self.name)
        if "'" not in name:
            return f"'{name}'"
        return '"' + name.replace('"', r"\"") + '"'


class PrintedRule(NamedTuple):
    """One alternative of a rule, as written in the file; its probability may be missing."""

    lhs: str
    rhs: tuple[Symbol, ...]
    probability: Fraction | None
    line: int


class PrintedGrammar(NamedTuple):
    """A grammar file, with its syntax checked and nothing else."""

    name: str
    rules: tuple[PrintedRule, ...]
    start: str
    start_line: int
    is_text: bool
    fields: dict[str, int]  # the line of each


class _Token(NamedTuple):
    kind: str
    text: str


def load(path: str | Path) -> str:
    """The text of a grammar file.

    Raises `GrammarError` if the file is missing, cannot be read, or is not UTF-8.
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
        text = data.decode(ENCODING)
    except UnicodeDecodeError:
        raise GrammarError(not_utf8(path)) from None
    if "\0" in text:
        raise GrammarError(has_zero_bytes(path, text))
    return text


def read(text: str, name: str) -> PrintedGrammar:
    """Read a grammar in NLTK's PCFG notation; its start symbol is the first left-hand side.

    Parameters
    ----------
    text : str
        Lines such as ``A -> B 'c' [0.5] | 'd' [0.5]``; ``#`` starts a comment, ``%start A``
        names another start symbol, ``%text`` says that terminals are pieces of text, ``%field A B``
        names fields of the text, and a line that ends in a backslash goes on in the next. What
        NLTK prints for a grammar is read too: its first line names the start symbol.
    name : what to call the text in messages, normally its path

    Raises `GrammarError` if a line is not a rule, or there is no rule at all.
    """
    rules: list[PrintedRule] = []
    lines_of: dict[str, dict[str, int]] = {directive: {} for directive in DIRECTIVES}
    for number, line in _lines(text):
        where = f"{name}:{number}"
        found = _directive(line, where)
        if found is None:
            rules += _read_rule(line, where, number)
            continue
        directive, names = found
        for named in names or [""]:  # %text has no names
            _check_new(directive, named, where, lines_of[directive])
            lines_of[directive].setdefault(named, number)
    if not rules:
        raise GrammarError(f"{name}: empty file, it has no rules; {EXAMPLE}")
    start, *_ = [*lines_of[START].items(), (rules[0].lhs, rules[0].line)]
    return PrintedGrammar(name, tuple(rules), *start, bool(lines_of[TEXT]), lines_of[FIELD])


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with rules or settings, each with the number of its first line in the file."""
    begun, number = "", 0
    lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))
    for current, line in enumerate(lines, start=1):
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


def _directive(line: str, where: str) -> tuple[str, list[str]] | None:
    """A directive and the names after it; None for a line with rules."""
    if printed := NLTK_HEADER.fullmatch(line):
        return START, [printed[1]]
    if not line.startswith("%"):
        return None
    directive, *rest = line.split(maxsplit=1)
    if directive not in DIRECTIVES:
        raise GrammarError(
            f"{where}: unknown directive {_short(directive)}{nearest(directive, DIRECTIVES)}; "
            f"known are {', '.join(DIRECTIVES)}"
        )
    tokens = _tokens(rest[0] if rest else "", where)
    are_names = all(token.kind == "nonterminal" for token in tokens)
    if directive == START and (len(tokens) != 1 or not are_names):
        raise GrammarError(f"{where}: %start must name one non-terminal, as in %start S")
    if directive == TEXT and tokens:
        raise GrammarError(
            f"{where}: {_short(tokens[0].text)} after %text; nothing else stands in this line"
        )
    if directive == FIELD and not (tokens and are_names):
        raise GrammarError(f"{where}: %field must name non-terminals, as in %field EMAIL PHONE")
    return directive, [token.text for token in tokens]


def _check_new(directive: str, named: str, where: str, lines: dict[str, int]) -> None:
    """A start symbol may be named again; another one may not, and nothing else may be repeated."""
    if directive == START and lines and named not in lines:
        ((other, line),) = lines.items()
        raise GrammarError(
            f"{where}: names the start symbol {named!r}, and line {line} names {other!r}; "
            "a grammar has one start symbol: delete one of these lines"
        )
    if directive != START and named in lines:
        repeated = f"{directive} {named}".rstrip()
        raise GrammarError(f"{where}: {repeated} was in line {lines[named]}; delete one of them")


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
    if any(token.kind == "arrow" for token in tokens):
        raise GrammarError(f"{where}: a second arrow '->'; write one rule per line")
    if any(token.kind == "probability" for token in tokens[:-1]):
        raise GrammarError(f"{where}: a rule has one probability, at its end; {EXAMPLE}")
    symbols, probability = tokens, None
    if tokens and tokens[-1].kind == "probability":
        symbols, probability = tokens[:-1], _probability(tokens[-1].text, where)
    rhs = tuple(_symbol(token, where) for token in symbols)
    return PrintedRule(lhs, rhs, probability, number)


def _symbol(token: _Token, where: str) -> Symbol:
    if token.kind == "nonterminal":
        return Symbol(token.text, terminal=False)
    if len(token.text) == 2:
        raise GrammarError(
            f"{where}: an empty terminal {token.text}; a terminal needs at least one letter, and "
            "an empty right-hand side is written as nothing: A -> [0.5]"
        )
    return Symbol(ESCAPE.sub(r"\1", token.text[1:-1]), terminal=True)


def _probability(text: str, where: str) -> Fraction:
    """The exact value of `[0.25]`, `[1/4]` or `[2.5e-1]`."""
    written = text[1:-1].strip()
    if len(written) > MOST_DIGITS or not NUMBER.fullmatch(written):
        raise _not_a_probability(text, where)
    above, _, below = written.partition("/")
    # A Decimal keeps its exponent: as a Fraction, 1e-999999999 would fill the memory.
    value = Fraction(int(above), int(below)) if below else Decimal(written)
    if value > 1:
        raise _not_a_probability(text, where)
    if 0 < value < SMALLEST:
        raise GrammarError(
            f"{where}: probability {_short(text)} is below {SMALLEST:.3g}, the smallest that is "
            "kept; write a larger one, or delete the rule"
        )
    return Fraction(value or 0)


def _not_a_probability(text: str, where: str) -> GrammarError:
    written = text[1:-1].strip()
    remedy = ""
    if percent := PERCENT.fullmatch(written):
        remedy = f"; write it as [{float(percent[1]) / 100:g}]"
    elif COMMA.fullmatch(written):
        remedy = f"; write it with a point: [{written.replace(',', '.')}]"
    return GrammarError(
        f"{where}: probability {_short(text)} must be a number from 0 to 1, such as [0.3333], "
        f"[1/3] or [1e-5]{remedy}"
    )


def _tokens(line: str, where: str) -> list[_Token]:
    tokens, position, line = [], 0, line.rstrip()
    while position < len(line):
        match = TOKEN.match(line, position)
        if not match:
            rest = line[position:].lstrip()
            what = UNFINISHED.get(rest[0], "cannot read")
            escaped = what == "unclosed quote" and "\\" in rest
            remedy = r"a backslash before a quote is written \\" if escaped else EXAMPLE
            raise GrammarError(f"{where}: {what} {_short(rest)}; {remedy}")
        tokens.append(_Token(match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return [token for token in tokens if token.kind != "comment"]


def _short(text: str, limit: int = 40) -> str:
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
