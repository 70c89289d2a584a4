"""Exact probabilities of strings and of prefixes: sparse inside and left-corner sums, compiled.

The grammar is binarised from the left: a *node* stands for the beginning of a right-hand side
(`A -> B C D` gives the nodes `[B C]` and `[B C D]`), and rules that begin alike share their nodes.
What remains is one binary rule per node, of weight 1, and unary steps, which split no string: from
a node, or from a symbol that stands alone, to the left-hand sides that it completes. Chains of
unary steps, loops included, are summed once by (I - U)^-1.

The chart is filled from the right end of the string to its left. For one beginning it goes through
the ends in order, and keeps only the entries that are not zero, as linked lists: the time it takes
is in proportion to the constituents that match, not to the cube of the length.

The probability of a string of a few hundred symbols is below what a float64 can hold. A number is
therefore a mantissa and an exponent of 2^64.

Source: Baker 1979 (inside); Jelinek and Lafferty 1991 (prefixes); Stolcke 1995 (closures).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit

from palimpsest.languages.encoding import EncodedStrings
from palimpsest.languages.notation import Symbol
from palimpsest.languages.structure import Rule

UNIT = 2.0**-64
LOG_UNIT = math.log(UNIT)
NONE = -1
SMALLEST_WEIGHT = 1e-200
FIRST_ROOM = 4096  # chart entries; doubled as often as a string needs more

STEP = np.dtype([("symbol", np.int32), ("weight", np.float64)], align=True)
RULE = np.dtype([("node", np.int32), ("symbol", np.int32)], align=True)
NUMBER = np.dtype([("mantissa", np.float64), ("exponent", np.int64)], align=True)
CELL = np.dtype([*NUMBER.descr, ("next", np.int64)], align=True)
ENTRY = np.dtype([*NUMBER.descr, ("end", np.int32), ("next", np.int32)], align=True)

Steps = Mapping[tuple[int, int], float]  # (from, to): probability


class InsideTables(NamedTuple):
    """A grammar as the chart reads it: symbols are terminals, then non-terminals, then nodes.

    Row `x` of a table is what stands between `first[x]` and `first[x + 1]`.
    """

    n_terminals: int
    n_symbols: int
    start: int
    # What a terminal or node stands for by itself, through chains of steps, and with what weight.
    closure_first: np.ndarray
    closure: np.ndarray  # STEP
    # The nodes that go on from a symbol, and the symbol that must come next.
    rules_first: np.ndarray
    rules: np.ndarray  # RULE
    # The non-terminals that can begin with a terminal or node, and with what weight.
    corners_first: np.ndarray
    corners: np.ndarray  # STEP
    # Whether the symbol ends a node, or is the start: then its chart entries are looked up.
    looked_up: np.ndarray


class Workspace(NamedTuple):
    """Arrays in which one string after another is scored; each string clears what it needs."""

    # The row that is being filled, [end, symbol] flattened, before unary steps. The symbols that
    # are not zero in one cell are linked, from `first_in_cell[end]` on.
    cells: np.ndarray  # CELL
    first_in_cell: np.ndarray
    # One cell after the unary steps, and a list of the symbols that are not zero.
    closed: np.ndarray  # NUMBER
    closed_symbols: np.ndarray
    # The finished rows, linked from `first_entry[begin, symbol]` on, longest first.
    entries: np.ndarray  # ENTRY
    first_entry: np.ndarray
    # Probability that a symbol begins with the rest of the string, [begin, symbol] flattened; and
    # what a row adds to it, node by node, before left corners, with a list of those nodes.
    prefixes: np.ndarray  # NUMBER
    parts: np.ndarray  # NUMBER
    part_symbols: np.ndarray


def log_probability(tables: InsideTables, strings: EncodedStrings) -> np.ndarray:
    """float64[n], nats: see `Grammar.log_probability`."""
    return _score(tables, strings, of_prefixes=False)


def log_prefix_probability(tables: InsideTables, strings: EncodedStrings) -> np.ndarray:
    """float64[n], nats: see `Grammar.log_prefix_probability`."""
    return _score(tables, strings, of_prefixes=True)


def _score(tables: InsideTables, strings: EncodedStrings, of_prefixes: bool) -> np.ndarray:
    which, copy_of = _distinct(strings)
    scores = np.empty(len(which))
    longest = max(strings.lengths, default=0)
    done, room = 0, FIRST_ROOM
    while done < len(which):
        arrays = (*tables, *_workspace(longest, tables.n_symbols, room))
        done = _score_from(
            done, which, strings.symbols, strings.offsets, of_prefixes, scores, arrays
        )
        room *= 2
    # Rounding may carry a sum of probabilities past 1 by a few units in the last place.
    return np.minimum(scores, 0.0)[copy_of]


def _distinct(strings: EncodedStrings) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct string first stands, and which of them every string is."""
    data, ends = strings.symbols.tobytes(), (strings.symbols.itemsize * strings.offsets).tolist()
    seen: dict[bytes, int] = {}
    copy_of = [seen.setdefault(data[a:b], len(seen)) for a, b in pairwise(ends)]
    copy_of = np.array(copy_of, dtype=np.int64)
    return np.unique(copy_of, return_index=True)[1].astype(np.int64), copy_of


