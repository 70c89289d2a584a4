"""Exact probabilities of strings and of prefixes: sparse inside and left-corner sums, compiled.

The grammar is binarised from the left: a *node* stands for the beginning of a right-hand side
(`A -> B C D` gives the nodes `[B C]` and `[B C D]`), and rules that begin alike share their nodes.
What remains is one binary rule per node, of weight 1, and unary steps, which split no string: from
a node, or from a symbol that stands alone, to the left-hand sides that it completes. Chains of
unary steps, loops included, are summed once by (I - U)^-1.

No chart entry is empty. A symbol that derives the empty string is left out of a right-hand side as
well, with the probability that it is empty: from `A -> B C` with such a C, there is a unary step
from B to A, too.

The chart is filled from the right end of the string to its left. For one beginning it goes through
the ends in order, and keeps only the entries that are not zero, as linked lists: the time is in
proportion to the constituents that match, not to the cube of the length.

The probability of a string of a few hundred symbols is below what a float64 can hold, and so may be
that of a chain of rules. A number is therefore a mantissa and an exponent of 2^64.

Source: Baker 1979 (inside); Jelinek and Lafferty 1991 (prefixes); Stolcke 1995 (closures, and
symbols that may be empty).
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit

from palimpsest.languages.closures import Row, chains, log_add, merged
from palimpsest.languages.emptiness import log_empty
from palimpsest.languages.encoding import EncodedStrings
from palimpsest.languages.errors import GrammarError
from palimpsest.languages.notation import Symbol
from palimpsest.languages.structure import Rule

UNIT = 2.0**-64
LOG_UNIT = math.log(UNIT)
NONE = -1
FIRST_ROOM = 4096  # chart entries; doubled whenever a string needs more
MOST_ROOM = 2**24  # 0.5 GB: a string of 5,700 symbols, if each part of it is a constituent
MOST_CELLS = 2**26  # 5 GB: the longest string times the number of symbols of the chart
MOST_NULLABLE = 3  # in one rule; a longer rule is split, because any of them may be left out

STEP = np.dtype([("symbol", np.int32), ("exponent", np.int32), ("weight", np.float64)], align=True)
RULE = np.dtype([("node", np.int32), ("symbol", np.int32)], align=True)
NUMBER = np.dtype([("mantissa", np.float64), ("exponent", np.int64)], align=True)
CELL = np.dtype([*NUMBER.descr, ("next", np.int64)], align=True)
ENTRY = np.dtype([*NUMBER.descr, ("end", np.int32), ("next", np.int32)], align=True)


class InsideTables(NamedTuple):
    """A grammar as the chart reads it: symbols are terminals, then non-terminals, then nodes.

    Row `x` of a table is what stands between `first[x]` and `first[x + 1]`.
    """

    n_terminals: int
    n_known: int  # terminals and non-terminals; only these end a node, or are the start
    n_symbols: int
    start: int
    # All that a terminal or node derives through chains of steps, with weights
    closure_first: np.ndarray
    closure: np.ndarray  # STEP
    # The nodes that continue from a symbol, and the symbol that must come next
    rules_first: np.ndarray
    rules: np.ndarray  # RULE
    # The left-hand sides whose rules begin with a terminal or node, with weights
    begins_first: np.ndarray
    begins: np.ndarray  # STEP
    # The symbols that can begin with a non-terminal, with weights
    corners_first: np.ndarray
    corners: np.ndarray  # STEP
    # Whether the symbol ends a node, or is the start: then its chart entries are looked up.
    looked_up: np.ndarray
    log_empty: float  # of the start: log probability of the empty string


class Workspace(NamedTuple):
    """Arrays for scoring one string after another. Each string clears the entries that it needs."""

    # The row that is being filled, [end, symbol] flattened, before unary steps. The symbols that
    # are not zero in one cell are linked, from `first_in_cell[end]` on.
    cells: np.ndarray  # CELL
    first_in_cell: np.ndarray
    # One cell after the unary steps, and a list of the symbols that are not zero.
    closed: np.ndarray  # NUMBER
    closed_symbols: np.ndarray
    # The finished rows, linked from `first_entry[begin, known symbol]` on, longest first.
    entries: np.ndarray  # ENTRY
    first_entry: np.ndarray
    # Probability that a known symbol begins with the rest of the string, [begin, known symbol]
    # flattened; and what a row adds to it, node by node, before left corners, with a list of those
    # nodes.
    prefixes: np.ndarray  # NUMBER
    parts: np.ndarray  # NUMBER
    part_symbols: np.ndarray


def log_probability(name: str, tables: InsideTables, strings: EncodedStrings) -> np.ndarray:
    return _score(name, tables, strings, of_prefixes=False)


def log_prefix_probability(name: str, tables: InsideTables, strings: EncodedStrings) -> np.ndarray:
    return _score(name, tables, strings, of_prefixes=True)


def _score(
    name: str, tables: InsideTables, strings: EncodedStrings, of_prefixes: bool
) -> np.ndarray:
    which, copy_of = _distinct(strings)
    scores = np.empty(len(which))
    longest = max(strings.lengths, default=0)
    if (longest + 1) * tables.n_symbols > MOST_CELLS:
        raise too_long(name, longest)
    done, room = 0, FIRST_ROOM
    while done < len(which):
        if room > MOST_ROOM:
            raise too_long(name, strings.lengths[which[done]])
        arrays = (*tables[:-1], *_workspace(longest, tables, room))
        done = _score_from(
            done, which, strings.symbols, strings.offsets, of_prefixes, scores, arrays
        )
        room *= 2
    is_empty = strings.lengths[which] == 0
    scores[is_empty] = 0.0 if of_prefixes else tables.log_empty
    # Rounding may carry a sum of probabilities past 1 by a few units in the last place.
    return np.minimum(scores, 0.0)[copy_of]


def too_long(name: str, length: int) -> GrammarError:
    return GrammarError(
        f"{name}: a string of {length:,} symbols is too long for exact probabilities (its "
        f"chart has more than {MOST_ROOM:,} entries); leave it out, or give a higher probability "
        "to the rules that end loops"
    )


def _distinct(strings: EncodedStrings) -> tuple[np.ndarray, np.ndarray]:
    """The place of the first copy of each distinct string, and each string's number among these."""
    data, ends = strings.symbols.tobytes(), (strings.symbols.itemsize * strings.offsets).tolist()
    seen: dict[bytes, int] = {}
    copy_of = [seen.setdefault(data[a:b], len(seen)) for a, b in pairwise(ends)]
    copy_of = np.array(copy_of, dtype=np.int64)
    return np.unique(copy_of, return_index=True)[1].astype(np.int64), copy_of


