"""Regimes: how often a dataset is trained on, and when the models are measured.

A regime alone composes and reads its name, and the names of the models in its files.
"""

from __future__ import annotations

from dataclasses import dataclass

from palimpsest.interventions import BASE

LEAVE_ONE_OUT = "leave-one-out"
LEAVE_ONE_OUT_AGAIN = "leave-one-out-again"
REMOVALS, REMOVALS_AGAIN = "removals", "removals-again"
# Of the second leave-one-out and the second removals, the training on the whole training set
WHOLE_AGAIN = "again"
WITHOUT, HALF = "without", "half"
ALL = "all"


class Regime:
    """One training for each seed, measured as the recipe says; a subclass says what differs."""

    name: str
    has_one_model = True

    def folder(self, intervention: str) -> str:
        """The folder of a run on an intervention; it is its `variant` in paths and tables."""
        return intervention

    def trainings(self, size: int) -> int:
        """The number of trainings for one seed, on `size` training strings."""
        return 1


@dataclass(frozen=True)
class Single(Regime):
    """One training for each seed."""

    name = "single"


@dataclass(frozen=True)
class LeaveOneOut(Regime):
    """One training for each of `n` distinct training strings, without this string; None: for all.

    `again` is the same with other initial weights and another order of the strings, after a
    training on the whole training set.
    """

    n: int | None = None
    again: bool = False
    has_one_model = False

    @property
    def name(self) -> str:
        return LEAVE_ONE_OUT_AGAIN if self.again else LEAVE_ONE_OUT

    def folder(self, intervention: str) -> str:
        return self.name

    def trainings(self, size: int) -> int:
        n_left_out = size if self.n is None else min(size, self.n)
        return n_left_out + self.again


@dataclass(frozen=True)
class Removals(Regime):
    """One training without each distinct training string, and one on each of some random halves.

    `n` limits the strings as in `LeaveOneOut`; a half has half of the distinct strings. Unlike
    leave-one-out, every training measures all training strings, so it says what the removed string
    did to the others. A removed string leaves its place in each epoch empty: the others keep their
    steps, so that a difference between two trainings has no other cause. `again` is the same with
    other initial weights and another order, after a training on the whole training set.
    """

    n: int | None = None
    halves: int = 0
    again: bool = False
    has_one_model = False

    @property
    def name(self) -> str:
        return f"{self.folder(BASE)}:{ALL if self.n is None else self.n}:{self.halves}"

    def folder(self, intervention: str) -> str:
        return REMOVALS_AGAIN if self.again else REMOVALS

    def trainings(self, size: int) -> int:
        n_removed = size if self.n is None else min(size, self.n)
        return n_removed + self.halves + self.again


@dataclass(frozen=True)
class OnePass(Regime):
    """One pass over the macro-batches of a stream.

    `cohorts` is the number of macro-batches, and `measured` that of the strings that are measured,
    before the first macro-batch and after `every` of them. A `replicate` has a number and initial
    weights of its own.
    """

    cohorts: int
    measured: int
    every: int = 1
    replicate: int | None = None

    @property
    def name(self) -> str:
        words = ["one-pass", self.every, *([] if self.replicate is None else [self.replicate])]
        return ":".join(map(str, words))

    def folder(self, intervention: str) -> str:
        if self.replicate is None:
            return intervention
        return of_replicate(intervention, self.replicate)


@dataclass(frozen=True)
class Replicates(Regime):
    """Many trainings for each seed; `numbers` are those of the replicates, from 0.

    One job trains at most `per_job` of them, and their weights are in one file.
    """

    numbers: range
    per_job: int = 1
    name = "replicates"
    has_one_model = False

    def trainings(self, size: int) -> int:
        return len(self.numbers)


SINGLE = Single()
# The regimes that train many models in one job and one folder, by the folder
MANY_MODELS = {
    regime.folder(BASE): regime
    for kind in (LeaveOneOut, Removals)
    for regime in (kind(), kind(again=True))
}


def named(name: str, left_out: int | None = None) -> Regime:
    """The regime of a training command, from its name; `left_out` is the `n` of leave-one-out.

    The lengths of a stream are 0: its dataset has them. Raises `ValueError` for another name.
    """
    kind, *numbers = name.split(":")
    if kind in (REMOVALS, REMOVALS_AGAIN) and len(numbers) == 2:
        n, halves = numbers
        return Removals(None if n == ALL else int(n), int(halves), again=kind == REMOVALS_AGAIN)
    if kind == "one-pass" and 1 <= len(numbers) <= 2:
        return OnePass(0, 0, *map(int, numbers))
    for regime in (SINGLE, LeaveOneOut(left_out), LeaveOneOut(left_out, again=True)):
        if name == regime.name:
            return regime
    raise ValueError(f"unknown regime {name!r}")


# Names of the models in the files of a regime


def without_string(string_id: str) -> str:
    return f"{WITHOUT}-{string_id}"


def string_left_out(name: str) -> str:
    return name.removeprefix(f"{WITHOUT}-")


def of_half(number: int) -> str:
    return f"{HALF}-{number}"


def half_of(name: str) -> int | None:
    """The number of a random half; None for any other name."""
    start, _, number = name.rpartition("-")
    return int(number) if start == HALF and number.isdecimal() else None


def of_replicate(intervention: str, replicate: int) -> str:
    """The model of one replicate, numbered from 0: the third replicate of base is base-2."""
    return f"{intervention}-{replicate}"


def intervention_of_replicate(name: str) -> str:
    """The intervention of a replicate: stream for stream-2."""
    return name.rpartition("-")[0]


def replicate_of(name: str, intervention: str) -> int | None:
    """The number of a replicate; None if it is not a replicate of this intervention.

    For example, base-2 is replicate 2 of base.
    """
    start, _, number = name.rpartition("-")
    return int(number) if start == intervention and number.isdecimal() else None
