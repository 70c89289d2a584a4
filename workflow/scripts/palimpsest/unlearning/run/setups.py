"""Set-ups of the evaluation: the models that each repetition uses for each distribution.

A set-up with fewer trainings has repetitions that are less independent. All set-ups use the same
models, named by numbers. The number of an original or retrained model is its replicate. An
unlearned model has two numbers: its origin, which is the replicate of its original model, and its
replicate, which counts the unlearnings of this original model.

Source: Are we making progress in unlearning?, section 4, figure 2 and table 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from palimpsest.unlearning.interventions import TRACED

FULL, REUSE_N_N, REUSE_N_1, BOOTSTRAP = SETUPS = ("full", "reuse-n-n", "reuse-n-1", "bootstrap")
RETRAIN, NONE = ENDS = ("retrain", "none")  # the ideal, and doing nothing (the original models)
# Of methods: the paper compares the first two, and has a baseline for both.
COMPETITION, LITERATURE, BASELINE = SOURCES = ("competition", "literature", "baseline")
INNOCENT = "innocent"  # retrained models that are trained by another recipe; no method
RETRAINED = "retrained"  # the models that methods are compared with; `retrain` are further ones
OTHER_MODELS = (*ENDS, INNOCENT, RETRAINED, TRACED)  # no method has such a name


def retraining_steps(epochs: int, n_retain: int, batch_size: int) -> int:
    """Training steps of one retraining: `epochs` epochs over `n_retain` strings, with copies."""
    return epochs * -(-n_retain // batch_size)


class Members(NamedTuple):
    """The models of one repetition, each int[n].

    `origins` and `unlearning_replicates` name the unlearned models; `retrained` the paired
    retrained models.
    """

    origins: np.ndarray
    unlearning_replicates: np.ndarray
    retrained: np.ndarray


@dataclass(frozen=True)
class Setup:
    """A set-up with `n` models of each distribution in each of `repetitions` repetitions.

    The bootstrap draws with replacement from `pool` triplets of models.
    """

    name: str
    n: int
    repetitions: int
    pool: int
    seed: int = 0

    def members(self, repetition: int) -> Members:
        """The models of a repetition; repetitions are numbered from 0."""
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
        """Number of retrained models; also the number of original models, except for reuse-n-1."""
        return {FULL: self.n * self.repetitions, BOOTSTRAP: self.pool}.get(self.name, self.n)

    def unlearned_models(self) -> set[tuple[int, int]]:
        """The origin and the replicate of every unlearned model of all repetitions.

        The bootstrap needs its whole pool, even if it does not draw every model of the pool.
        """
        if self.name == BOOTSTRAP:
            return {(origin, 0) for origin in range(self.pool)}
        return {
            (int(origin), int(replicate))
            for repetition in range(self.repetitions)
            for origin, replicate in zip(*self.members(repetition)[:2], strict=True)
        }


def unlearned_models(setups: Iterable[Setup]) -> list[tuple[int, int]]:
    return sorted(set().union(*(setup.unlearned_models() for setup in setups)))


def n_originals(setups: Iterable[Setup]) -> int:
    return 1 + max(origin for origin, _ in unlearned_models(setups))


def n_retrained(setups: Iterable[Setup]) -> int:
    """Number of retrained models with which some set-ups compare; the ideal needs as many more."""
    return max(setup.n_trained for setup in setups)