def tables(
    rules: Sequence[Rule], reachable: Sequence[str], terminals: Sequence[str]
) -> InsideTables:
    """Binarise the rules of `reachable`, whose first non-terminal is the start."""
    used = set(reachable)
    rules = [rule for rule in rules if rule.lhs in used]
    rules, empty = _with_few_nullable(rules, log_empty(rules))
    names = dict.fromkeys([*reachable, *(rule.lhs for rule in rules)])
    known = [Symbol(name, True) for name in terminals] + [Symbol(name, False) for name in names]
    place = {symbol: index for index, symbol in enumerate(known)}
    nodes: dict[tuple[int, int], int] = {}
    completes: dict[tuple[int, int], float] = {}
    begins: dict[tuple[int, int], float] = {}
    for rule in rules:
        lhs = place[Symbol(rule.lhs, False)]
        # The nodes in which the symbols so far may have ended; None if all of them were empty.
        ended: dict[int | None, float] = {None: math.log(rule.probability)}
        for symbol in rule.rhs:
            before, ended, right = ended, {}, place[symbol]
            for node, weight in before.items():
                if not symbol.terminal and symbol.name in empty:
                    log_add(ended, node, weight + empty[symbol.name])
                if node is None:
                    joined = right
                else:
                    joined = nodes.setdefault((node, right), len(known) + len(nodes))
                log_add(ended, joined, weight)
                log_add(begins, (joined, lhs), weight)
        for node, weight in ended.items():
            if node is not None:
                log_add(completes, (node, lhs), weight)

    start = len(terminals)
    nonterminals = range(start, len(known))
    n_symbols = len(known) + len(nodes)
    looked_up = {right for _, right in nodes} | {start}
    kept = looked_up | {left for left, _ in nodes}
    between, into = _by_source(completes, nonterminals)
    upward = chains(between, nonterminals, kept)
    nothing = np.zeros(0, np.int64), np.zeros(0)
    closure = [
        nothing
        if symbol in nonterminals
        else merged(
            [
                *([(np.array([symbol]), np.zeros(1))] if symbol in kept else []),
                *((upward[lhs][0], upward[lhs][1] + weight) for lhs, weight in into[symbol]),
            ]
        )
        for symbol in range(n_symbols)
    ]
    between, into = _by_source(begins, nonterminals)
    corners = chains(between, nonterminals, looked_up)
    onward: list[dict[int, int]] = [{} for _ in range(n_symbols)]
    for (left, right), node in nodes.items():
        onward[left][node] = right
    return InsideTables(
        len(terminals),
        len(known),
        n_symbols,
        start,
        *_steps(closure),
        np.cumsum([0, *map(len, onward)]).astype(np.int32),
        np.array([item for row in onward for item in row.items()], dtype=RULE),
        *_steps([_row(into[symbol]) for symbol in range(n_symbols)]),
        *_steps([corners.get(symbol, nothing) for symbol in range(n_symbols)]),
        np.isin(np.arange(n_symbols), list(looked_up)),
        empty.get(reachable[0], -math.inf),
    )


