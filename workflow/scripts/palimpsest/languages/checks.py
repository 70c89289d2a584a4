"""Checking a printed grammar, and merging and normalising its rules."""

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from palimpsest.errors import nearest
from palimpsest.languages import structure
from palimpsest.languages.errors import GrammarError, GrammarWarning
from palimpsest.languages.notation import PrintedGrammar, PrintedRule
from palimpsest.languages.structure import Rule, is_of_field
from palimpsest.plain_text import two_spellings, unusual_characters

# Three rules printed as 0.3333 mean a third each, and give no warning.
WARN_OFF_BY = 0.01
REFUSE_OFF_BY = 0.05
# A loop this near to 1 counts as one that never ends.
ROUNDING = 1e-9
NO_DIFFERENCE = 1e-12  # of a computed number from 1
LONGEST_EXPECTED = 1_000_000
MOST_EXPECTED_RULES = 100_000_000
# In symbols: the context of a small model. Few strings of a language should be longer.
LONG = 1_024
WARN_SHARE_LONG = 0.001
NOTHING = {"\u03b5", "\u03f5", "\u03bb", "\u2205", "epsilon", "eps", "EPSILON", "Epsilon"}
MOST_TERMINALS = 65_535


def checked_rules(printed: PrintedGrammar) -> tuple[Rule, ...]:
    """The grammar's rules: duplicates summed, probabilities normalised, zeros dropped.

    If no rule of a non-terminal has a probability, all are equally probable.

    Raises `GrammarError` if a non-terminal has no rules, if the probabilities of its rules do not
    sum to 1, if a derivation from the start symbol may never end, or if all strings are empty.

    Warns with `GrammarWarning` if probabilities are missing, or had to be normalised by more than
    0.01, if rules can never be used, or if terminals have letters that nobody sees, or that are
    written in two ways.
    """
    check_defined(printed)
    check_fields(printed)
    check_characters(printed)
    printed = complete(printed)
    rules = merge(printed)
    check_reachable(rules, printed)
    check_productive(rules, printed)
    check_terminals(rules, printed)
    check_lengths(rules, printed)
    return rules


def check_defined(printed: PrintedGrammar) -> None:
    """Every non-terminal in a rule must have rules of its own."""
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
                remedy = "add a rule, or quote it if it is a terminal"
                if symbol.name in NOTHING:
                    remedy = "an empty right-hand side is written as nothing: A -> [0.5]"
                raise GrammarError(
                    f"{printed.name}:{rule.line}: non-terminal {symbol.name!r} has no rules"
                    f"{nearest(symbol.name, known)}; {remedy}"
                )


def check_fields(printed: PrintedGrammar) -> None:
    """Every field is a part of a text, and has a non-terminal."""
    known = dict.fromkeys(rule.lhs for rule in printed.rules)
    for field, line in printed.fields.items():
        if not printed.is_text:
            raise GrammarError(
                f"{printed.name}:{line}: {field} is a field, and fields are parts of a text; add a "
                "line %text, which says that terminals are pieces of text"
            )
        if not any(is_of_field(symbol, field) for symbol in known):
            raise GrammarError(
                f"{printed.name}:{line}: the field {field!r} has no rules{nearest(field, known)}; "
                f"name a non-terminal, or what stands before the hyphen in several: {field}-1"
            )


def check_characters(printed: PrintedGrammar) -> None:
    """Warn of invisible or ambiguous letters in terminals."""
    lines = [(rule.line, [s.name for s in rule.rhs if s.terminal]) for rule in printed.rules]
    texts = [(number, "".join(terminals)) for number, terminals in lines]
    words = {word for _, terminals in lines for word in terminals}
    part = "is part of a terminal"
    remarks = [*unusual_characters(texts, part, part), *two_spellings(words, lines, "terminals")]
    if remarks:
        warn(f"{printed.name}: {'; '.join(remarks)}")


def complete(printed: PrintedGrammar) -> PrintedGrammar:
    """The same grammar with a probability at every rule; an error if only some rules have one."""
    uniform = {}
    for lhs, rules in by_left_hand_side(printed).items():
        without = [rule for rule in rules if rule.probability is None]
        if not without:
            continue
        if len(without) < len(rules):
            given = [rule for rule in rules if rule.probability is not None]
            raise GrammarError(
                f"{printed.name}:{without[0].line}: missing probability: {listed_lines(given)} "
                f"gave probabilities to rules of {lhs}, and {listed_lines(without)} gave none; "
                "give one to every rule, or to none, which makes all rules equally probable"
            )
        uniform[lhs] = Fraction(1, len(rules))
    if not uniform:
        return printed
    # A single rule has the probability 1, however it is written.
    several = [lhs for lhs, share in uniform.items() if share < 1]
    without = [rule for rule in printed.rules if rule.lhs in several]
    if several:
        times = Counter((rule.lhs, rule.rhs) for rule in without)
        repeated = [rule for rule in without if times[rule.lhs, rule.rhs] > 1]
        empty = [rule for rule in without if not rule.rhs]
        warn(
            f"{printed.name}:{without[0].line}: no probabilities for the rules of "
            f"{listed(several)}: they are taken as equally probable"
            + (f"; repeated rules add up ({listed_lines(repeated)})" if repeated else "")
            + (f"; so are empty right-hand sides ({listed_lines(empty)})" if empty else "")
        )
    rules = (
        rule._replace(probability=uniform[rule.lhs]) if rule.lhs in uniform else rule
        for rule in printed.rules
    )
    return printed._replace(rules=tuple(rules))


def by_left_hand_side(printed: PrintedGrammar) -> dict[str, list[PrintedRule]]:
    found: dict[str, list[PrintedRule]] = defaultdict(list)
    for rule in printed.rules:
        found[rule.lhs].append(rule)
    return found


