"""Sampling strings: a stack machine over flat tables, compiled."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from palimpsest.allowed import COUNTS, checked_number
from palimpsest.languages import structure
from palimpsest.languages.encoding import EncodedStrings
from palimpsest.languages.errors import GrammarError
from palimpsest.languages.structure import Rule

END = -1
FIRST_NONTERMINAL = -2
SYMBOLS_FULL = -1
STACK_FULL = -2
LONGEST = 100_000  # symbols of a sampled string, unless the caller says otherwise
_STEP = np.uint64(0x9E3779B97F4A7C15)


class SamplingTables(NamedTuple):
    """A grammar as the sampler reads it; non-terminal 0 is the start.

    The rules of non-terminal `a` are `first_rule[a]` to `first_rule[a + 1]`. The right-hand side
    of rule `r` begins at `symbols[first_symbol[r]]` and goes on to END, a terminal written as its
    code and non-terminal `a` as `FIRST_NONTERMINAL - a`. Before all rules stands the start symbol
    alone, as if it were a right-hand side. A rule is drawn from an alias table:
    pick one evenly, keep it with probability `keep`, else take `alias` (Walker 1977).
    """

    first_rule: np.ndarray  # int32[nonterminals + 1]
    keep: np.ndarray  # float64[rules]
    alias: np.ndarray  # int32[rules]
    log_probability: np.ndarray  # float64[rules]
    first_symbol: np.ndarray  # int32[rules]
    symbols: np.ndarray  # int32[total]
    expected_length: float


def tables(
    rules: Sequence[Rule], reachable: Sequence[str], terminals: Sequence[str]
) -> SamplingTables:
    """Tables of the rules of `reachable`, whose first non-terminal is the start."""
    by_lhs: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_lhs[rule.lhs].append(rule)
    place = {symbol: index for index, symbol in enumerate(reachable)}
    code = {terminal: index for index, terminal in enumerate(terminals)}
    first_rule, keep, alias, log_probability = [0], [], [], []
    first_symbol, symbols = [], [FIRST_NONTERMINAL, END]
    for lhs in reachable:
        probabilities = [rule.probability for rule in by_lhs[lhs]]
        kept, other = alias_table(probabilities)
        keep += kept
        alias += [first_rule[-1] + index for index in other]
        log_probability += np.log(probabilities).tolist()
        first_rule.append(len(keep))
        for rule in by_lhs[lhs]:
            first_symbol.append(len(symbols))
            symbols += [
                code[symbol.name] if symbol.terminal else FIRST_NONTERMINAL - place[symbol.name]
                for symbol in rule.rhs
            ]
            symbols.append(END)
    return SamplingTables(
        np.array(first_rule, np.int32),
        np.array(keep),
        np.array(alias, np.int32),
        np.array(log_probability),
        np.array(first_symbol, np.int32),
        np.array(symbols, np.int32),
        structure.expected_lengths(rules, reachable[0])[reachable[0]],
    )


def alias_table(probabilities: Sequence[float]) -> tuple[list[float], list[int]]:
    """For each outcome, the probability to keep it and the outcome to take instead.

    Source: Vose 1991, A Linear Algorithm for Generating Random Numbers with a Given Distribution.
    """
    count = len(probabilities)
    keep = [probability * count for probability in probabilities]
    alias = list(range(count))
    small = [index for index in range(count) if keep[index] < 1]
    large = [index for index in range(count) if keep[index] >= 1]
    while small and large:
        poor, rich = small.pop(), large.pop()
        alias[poor] = rich
        keep[rich] -= 1 - keep[poor]
        (small if keep[rich] < 1 else large).append(rich)
    for index in small + large:  # the rest differs from 1 by rounding only
        keep[index] = 1.0
    return keep, alias


def sample(
    name: str, tables: SamplingTables, n: int, seed: int, longest: int = LONGEST
) -> EncodedStrings:
    """`n` independent strings of the grammar `name`; see `Grammar.sample_encoded`."""
    for argument, value in (("n", n), ("seed", seed), ("longest", longest)):
        checked_number(argument, value, COUNTS)
    n, seed, longest = int(n), int(seed), int(longest)
    # numpy mixes any integer into 64 good bits, so that neighbouring seeds are unrelated.
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    room = int(n * tables.expected_length * 1.05) + 1024
    symbols, offsets, log_probability, done = _sample(*tables[:-1], n, state, room, longest)
    if done < n:
        raise GrammarError(
            f"{name}: string {done + 1:,} of a sample of {n:,} has more than {longest:,} symbols "
            f"(strings have {tables.expected_length:,.4g} on average); to leave it out would "
            "change the language, so lower the probability of the rules that repeat, and raise "
            "that of the rules that end loops"
        )
    # A copy, unless the buffer is almost full: a view would keep the whole buffer in memory.
    used = symbols[: offsets[-1]]
    if len(used) < 0.9 * len(symbols):
        used = used.copy()
    return EncodedStrings(used, offsets, log_probability)


@njit(cache=True)
def _sample(first_rule, keep, alias, log_probability, first_symbol, rhs, n, state, room, longest):
    """Expand the start symbol `n` times into one buffer, which grows as needed.

    Sampling stops at a string of more than `longest` symbols. The last result is the number of
    strings before that string.
    """
    symbols = np.empty(room, np.uint16)
    stack = np.empty(256, np.int64)
    offsets = np.zeros(n + 1, np.int64)
    scores = np.zeros(n)
    string = 0
    while string < n:
        stop = min(symbols.size, offsets[string] + longest)
        total, after, score = _expand(
            first_rule,
            keep,
            alias,
            log_probability,
            first_symbol,
            rhs,
            state,
            symbols,
            offsets[string],
            stop,
            stack,
        )
        # A string that did not fit is drawn again, from the same random numbers.
        if total == SYMBOLS_FULL and stop < symbols.size:
            break
        if total == SYMBOLS_FULL:
            symbols = _grown(symbols)
        elif total == STACK_FULL:
            stack = _grown(stack)
        else:
            state = after
            string += 1
            offsets[string] = total
            scores[string - 1] = score
    return symbols, offsets, scores, string


@njit(cache=True)
def _expand(
    first_rule, keep, alias, log_probability, first_symbol, rhs, state, symbols, total, stop, stack
):
    """Write one string at `symbols[total:stop]`; the new total, random state and log probability.

    The stack holds the places from which unfinished right-hand sides continue. It does not grow
    here: an array that might be replaced in this loop makes the loop seven times slower.
    """
    stack[0] = 0
    depth = 1
    score = 0.0
    while depth:
        depth -= 1
        position = stack[depth]
        symbol = rhs[position]
        while symbol >= 0:
            if total == stop:
                return SYMBOLS_FULL, state, score
            symbols[total] = symbol
            total += 1
            position += 1
            symbol = rhs[position]
        if symbol == END:
            continue
        if depth + 2 > stack.size:
            return STACK_FULL, state, score
        # The last symbol of a right-hand side leaves no place to return to.
        if rhs[position + 1] != END:
            stack[depth] = position + 1
            depth += 1
        nonterminal = FIRST_NONTERMINAL - symbol
        rule = np.int64(first_rule[nonterminal])
        count = first_rule[nonterminal + 1] - rule
        if count > 1:
            state += _STEP
            place = _uniform(state) * count
            rule += np.int64(place)
            if place - np.int64(place) >= keep[rule]:
                rule = np.int64(alias[rule])
            score += log_probability[rule]
        stack[depth] = first_symbol[rule]
        depth += 1
    return total, state, score


@njit(cache=True, inline="always")
def _uniform(state):
    """A float64 in [0, 1) from one state of SplitMix64 (Steele, Lea and Flood 2014)."""
    bits = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((bits ^ (bits >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@njit(cache=True)
def _grown(buffer):
    """The same contents in twice the space.

    Copied in a loop: an assigned slice takes five seconds to compile, because of the error message
    for different sizes.
    """
    grown = np.empty(2 * buffer.size, buffer.dtype)
    for place in range(buffer.size):
        grown[place] = buffer[place]
    return grown
