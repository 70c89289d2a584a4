"""Set-ups of the evaluation: which models stand for which distribution in which repetition.

A set-up trades the number of trainings for independence between repetitions. All of them draw from
one store of models, which are named by numbers: an original or retrained model by its draw, an
unlearned one by the draw of the original model that it started from and by its own.

Source: Are we making progress in unlearning?, section 4, figure 2 and table 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

FULL, REUSE_N_N, REUSE_N_1, BOOTSTRAP = SETUPS = ("full", "reuse-n-n", "reuse-n-1", "bootstrap")
RETRAIN, NONE = ENDS = ("retrain", "none")  # the ideal, and the original model


class Members(NamedTuple):
    """The models of one repetition, each int[n].

    `origins` and `draws` name the unlearned models, `retrained` the retrained ones beside them.
    """

    origins: np.ndarray
    draws: np.ndarray
    retrained: np.ndarray


@dataclass(frozen=True)
class Setup:
    """A set-up with `n` models of each distribution in each of `repetitions` repetitions.

    `pool` counts the triplets of models that the bootstrap draws from, with replacement.
    """

    name: str
    n: int
    repetitions: int
    pool: int
    seed: int = 0

    def members(self, repetition: int) -> Members:
        """The models of a repetition, which counts from 0."""
        each = np.arange(self.n)
        if self.name == FULL:
            fresh = repetition * self.n + each
            return Members(fresh, np.zeros_like(each), fresh)
        if self.name == REUSE_N_N:
            return Members(each, np.full_like(each, repetition), each)
        if self.name == REUSE_N_1:
            return Members(np.zeros_like(each), repetition * self.n + each, each)
        picked = np.random.default_rng([self.seed, repetition]).choice(self.pool, self.n)
        return Members(picked, np.zeros_like(each), picked)

    @property
    def n_trained(self) -> int:
        """Original models that are trained, and as many retrained ones, but for reuse-n-1."""
        return {FULL: self.n * self.repetitions, BOOTSTRAP: self.pool}.get(self.name, self.n)

    def wanted(self) -> set[tuple[int, int]]:
        """The origin and the draw of every unlearned model of any repetition.

        The bootstrap wants its whole pool, whether or not all of it is drawn.
        """
        if self.name == BOOTSTRAP:
            return {(origin, 0) for origin in range(self.pool)}
        return {
            (int(origin), int(draw))
            for repetition in range(self.repetitions)
            for origin, draw in zip(*self.members(repetition)[:2], strict=True)
        }


def wanted(setups: Iterable[Setup]) -> list[tuple[int, int]]:
    """The origin and the draw of every unlearned model of some set-ups, in order."""
    return sorted(set().union(*(setup.wanted() for setup in setups)))


def n_originals(setups: Iterable[Setup]) -> int:
    """Original models that some set-ups need."""
    return 1 + max(origin for origin, _ in wanted(setups))


def n_retrained(setups: Iterable[Setup]) -> int:
    """Retrained models that some set-ups compare with; the ideal needs as many again."""
    return max(setup.n_trained for setup in setups)