def _with_few_nullable(
    rules: list[Rule], empty: dict[str, float]
) -> tuple[list[Rule], dict[str, float]]:
    """The rules, none with many symbols that may be empty; log probabilities to be empty.

    The rest of a longer rule gets a non-terminal of its own, whose name holds a space.
    """
    split: list[Rule] = []
    for rule in rules:
        lhs, rhs, probability = rule
        while True:
            nullable = [n for n, s in enumerate(rhs) if not s.terminal and s.name in empty]
            if len(nullable) <= MOST_NULLABLE:
                break
            cut = nullable[MOST_NULLABLE - 1]
            rest = Symbol(f"{rule.lhs} {len(split)}", False)
            split.append(Rule(lhs, (*rhs[:cut], rest), probability))
            lhs, rhs, probability = rest.name, rhs[cut:], 1.0
        split.append(Rule(lhs, rhs, probability))
    return (split, log_empty(split)) if len(split) > len(rules) else (rules, empty)


def _by_source(
    steps: dict[tuple[int, int], float], nonterminals: range
) -> tuple[dict[tuple[int, int], float], dict[int, list[tuple[int, float]]]]:
    """The steps between non-terminals; and the steps from each other symbol, with weights."""
    into: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for (source, target), weight in steps.items():
        if source not in nonterminals:
            into[source].append((target, weight))
    return {pair: w for pair, w in steps.items() if pair[0] in nonterminals}, into


def _row(steps: Sequence[tuple[int, float]]) -> Row:
    ends = np.array([end for end, _ in steps], np.int64)
    return ends, np.array([weight for _, weight in steps], float)


def _steps(rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray]:
    """The beginning of each row, and the rows end to end, with their weights as numbers."""
    first = np.cumsum([0, *(len(row[0]) for row in rows)]).astype(np.int32)
    weights = np.concatenate([row[1] for row in rows])
    steps = np.zeros(len(weights), STEP)
    steps["symbol"] = np.concatenate([row[0] for row in rows])
    units = np.maximum(np.floor(weights / LOG_UNIT), 0)
    steps["exponent"] = -units
    steps["weight"] = np.exp(weights - units * LOG_UNIT)
    return first, steps