def tables(
    rules: Sequence[Rule], reachable: Sequence[str], terminals: Sequence[str]
) -> InsideTables:
    """Binarise the rules of `reachable`, whose first non-terminal is the start."""
    known = [Symbol(name, True) for name in terminals] + [Symbol(name, False) for name in reachable]
    place = {symbol: index for index, symbol in enumerate(known)}
    nodes: dict[tuple[int, int], int] = {}
    completes: dict[tuple[int, int], float] = defaultdict(float)
    begins: dict[tuple[int, int], float] = defaultdict(float)
    for rule in rules:
        lhs = place.get(Symbol(rule.lhs, False))
        if lhs is None:
            continue
        node, *rest = (place[symbol] for symbol in rule.rhs)
        begins[node, lhs] += rule.probability
        for symbol in rest:
            node = nodes.setdefault((node, symbol), len(known) + len(nodes))
            begins[node, lhs] += rule.probability
        completes[node, lhs] += rule.probability

    start = len(terminals)
    nonterminals = range(start, len(known))
    n_symbols = len(known) + len(nodes)
    goes_on = {left for left, _ in nodes}
    looked_up = {right for _, right in nodes}
    closure = _closed(completes, nonterminals, n_symbols)
    for symbol, row in enumerate(closure):
        row[symbol] = 1.0
        for unused in row.keys() - goes_on - looked_up - {start}:
            del row[unused]
    onward: list[dict[int, int]] = [{} for _ in range(n_symbols)]
    for (left, right), node in nodes.items():
        onward[left][node] = right
    return InsideTables(
        len(terminals),
        n_symbols,
        start,
        *_flat(closure, STEP),
        *_flat(onward, RULE),
        *_flat(_closed(begins, nonterminals, n_symbols), STEP),
        np.isin(np.arange(n_symbols), [*looked_up, start]),
    )


def _closed(steps: Steps, nonterminals: range, n_symbols: int) -> list[dict[int, float]]:
    """For every terminal and node, the total weight of the chains of steps to each non-terminal.

    The rows of non-terminals are left empty: nothing ever enters a chain there. Weights up to
    `SMALLEST_WEIGHT` are dropped, because products with them could underflow to 0.
    """
    matrix = np.zeros((len(nonterminals), len(nonterminals)))
    for (source, target), probability in steps.items():
        if source in nonterminals:
            matrix[target - nonterminals.start, source - nonterminals.start] = probability
    chains = _geometric_sum(matrix)
    closed: list[dict[int, float]] = [defaultdict(float) for _ in range(n_symbols)]
    for (source, target), probability in steps.items():
        if source in nonterminals:
            continue
        column = chains[:, target - nonterminals.start]
        for index in np.flatnonzero(probability * column > SMALLEST_WEIGHT):
            closed[source][nonterminals.start + int(index)] += probability * column[index]
    return closed


def _geometric_sum(matrix: np.ndarray) -> np.ndarray:
    """I + M + M^2 + ..., with exact zeros wherever no power of M has an entry."""
    identity = np.eye(len(matrix))
    reached = identity + matrix > 0
    while True:
        further = (reached.astype(np.float32) @ reached.astype(np.float32)) > 0
        if (further == reached).all():
            return np.where(reached, np.linalg.inv(identity - matrix), 0.0)
        reached = further


def _flat(rows: Sequence[Mapping[int, float]], dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Rows end to end, and where each begins."""
    first = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    return first, np.array([item for row in rows for item in row.items()], dtype=dtype)


def _workspace(longest: int, n_symbols: int, room: int) -> Workspace:
    """Workspace for strings of up to `longest` symbols and charts of up to `room` entries."""
    return Workspace(
        cells=np.zeros((longest + 1) * n_symbols, CELL),
        first_in_cell=np.full(longest + 1, NONE),
        closed=np.zeros(n_symbols, NUMBER),
        closed_symbols=np.zeros(n_symbols, np.int64),
        entries=np.zeros(room, ENTRY),
        first_entry=np.full((longest + 1) * n_symbols, NONE, np.int32),
        prefixes=np.zeros((longest + 1) * n_symbols, NUMBER),
        parts=np.zeros(n_symbols, NUMBER),
        part_symbols=np.zeros(n_symbols, np.int64),
    )


@njit(cache=True)
def _score_from(done, which, symbols, offsets, of_prefixes, scores, arrays):
    """Score the strings `which[done:]` until the chart is full; how many are done by then."""
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
    n_symbols,
    start,
    closure_first,
    closure,
    rules_first,
    rules,
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
    if length == 0:
        return True, 1.0 if of_prefixes else 0.0, 0
    for symbol in string:
        if symbol >= n_terminals:
            return True, 0.0, 0
    first_entry[: length * n_symbols] = NONE
    n_entries = 0
    for begin in range(length - 1, -1, -1):
        row = begin * n_symbols
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
                        cell.exponent,
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
                    right = end * n_symbols + rules[rule].symbol
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
        for symbol in range(row, row + n_symbols):
            prefixes[symbol].mantissa = 0.0
        if begin == length - 1:
            symbol = np.int64(string[begin])
            parts[symbol].mantissa, parts[symbol].exponent = 1.0, 0
            part_symbols[n_parts] = symbol
            n_parts += 1
            prefixes[row + symbol].mantissa, prefixes[row + symbol].exponent = 1.0, 0
        for index in range(n_parts):
            symbol = part_symbols[index]
            part = parts[symbol]
            for step in range(corners_first[symbol], corners_first[symbol + 1]):
                target = prefixes[row + corners[step].symbol]
                target.mantissa, target.exponent = _sum(
                    target.mantissa,
                    target.exponent,
                    part.mantissa * corners[step].weight,
                    part.exponent,
                )
            part.mantissa = 0.0

    if of_prefixes:
        return True, prefixes[start].mantissa, prefixes[start].exponent
    found = first_entry[start]
    if found == NONE or entries[found].end != length:
        return True, 0.0, 0
    return True, entries[found].mantissa, entries[found].exponent


@njit(cache=True)
def _sum(mantissa, exponent, added, added_exponent):
    """The sum of two numbers; what is 2^-64 of the other or less is lost, as in any float."""
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