def merge(printed: PrintedGrammar) -> tuple[Rule, ...]:
    """One rule for each expansion, with normalised probabilities, in the order of the file.

    The sums are exact, so that the same numbers written in another way give the same floats.
    """
    totals = {lhs: total(rules, printed.name) for lhs, rules in by_left_hand_side(printed).items()}
    merged: dict[tuple, Fraction] = defaultdict(Fraction)
    for rule in printed.rules:
        merged[rule.lhs, rule.rhs] += rule.probability
    return tuple(
        Rule(lhs, rhs, float(probability / totals[lhs]))
        for (lhs, rhs), probability in merged.items()
        if probability > 0
    )


def total(rules: Sequence[PrintedRule], name: str) -> Fraction:
    """The sum of one left-hand side's probabilities; an error if it is not near 1."""
    result = sum(rule.probability for rule in rules)
    off_by = abs(float(result - 1)) - ROUNDING
    found = (
        f"{name}:{rules[-1].line}: the rules of {rules[0].lhs} sum to {decimal(float(result))}; "
        f"they must sum to 1 (rules at {listed_lines(rules)})"
    )
    if off_by > REFUSE_OFF_BY:
        raise GrammarError(found)
    if off_by > WARN_OFF_BY:
        warn(f"{found}: normalised")
    return result


def check_reachable(rules: Sequence[Rule], printed: PrintedGrammar) -> None:
    """Warn of the non-terminals that no derivation from the start symbol reaches."""
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
    """The expected length of strings must be finite and not too large."""
    by_lhs: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_lhs[rule.lhs].append(rule)
    for loop in structure.loops(rules, printed.start):
        matrix = structure.mean_matrix([rule for a in loop for rule in by_lhs[a]], loop)
        if structure.ends(matrix, within=1 / ROUNDING):
            continue
        growth = structure.growth(matrix)
        if growth >= 1 - ROUNDING:
            one = len(loop) == 1
            # Strings of a loop below 1 are finite, but their probabilities would be inexact.
            finite = growth < 1 - NO_DIFFERENCE
            what = "derivations that are too long" if finite else "infinite expected length"
            must = f"be at most {1 - ROUNDING!r}" if finite else "be less than 1"
            raise GrammarError(
                f"{printed.name}:{first_line(printed, loop)}: strings have {what}: "
                f"{listed(sorted(loop))} {'leads' if one else 'lead'} back to "
                f"{'itself' if one else 'themselves'} {near_one(growth)} times on average; this "
                f"must {must}, so give a higher probability to the rules that end the loop"
            )
    with np.errstate(all="ignore"):
        length = structure.expected_lengths(rules, printed.start)[printed.start]
        steps = structure.expected_totals(rules, printed.start, dict.fromkeys(by_lhs, 1.0))
    if not length <= LONGEST_EXPECTED:
        raise GrammarError(
            f"{printed.name}: strings have an expected length of {length:.3g} symbols; "
            f"at most {LONGEST_EXPECTED:,} are supported, so shorten the rules, or give a higher "
            "probability to those that end loops"
        )
    if not steps[printed.start] <= MOST_EXPECTED_RULES:
        raise GrammarError(
            f"{printed.name}: derivations have an expected {steps[printed.start]:.3g} rules; "
            f"at most {MOST_EXPECTED_RULES:,} are supported, so give a higher probability to the "
            "rules that end loops"
        )


def check_terminals(rules: Sequence[Rule], printed: PrintedGrammar) -> None:
    """Some string has a symbol, and terminals fit into 16-bit codes (the last one: no terminal)."""
    reached = set(structure.reachable(rules, printed.start))
    used = {s for rule in rules if rule.lhs in reached for s in rule.rhs if s.terminal}
    if not used:
        raise GrammarError(
            f"{printed.name}:{first_line(printed, [printed.start])}: {printed.start} derives only "
            "the empty string; give it a rule that leads to terminals"
        )
    count = len({symbol for rule in rules for symbol in rule.rhs if symbol.terminal})
    if count > MOST_TERMINALS:
        raise GrammarError(
            f"{printed.name}: {count:,} different terminals; at most {MOST_TERMINALS:,} are "
            "supported"
        )


def check_long_strings(grammar) -> None:
    """Warn if many strings of a `Grammar` are very long; most need no exact share.

    Pieces of text are no tokens, so their number says little about a text.
    """
    if grammar.is_text or grammar.most_longer_than(LONG) < WARN_SHARE_LONG:
        return
    share = grammar.probability_longer_than(LONG)
    if share > WARN_SHARE_LONG:
        remedy = "give a higher probability to the rules that end loops"
        if math.isfinite(grammar.longest()):
            remedy = "shorten the rules; or choose models that take more symbols"
        warn(
            f"{grammar.name}: strings have {grammar.expected_length():,.4g} symbols on average, "
            f"and {100 * share:.3g} % of them have more than {LONG:,}; for shorter strings, "
            f"{remedy}"
        )


def first_line(printed: PrintedGrammar, symbols: Sequence[str]) -> int:
    return min(rule.line for rule in printed.rules if rule.lhs in symbols)


def listed_lines(rules: Sequence[PrintedRule]) -> str:
    lines = list(dict.fromkeys(str(rule.line) for rule in rules))
    return f"line{'s' if len(lines) > 1 else ''} {listed(lines)}"


def warn(message: str) -> None:
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


def near_one(value: float) -> str:
    """`1.095`, `0.9999999999`: four digits, or twelve if fewer would show another number as 1."""
    short = f"{value:.4g}"
    return f"{value:.12g}" if short == "1" else short
