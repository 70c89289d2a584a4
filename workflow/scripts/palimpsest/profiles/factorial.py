"""The factorial of copies, position and amount of other data, without its runs.

This module needs no packages, so that environments without those of the configuration import it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from palimpsest.profiles.interventions import QUARTERS

EARLY, LATE = "early", "late"  # the first and the last quarter of a stream
POSITIONS = (EARLY, LATE)


class Arm(NamedTuple):
    """The strings with this many copies in this part of the stream."""

    copies: int
    position: str


class Slot(NamedTuple):
    """One copy of a probe: the number of the probe, from 0, and the macro-batch, from 1."""

    probe: int
    cohort: int


@dataclass(frozen=True)
class Design:
    """The factorial of one configuration.

    `sizes` are the numbers of training strings of the streams, with copies. `copies` are the
    numbers of copies of a probe, `probes` is the number of probes of an arm, and `validation` the
    number of strings that are never trained on. `cohort_size` is the number of training strings of
    a macro-batch, with copies.
    """

    sizes: tuple[int, ...]
    copies: tuple[int, ...]
    probes: int
    validation: int
    cohort_size: int

    @classmethod
    def of(cls, values: Mapping) -> "Design":
        return cls(
            tuple(sorted(values["sizes"])),
            tuple(sorted(values["copies"])),
            *(values[name] for name in ("probes", "validation", "cohort_size")),
        )

    @property
    def arms(self) -> list[Arm]:
        return [Arm(copies, position) for copies in self.copies for position in POSITIONS]

    @property
    def n_probes(self) -> int:
        return self.probes * len(self.arms)

    @property
    def n_copies(self) -> int:
        """The number of training strings of a stream that are probes, with copies."""
        return self.probes * sum(arm.copies for arm in self.arms)

    @property
    def n_strings(self) -> int:
        n_others = self.n_others(max(self.sizes))
        return self.validation + self.n_probes + self.n_copies + n_others

    def n_others(self, size: int) -> int:
        return size - self.n_copies

    def cohorts(self, size: int) -> int:
        return size // self.cohort_size

    def quarter(self, size: int) -> int:
        return self.cohorts(size) // QUARTERS

    def fullest(self, size: int) -> int:
        """The largest number of probes, with copies, in a macro-batch of a stream."""
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
