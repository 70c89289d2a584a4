"""Targets that Snakemake cannot make: one line that names the nearest ones."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from palimpsest.errors import UserError, near_names, nearest
from palimpsest.launch import asked_targets

NO_RULE = re.compile(r"No rule to produce (.+) \(if you use input functions", re.DOTALL)
NO_INPUT = re.compile(r"Missing input files for rule (\w+):.*affected files:\s*(.+)", re.DOTALL)
NO_VALUE = re.compile(r"Error:\s+(\w+): (.+)\nWildcards:", re.DOTALL)
# Errors of a function for inputs or parameters that are about a value in the target
OF_A_VALUE = {"UserError", "KeyError"}
OF_WILDCARDS = "Target rules may not contain wildcards"
LIST = "snakemake --list-target-rules"
OF_A_NAME = re.compile(r"[A-Za-z0-9._/-]*")


class PlainTargetErrors(logging.Filter):
    """Puts one line in the place of Snakemake's errors about a target that it cannot make.

    `known` gives the names of rules and the files that can be requested. `patterns` gives the first
    output of each rule that is no target, because it has wildcards. Both are called only after an
    error. Other messages stay as they are.
    """

    def __init__(
        self, known: Callable[[], Iterable[str]], patterns: Callable[[], Mapping[str, str]]
    ):
        super().__init__()
        self._known, self._patterns = known, patterns

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the text of such an error; keep every message."""
        about = {
            "MissingRuleException": self._no_rule,
            "MissingInputException": self._no_input,
            "InputFunctionException": self._no_value,
            "WorkflowError": self._wildcards,
        }.get(getattr(record, "exception", None))
        line = about and about(record.getMessage())
        if line:
            record.msg, record.args = f"error: {UserError(line)}", ()
        return True

    def _no_rule(self, message: str) -> str | None:
        found = NO_RULE.search(message)
        return found and unknown_target(found[1], self._known())

    def _no_input(self, message: str) -> str | None:
        found = NO_INPUT.search(message)
        if not found:
            return None
        file = found[2].splitlines()[0].strip()
        beside = (path.as_posix() for path in Path(file).parent.glob("*"))
        hint = nearest(file, beside)
        return f"{file}: no such file, and no rule makes it{hint}; rule {found[1]} reads it"

    def _wildcards(self, message: str) -> str | None:
        if OF_WILDCARDS not in message:
            return None
        patterns = self._patterns()
        target = next(iter(patterns.keys() & (asked_targets(sys.argv[1:]) or ())), None)
        return target and of_a_rule_with_wildcards(target, patterns[target])

    def _no_value(self, message: str) -> str | None:
        found = NO_VALUE.search(message)
        if not found or found[1] not in OF_A_VALUE or "unknown" not in found[2]:
            return None
        return found[2].strip().strip("\"'")


def of_a_rule_with_wildcards(target: str, pattern: str) -> str:
    pattern = re.sub(r"\{(\w+),.*?\}(?=[^}]|$)", r"{\1}", pattern)
    return (
        f"{target}: is a rule for many files, such as {pattern}; ask for one of these files, or "
        f"for a target of {LIST}"
    )


def unknown_target(target: str, known: Iterable[str]) -> str:
    """The line about a target that no rule makes: up to three near names of its kind."""
    is_path = "/" in target
    alike = [name for name in known if ("/" in name) == is_path]
    near = near_names(target, alike, 3, 0.6)
    hint = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
    if not OF_A_NAME.fullmatch(target):
        hint += "; names have only letters from a to z, digits, '.', '_' and '-'"
    return f"{target}: no rule makes this target{hint}; {LIST} lists the names of targets"