def _workspace(longest: int, tables: InsideTables, room: int) -> Workspace:
    """Workspace for strings of up to `longest` symbols and charts of up to `room` entries."""
    n_known, n_symbols = tables.n_known, tables.n_symbols
    return Workspace(
        cells=np.zeros((longest + 1) * n_symbols, CELL),
        first_in_cell=np.full(longest + 1, NONE),
        closed=np.zeros(n_symbols, NUMBER),
        closed_symbols=np.zeros(n_symbols, np.int64),
        entries=np.zeros(room, ENTRY),
        first_entry=np.full((longest + 1) * n_known, NONE, np.int32),
        prefixes=np.zeros((longest + 1) * n_known, NUMBER),
        parts=np.zeros(n_symbols, NUMBER),
        part_symbols=np.zeros(n_symbols, np.int64),
    )


@njit(cache=True)
def _score_from(done, which, symbols, offsets, of_prefixes, scores, arrays):
    """Score the strings `which[done:]` until the chart is full; returns the new `done`."""
    while done < which.size:
        string = symbols[offsets[which[done]] : offsets[which[done] + 1]]
        finished, mantissa, exponent = _score_one(string, of_prefixes, *arrays)
        if not finished:
            return done
        scores[done] = math.log(mantissa) - exponent * LOG_UNIT if mantissa > 0 else -np.inf
        done += 1
    return done


