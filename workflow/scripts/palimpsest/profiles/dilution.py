"""The factorial of dilution and order: copies of a string, position, and amount of other strings.

The amount is the size of the stream: the number of its training strings, with copies. Copies and
position are the arms of every stream. An arm is a group of strings, the probes, that are trained on
in equally many copies and in the same quarter of the stream.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.

Source: Hubble: a Model Suite to Advance the Study of LLM Memorization (ICLR 2026), which places
strings in known numbers of copies into corpora of two sizes, and into parts of the training.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from palimpsest.variants import QUARTERS

EARLY, LATE = "early", "late"  # the first and the last quarter of a stream
POSITIONS = (EARLY, LATE)


class Arm(NamedTuple):
    """The strings with so many copies in this part of the stream."""

    copies: int
    position: str


class Slot(NamedTuple):
    """One copy of a probe: the number of the probe, from 0, and the macro-batch, from 1."""

    probe: int
    cohort: int


@dataclass(frozen=True)
class Design:
    """The factorial of one configuration.

    `copies` are the numbers of copies, `probes` the number of probes of an arm, and `cohort_size`
    the number of training strings of a macro-batch, with copies.
    """

    copies: tuple[int, ...]
    probes: int
    cohort_size: int

    @classmethod
    def of(cls, values: Mapping) -> "Design":
        """From a mapping with these keys; other keys are ignored."""
        return cls(tuple(values["copies"]), values["probes"], values["cohort_size"])

    @property
    def arms(self) -> list[Arm]:
        """The arms, in the order in which probes are assigned to them."""
        return [Arm(copies, position) for copies in self.copies for position in POSITIONS]

    @property
    def n_probes(self) -> int:
        """The number of probes of all arms."""
        return self.probes * len(self.arms)

    @property
    def n_copies(self) -> int:
        """The number of training strings of a stream that are probes, with copies."""
        return self.probes * sum(arm.copies for arm in self.arms)

    def n_others(self, size: int) -> int:
        """The number of training strings of a stream that are not probes."""
        return size - self.n_copies

    def cohorts(self, size: int) -> int:
        """The number of macro-batches of a stream."""
        return size // self.cohort_size

    def quarter(self, size: int) -> int:
        """The number of macro-batches in a quarter of a stream."""
        return self.cohorts(size) // QUARTERS

    def fullest(self, size: int) -> int:
        """The largest number of probes, with copies, that a macro-batch of a stream has to hold."""
        each = -(-self.probes // self.quarter(size))
        return each * sum(self.copies)

    def slots(self, size: int) -> list[Slot]:
        """The place of every copy of every probe, evenly over the macro-batches of the quarter."""
        quarter = self.quarter(size)
        first = {EARLY: 1, LATE: self.cohorts(size) - quarter + 1}
        return [
            Slot(place * self.probes + number, first[arm.position] + number % quarter)
            for place, arm in enumerate(self.arms)
            for number in range(self.probes)
            for _ in range(arm.copies)
        ]


def position_of(cohort: int, cohorts: int) -> str:
    """The position of a probe, from its macro-batch (from 1) and the number of macro-batches."""
    return EARLY if cohort <= cohorts // QUARTERS else LATE
