"""Effects of copies, position and amount of data on the memorisation of a string.

The truth is training again without the probes of all arms. The specific effect on the strings of an
arm is that of their own copies: the probes of other arms affect them as they affect validation
strings, because all are random samples of one distribution, and the specific effect leaves out what
changes for validation strings, too. So one run without all probes serves every arm. Only the total
effect is that of all probes together.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest import traces
from palimpsest.making import makes, reads
from palimpsest.profiles import kinds
from palimpsest.profiles.factorial import EARLY, LATE, Arm, position_of
from palimpsest.profiles.interventions import QUARTERS
from palimpsest.profiles.measured import OUTCOMES, STREAMS, Stream
from palimpsest.profiles.panel import NEVER
from palimpsest.profiles.truth import effects_on
from palimpsest.statistics import student
from palimpsest.traces import Trace

FACTORS = ("copies", "position", "size")
MEAN = "mean"
EFFECTS = (kinds.TOTAL, kinds.SPECIFIC, kinds.DIFFERENCE)
PLACEBOS = 17  # separates the assignment of placebos from other draws with the same seed


class Group(NamedTuple):
    """Strings that are compared with others: `own` str[n] and `untreated` str[m] are names.

    `strings` says whether they are trained on or placebos.
    """

    strings: str
    arm: Arm
    own: np.ndarray
    untreated: np.ndarray


@reads(**STREAMS, without=[traces.read])
@makes(kinds.DILUTION, kinds.DILUTION_EFFECTS)
def dilution_tables(
    traces: Sequence[Trace],
    datasets: Sequence[pd.DataFrame],
    manifests: Sequence[Mapping],
    without: Sequence[Trace],
) -> dict[str, pd.DataFrame]:
    """The effects of copies, position and amount of data; see `dilution`.

    `traces`, `datasets` and `manifests` are of every diluted stream, in the same order.
    """
    found = dilution(zip(traces, datasets, manifests, strict=True), without)
    return {kinds.DILUTION.name: found, kinds.DILUTION_EFFECTS.name: dilution_effects(found)}


def dilution(
    streams: Iterable[tuple[Trace, pd.DataFrame, Mapping]], without: Iterable[Trace]
) -> pd.DataFrame:
    """A table `dilution`.

    Parameters
    ----------
    streams : trace, dataset and manifest of every diluted stream
    without : traces of the same streams without the probes, in the same order
    """
    found = [
        of_stream(Stream.of(*stream), stream[1], other)
        for stream, other in zip(streams, without, strict=True)
    ]
    return pd.concat(found, ignore_index=True)[kinds.DILUTION.names]


def of_stream(stream: Stream, strings: pd.DataFrame, without: Trace) -> pd.DataFrame:
    cohorts = strings.set_index("string_id")["cohort"]
    rows = []
    for group in [*arms_of(stream, strings), *placebos_of(stream, strings)]:
        rates = [stream.rates[place] for place in cohorts.loc[group.own].dropna()]
        cells = effects_on(group.own, group.untreated, stream.trace, without)
        named = {
            **stream.keys,
            "string_role": group.strings,
            "copies": group.arm.copies,
            "position": group.arm.position,
            "n_strings": len(group.own),
            "learning_rate": np.mean(rates) if rates else np.nan,
        }
        made = {"difference": differences(group, stream.trace), "quarter": cells["time"]}
        rows.append(pd.DataFrame({**cells, **made}).assign(**named))
    table = pd.concat(rows)
    # Measured after every quarter of the stream
    return table.assign(quarter=table["quarter"] * QUARTERS // stream.trace.epochs[-1])


def differences(group: Group, trace: Trace) -> np.ndarray:
    """The mean of a group minus that of untreated strings, float[outcomes x times]."""
    own, others = (trace.column_of(names) for names in (group.own, group.untreated))
    outcomes = (values(trace) for values in OUTCOMES.values())
    return np.concatenate([o[:, own].mean(axis=1) - o[:, others].mean(axis=1) for o in outcomes])


def arms_of(stream: Stream, strings: pd.DataFrame) -> list[Group]:
    """The probes of each arm, each group against all validation strings."""
    measured = strings.set_index("string_id").loc[stream.trace.string_ids]
    n_cohorts = int(strings["cohort"].max())
    probes = measured[measured["cohort"].notna()]
    positions = [position_of(place, n_cohorts) for place in probes["cohort"]]
    never = measured.index[measured["cohort"].isna()].to_numpy()
    return [
        Group(kinds.TRAINED, Arm(int(copies), position), own.index.to_numpy(), never)
        for (copies, position), own in probes.groupby(["count", np.array(positions)])
    ]


def placebos_of(stream: Stream, strings: pd.DataFrame) -> list[Group]:
    """Half of the validation strings, assigned to the arms at random, against the other half.

    The assignment is the same for all sizes of a seed.
    """
    arms = [group.arm for group in arms_of(stream, strings)]
    never = np.sort(stream.trace.string_ids[stream.cohorts == NEVER])
    chance = np.random.default_rng([stream.trace.run["seed"], PLACEBOS])
    never = chance.permutation(never)
    each = len(never) // 2 // len(arms)
    return [
        Group(
            kinds.PLACEBO, arm, never[place * each : (place + 1) * each], never[each * len(arms) :]
        )
        for place, arm in enumerate(arms)
    ]


def at_the_end(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["quarter"] == QUARTERS]


def contrasts(cells: pd.DataFrame, effect: str) -> pd.DataFrame:
    """The contrasts (columns) of the factorial for every seed (rows).

    A contrast of no factor is the mean over all cells. That of one factor is the mean at its high
    level minus the mean at its low level. That of several factors is the growth of the contrast of
    one factor from the low to the high level of the others.

    Parameters
    ----------
    cells : rows of a table `dilution`, one for every seed and combination of the three factors
        Levels between the smallest and the largest one are not used.
    effect : the column whose contrasts are taken

    Raises `ValueError` if a factor has one level only, or a seed does not have every combination
    once.
    """
    cells, high = ends_of(cells)
    if (cells.groupby("seed").size() != 2 ** len(FACTORS)).any():
        raise ValueError("a seed does not have every combination of copies, position and size once")
    signs = {factor: np.where(high[factor], 1, -1) for factor in FACTORS}
    found = {}
    for n in range(len(FACTORS) + 1):
        for some in combinations(FACTORS, n):
            sign = reduce(np.multiply, [signs[factor] for factor in some], np.ones(len(cells)))
            parts = cells[effect] * sign / 2 ** (len(FACTORS) - n)
            found[" x ".join(some) or MEAN] = parts.groupby(cells["seed"]).sum()
    return pd.DataFrame(found)


def ends_of(cells: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows at the lowest and highest level of every factor, and whether each is the highest."""
    numbers = cells[list(FACTORS)].assign(position=cells["position"].map({EARLY: 0, LATE: 1}))
    low, high = numbers.min(), numbers.max()
    if (low == high).any():
        raise ValueError(f"{(low == high).idxmax()} has one level only; a contrast needs two")
    kept = ((numbers == low) | (numbers == high)).all(axis=1)
    return cells[kept], (numbers == high)[kept]


def dilution_effects(table: pd.DataFrame) -> pd.DataFrame:
    keys = ["model", "language", "string_role", "outcome"]
    rows = []
    for names, cells in at_the_end(table).groupby(keys, sort=False):
        for effect in EFFECTS:
            for contrast, values in contrasts(cells, effect).items():
                mean, lower, upper = student(values)
                rows.append((*names, effect, contrast, len(values), mean, lower, upper))
    return pd.DataFrame(rows, columns=kinds.DILUTION_EFFECTS.names)
