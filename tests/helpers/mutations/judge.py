"""The judge: whether a mutation gave the same result, one true line, or neither."""

import contextlib
import io
import random
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from palimpsest.errors import UserError

SAME, REFUSED, NEITHER = "same", "refused", "neither"
# Words of a remedy, or of what is allowed
REMEDY = re.compile(
    r"\b(must|allowed|known|choose|write|give|save|set|keep|add|correct|mend|delete|use|leave|rename"
    r"|remove|has the columns|make|put|quote|convert|lower|reads|one of|did you mean"
    r"|not a finite number|no key is this deep)\b",
    re.IGNORECASE,
)
TECHNICAL = re.compile(r"\bnp\.|Traceback|object at 0x|\bdtype\b|<class ")
LONGEST = 1000


@dataclass(frozen=True)
class Mutation:
    """An input that was changed: its files, the main one first, and what must come of it.

    `expected` is the result that the content must have; None if the input must be refused. A
    refusal has to match each pattern of `named`. What is plainly valid must be read: a refusal of
    it would not be true.
    """

    what: str
    files: dict[str, bytes]
    expected: bytes | None
    named: tuple[str, ...] = ()
    must_be_read: bool = False


@dataclass(frozen=True)
class Family:
    """A kind of input: its reader, from a path to the result as bytes, and its mutations."""

    name: str
    read: Callable[[Path], bytes]
    draw: Callable[[random.Random], Mutation]


@dataclass(frozen=True)
class Verdict:
    """What a mutation came to, and why it is neither."""

    family: str
    mutation: Mutation
    outcome: str
    why: str = ""


@dataclass
class Tally:
    """All verdicts of a family."""

    verdicts: list[Verdict] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        return sum(verdict.outcome == outcome for verdict in self.verdicts)

    @property
    def faults(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.outcome == NEITHER]


def verdict(family: Family, mutation: Mutation) -> Verdict:
    """Read a mutation in an empty folder, and judge what comes of it."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in mutation.files.items():
            (Path(folder) / name).write_bytes(content)
        path = Path(folder) / next(iter(mutation.files))
        outcome, why = _outcome(family, mutation, path)
        left = {place.name: place.read_bytes() for place in Path(folder).rglob("*")}
        if left != mutation.files:
            outcome, why = NEITHER, f"changed files: {sorted(left)}"
    return Verdict(family.name, mutation, outcome, why)


def _outcome(family: Family, mutation: Mutation, path: Path) -> tuple[str, str]:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning is no refusal, and changes no result
            result = family.read(path)
    except UserError as error:
        fault = fault_of_line(str(error).replace(f"{path.parent}/", ""), mutation.named)
        if mutation.must_be_read:
            fault = f"refused, and is valid: {error}"
        return (NEITHER, fault) if fault else (REFUSED, "")
    except Exception as error:  # what a user would see as a traceback
        return NEITHER, f"{type(error).__name__}: {error}"
    if mutation.expected is None:
        return NEITHER, "accepted"
    return (SAME, "") if result == mutation.expected else (NEITHER, "another result")


def fault_of_line(line: str, named: Iterable[str]) -> str:
    """What a refusal lacks; empty if it is one printable line that names all, with a remedy."""
    if not line.isprintable() or len(line) > LONGEST:
        return f"not one line to read: {line[:80]!r}"
    if TECHNICAL.search(line):
        return f"speaks of the implementation: {line}"
    missing = [pattern for pattern in named if not re.search(pattern, line)]
    if missing:
        return f"does not name {missing[0]!r}: {line}"
    return "" if REMEDY.search(line) else f"no remedy: {line}"


def judged(family: Family, n: int, number: int) -> Tally:
    """The verdicts on `n` mutations that hypothesis draws from a seed, always the same ones."""
    tally = Tally()

    @seed(number)
    @settings(
        max_examples=n,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=True))
    def judge(chance: random.Random) -> None:
        tally.verdicts.append(verdict(family, family.draw(chance)))

    judge()
    return tally