@njit(cache=True)
def _score_one(
    string,
    of_prefixes,
    n_terminals,
    n_known,
    n_symbols,
    start,
    closure_first,
    closure,
    rules_first,
    rules,
    begins_first,
    begins,
    corners_first,
    corners,
    looked_up,
    cells,
    first_in_cell,
    closed,
    closed_symbols,
    entries,
    first_entry,
    prefixes,
    parts,
    part_symbols,
):
    """Probability of a string, or of all that begin with it: finished?, mantissa, exponent.

    Not finished means that the chart is full. This is one long function on purpose: handing
    arrays on from within its loops, or replacing them there, makes them count references, which
    takes six times as long as the work.
    """
    length = string.size
    if length == 0:  # the caller knows the probability
        return True, 0.0, 0
    for symbol in string:
        if symbol >= n_terminals:
            return True, 0.0, 0
    first_entry[: length * n_known] = NONE
    n_entries = 0
    for begin in range(length - 1, -1, -1):
        row = begin * n_known
        n_parts = 0
        end, furthest = begin, begin + 1
        symbol = np.int64(string[begin])
        cell = cells[furthest * n_symbols + symbol]
        cell.mantissa, cell.exponent, cell.next = 1.0, 0, NONE
        first_in_cell[furthest] = symbol
        while end < furthest:
            end += 1

            # Unary steps: from the symbols of this cell to all that they stand for.
            n_closed = 0
            symbol = first_in_cell[end]
            first_in_cell[end] = NONE
            while symbol != NONE:
                cell = cells[end * n_symbols + symbol]
                for step in range(closure_first[symbol], closure_first[symbol + 1]):
                    target = closed[closure[step].symbol]
                    if target.mantissa == 0:
                        closed_symbols[n_closed] = closure[step].symbol
                        n_closed += 1
                    target.mantissa, target.exponent = _sum(
                        target.mantissa,
                        target.exponent,
                        cell.mantissa * closure[step].weight,
                        cell.exponent + closure[step].exponent,
                    )
                cell.mantissa = 0.0
                symbol = cell.next

            if n_entries + n_closed > entries.size:
                return False, 0.0, 0
            for index in range(n_closed):
                symbol = closed_symbols[index]
                mantissa, exponent = _normal(closed[symbol].mantissa, closed[symbol].exponent)
                closed[symbol].mantissa = 0.0
                if looked_up[symbol]:
                    entry = entries[n_entries]
                    entry.mantissa, entry.exponent, entry.end = mantissa, exponent, end
                    entry.next = first_entry[row + symbol]
                    first_entry[row + symbol] = n_entries
                    n_entries += 1
                if end == length:
                    continue

                # Binary rules: join with every constituent that begins where this one ends.
                for rule in range(rules_first[symbol], rules_first[symbol + 1]):
                    node = np.int64(rules[rule].node)
                    right = end * n_known + rules[rule].symbol
                    found = first_entry[right]
                    while found != NONE:
                        entry = entries[found]
                        furthest = max(furthest, entry.end)
                        cell = cells[entry.end * n_symbols + node]
                        if cell.mantissa == 0:
                            cell.next = first_in_cell[entry.end]
                            first_in_cell[entry.end] = node
                        cell.mantissa, cell.exponent = _sum(
                            cell.mantissa,
                            cell.exponent,
                            mantissa * entry.mantissa,
                            exponent + entry.exponent,
                        )
                        found = entry.next
                    if of_prefixes and prefixes[right].mantissa > 0:
                        part = parts[node]
                        if part.mantissa == 0:
                            part_symbols[n_parts] = node
                            n_parts += 1
                        part.mantissa, part.exponent = _sum(
                            part.mantissa,
                            part.exponent,
                            mantissa * prefixes[right].mantissa,
                            exponent + prefixes[right].exponent,
                        )

        if not of_prefixes:
            continue

        # Left corners: carry the parts of this row up to all that can begin with them.
        for symbol in range(row, row + n_known):
            prefixes[symbol].mantissa = 0.0
        if begin == length - 1:
            symbol = np.int64(string[begin])
            parts[symbol].mantissa, parts[symbol].exponent = 1.0, 0
            part_symbols[n_parts] = symbol
            n_parts += 1
            prefixes[row + symbol].mantissa, prefixes[row + symbol].exponent = 1.0, 0
        n_closed = 0
        for index in range(n_parts):
            symbol = part_symbols[index]
            part = parts[symbol]
            for step in range(begins_first[symbol], begins_first[symbol + 1]):
                target = closed[begins[step].symbol]
                if target.mantissa == 0:
                    closed_symbols[n_closed] = begins[step].symbol
                    n_closed += 1
                target.mantissa, target.exponent = _sum(
                    target.mantissa,
                    target.exponent,
                    part.mantissa * begins[step].weight,
                    part.exponent + begins[step].exponent,
                )
            part.mantissa = 0.0
        for index in range(n_closed):
            symbol = closed_symbols[index]
            mantissa, exponent = closed[symbol].mantissa, closed[symbol].exponent
            closed[symbol].mantissa = 0.0
            for step in range(corners_first[symbol], corners_first[symbol + 1]):
                target = prefixes[row + corners[step].symbol]
                target.mantissa, target.exponent = _sum(
                    target.mantissa,
                    target.exponent,
                    mantissa * corners[step].weight,
                    exponent + corners[step].exponent,
                )

    if of_prefixes:
        return True, prefixes[start].mantissa, prefixes[start].exponent
    found = first_entry[start]
    if found == NONE or entries[found].end != length:
        return True, 0.0, 0
    return True, entries[found].mantissa, entries[found].exponent


@njit(cache=True)
def _sum(mantissa, exponent, added, added_exponent):
    """The sum of two numbers. A number of 2^-64 of the other or less is lost, as in any float."""
    added, added_exponent = _normal(added, added_exponent)
    apart = added_exponent - exponent
    if mantissa == 0 or apart > 1:
        return added, added_exponent
    if apart == 0:
        return mantissa + added, exponent
    if apart == 1:
        return mantissa * UNIT + added, added_exponent
    if apart == -1:
        return mantissa + added * UNIT, exponent
    return mantissa, exponent


@njit(cache=True)
def _normal(mantissa, exponent):
    """The same number with a mantissa of 2^-64 to 1, or above 1 if the exponent is 0."""
    while 0 < mantissa < UNIT:
        mantissa /= UNIT
        exponent -= 1
    while mantissa > 1 and exponent < 0:
        mantissa *= UNIT
        exponent += 1
    return mantissa, exponent
