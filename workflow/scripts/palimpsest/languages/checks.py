"""Checking a printed grammar, and merging and normalising its rules."""

import warnings
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from palimpsest.errors import nearest
from palimpsest.languages import structure
from palimpsest.languages.errors import GrammarError, GrammarWarning
from palimpsest.languages.notation import PrintedGrammar, PrintedRule
from palimpsest.languages.structure import Rule

# Three rules printed as 0.3333 mean a third each, and give no warning.
WARN_OFF_BY = 0.01
REFUSE_OFF_BY = 0.05
# Sums of decimals such as 0.55 + 0.4 have a rounding error.
ROUNDING = 1e-9
LONGEST_EXPECTED = 1_000_000
MOST_TERMINALS = 65_535


def checked_rules(printed: PrintedGrammar) -> tuple[Rule, ...]:
    """The grammar's rules: duplicates summed, probabilities normalised, zeros dropped.

    Raises
    ------
    GrammarError
        If a non-terminal has no rules, if the probabilities of its rules do not sum to 1, or if a
        derivation from the start symbol may never end.

    Warns
    -----
    GrammarWarning
        If probabilities had to be normalised by more than 0.01, or rules can never be used.
    """
    check_defined(printed)
    rules = merge(printed)
    check_reachable(rules, printed)
    check_productive(rules, printed)
    check_lengths(rules, printed)
    check_terminals(rules, printed)
    return rules


def check_defined(printed: PrintedGrammar) -> None:
    """Every non-terminal that is named must have rules."""
    known = dict.fromkeys(rule.lhs for rule in printed.rules)
    if printed.start not in known:
        raise GrammarError(
            f"{printed.name}:{printed.start_line}: no start symbol: %start names "
            f"{printed.start!r}, which has no rules{nearest(printed.start, known)}; "
            "name the left-hand side of a rule"
        )
    for rule in printed.rules:
        for symbol in rule.rhs:
            if not symbol.terminal and symbol.name not in known:
                raise GrammarError(
                    f"{printed.name}:{rule.line}: non-terminal {symbol.name!r} has no rules"
                    f"{nearest(symbol.name, known)}; add a rule, or quote it if it is a terminal"
                )


def merge(printed: PrintedGrammar) -> tuple[Rule, ...]:
    """One rule for each expansion, with normalised probabilities, in the order of the file."""
    by_lhs: dict[str, list[PrintedRule]] = defaultdict(list)
    for rule in printed.rules:
        by_lhs[rule.lhs].append(rule)
    totals = {lhs: total(rules, printed.name) for lhs, rules in by_lhs.items()}
    merged: dict[tuple, float] = defaultdict(float)
    for rule in printed.rules:
        merged[rule.lhs, rule.rhs] += rule.probability
    return tuple(
        Rule(lhs, rhs, probability / totals[lhs])
        for (lhs, rhs), probability in merged.items()
        if probability > 0
    )


def total(rules: Sequence[PrintedRule], name: str) -> float:
    """The sum of one left-hand side's probabilities; an error if it is not near 1."""
    result = sum(rule.probability for rule in rules)
    off_by = abs(result - 1) - ROUNDING
    lines = listed([str(line) for line in dict.fromkeys(rule.line for rule in rules)])
    found = (
        f"{name}:{rules[-1].line}: the rules of {rules[0].lhs} sum to {decimal(result)}; "
        f"they must sum to 1 (rules at line{'s' if ' ' in lines else ''} {lines})"
    )
    if off_by > REFUSE_OFF_BY:
        raise GrammarError(found)
    if off_by > WARN_OFF_BY:
        warn(f"{found}: normalised")
    return result


def check_reachable(rules: Sequence[Rule], printed: PrintedGrammar) -> None:
    """Warn of the non-terminals that no derivation can reach."""
    reached = structure.reachable(rules, printed.start)
    line = {rule.lhs: rule.line for rule in reversed(printed.rules)}
    unused = [symbol for symbol in line if symbol not in reached]
    if unused:
        unused.sort(key=line.get)
        warn(
            f"{printed.name}:{line[unused[0]]}: never reached from {printed.start}: "
            f"{listed(unused)}; the rules are kept, but take no part in the language"
        )


def check_productive(rules: Sequence[Rule], printed: PrintedGrammar) -> None:
    """Every non-terminal in use must derive at least one finite string."""
    productive = structure.productive(rules)
    # Bottom-up, because the first failure causes the failures above it.
    for component in structure.components(rules, printed.start):
        for symbol in component:
            if symbol not in productive:
                raise GrammarError(
                    f"{printed.name}:{first_line(printed, [symbol])}: {symbol} derives no finite "
                    "string; give it a rule that leads to terminals"
                )


def check_lengths(rules: Sequence[Rule], printed: PrintedGrammar) -> None:
    """The expected length of strings must be finite, and not too large."""
    for loop in structure.loops(rules, printed.start):
        growth = np.abs(np.linalg.eigvals(structure.mean_matrix(rules, loop))).max()
        if growth >= 1 - ROUNDING:
            raise GrammarError(
                f"{printed.name}:{first_line(printed, loop)}: strings have infinite expected "
                f"length: {listed(sorted(loop))} {'leads' if len(loop) == 1 else 'lead'} back to "
                f"{'itself' if len(loop) == 1 else 'themselves'} {growth:.4g} times on average; "
                "this must be less than 1, so give a higher probability to the rules that end the "
                "loop"
            )
    reached = structure.reachable(rules, printed.start)
    with np.errstate(all="ignore"):
        length = structure.expected_length(rules, reached)
    if not length <= LONGEST_EXPECTED:
        raise GrammarError(
            f"{printed.name}: strings have an expected length of {length:.3g} symbols; "
            f"at most {LONGEST_EXPECTED:,} are supported"
        )


def check_terminals(rules: Sequence[Rule], printed: PrintedGrammar) -> None:
    """Terminals must fit into 16-bit codes; the last code means `outside the alphabet`."""
    count = len({symbol for rule in rules for symbol in rule.rhs if symbol.terminal})
    if count > MOST_TERMINALS:
        raise GrammarError(
            f"{printed.name}: {count:,} different terminals; at most {MOST_TERMINALS:,} are "
            "supported"
        )


def first_line(printed: PrintedGrammar, symbols: Sequence[str]) -> int:
    """The line of the first rule for one of the non-terminals."""
    return min(rule.line for rule in printed.rules if rule.lhs in symbols)


def warn(message: str) -> None:
    """Warn of an oddity that does not stop the grammar from being used."""
    warnings.warn(GrammarWarning(message), stacklevel=2)


def listed(words: Sequence[str], most: int = 10) -> str:
    """`5`, `5 and 7`, `5, 7 and 9`; a long list is cut and counted."""
    if len(words) > most:
        words = [*words[:most], f"{len(words) - most} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def decimal(value: float) -> str:
    """`0.90`, `0.9499`: two decimals, or up to six if fewer would hide the difference."""
    whole, _, decimals = f"{value:.6f}".rstrip("0").partition(".")
    return f"{whole}.{decimals:0<2}"
