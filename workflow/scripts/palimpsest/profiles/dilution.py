"""The factorial of dilution and order: copies of a string, position, and amount of other strings.

The amount is the size of the stream: the number of its training strings, with copies. Copies and
position are the arms of every stream. An arm is a group of strings, the probes, that are trained on
in equally many copies and in the same quarter of the stream.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.

Source: Hubble: a Model Suite to Advance the Study of LLM Memorization (ICLR 2026), which places
strings in known numbers of copies into corpora of two sizes, and into parts of the training.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from palimpsest.configuration.checks import too_many_strings, unknown_languages, unknown_model
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.requests import OnePass, Runs
from palimpsest.variants import DILUTED, DILUTED_WITHOUT, QUARTERS, measured_every

VARIANTS = (DILUTED, DILUTED_WITHOUT)
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
        """From a mapping with these keys; other keys are ignored."""
        return cls(
            tuple(sorted(values["sizes"])),
            tuple(sorted(values["copies"])),
            *(values[name] for name in ("probes", "validation", "cohort_size")),
        )

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

    @property
    def n_strings(self) -> int:
        """The number of distinct strings of all streams together."""
        n_others = self.n_others(max(self.sizes))
        return self.validation + self.n_probes + self.n_copies + n_others

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


def design(settings: Settings) -> Design | None:
    """The factorial of the block `profiles`; None if it is left out."""
    block = settings.block("profiles")
    asked = block["dilution"]
    return None if asked is None else Design.of({**block, **asked})


def streams(settings: Settings) -> Iterator[Runs]:
    """The streams of all sizes, with their probes and without."""
    made = design(settings)
    if made is None:
        return
    asked = settings.block("profiles")["dilution"]
    for language in asked["languages"]:
        for size in made.sizes:
            cohorts = made.cohorts(size)
            every = measured_every(DILUTED, cohorts)
            length = OnePass(cohorts, made.n_probes + made.validation, every)
            for variant in VARIANTS:
                given = asked["model"], language, size, variant, settings.seeds
                yield Runs(*given, one_pass=length)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """The mistakes in the key `dilution` that the schema cannot find."""
    made = design(settings)
    if made is None:
        return
    asked, key = settings.block("profiles")["dilution"], "profiles/dilution"
    yield from unknown_model(settings, f"{key}/model", asked["model"])
    yield from unknown_languages(settings, f"{key}/languages", asked["languages"])
    quarters = QUARTERS * made.cohort_size
    for place, size in enumerate(asked["sizes"]):
        if size % quarters:
            yield Mistake(
                f"{key}/sizes[{place}]",
                f"{size} strings are not {QUARTERS} equal quarters of whole macro-batches; it must "
                f"be a multiple of {quarters}, which is {QUARTERS} times profiles/cohort_size",
            )
            return
    smallest = made.sizes[0]
    if (needed := made.fullest(smallest)) > made.cohort_size:
        yield Mistake(
            f"{key}/probes",
            f"{made.probes} strings of each arm do not fit into a quarter of the smallest stream, "
            f"{smallest} strings: a macro-batch would have to hold {needed} copies, and "
            f"profiles/cohort_size is {made.cohort_size}; lower probes or copies, or raise sizes",
        )
    if made.validation < 2 * len(made.arms):
        yield Mistake(
            "profiles/validation",
            f"{made.validation} strings are too few: half of them are the placebos of the "
            f"{len(made.arms)} arms of profiles/dilution; raise it to {2 * len(made.arms)}",
        )
    yield from too_many_strings(settings, f"{key}/sizes", [made.n_strings], asked["languages"])
