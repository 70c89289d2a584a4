"""Placebos of forget strings: strings that no model was trained on, measured by the same code."""

import numpy as np

from palimpsest.datasets.choices import DECIMALS, candidates
from palimpsest.errors import UserError
from palimpsest.unlearning.samples import Problem

FORGET, PLACEBO = KINDS = ("forget", "placebo")


def placebos(problem: Problem) -> np.ndarray:
    """Indices int[forget strings] of each forget string's placebo among the problem's strings.

    A placebo is an unseen test string that is as hard as the forget string: its Bayes-optimal loss
    is near. Where a corpus has no probabilities, the mean loss of the retrained models takes the
    place of the Bayes-optimal loss. Every forget string has a placebo of its own, with the smallest
    sum of the distances; if there are more forget strings than unseen strings, every unseen string
    is used as often as necessary, but no more. The names of strings decide between equal sums.

    Raises `UserError` if no test string is unseen.
    """
    from scipy.optimize import linear_sum_assignment

    strings = problem.strings
    loss = strings["optimal_loss"].to_numpy(dtype=float)
    if np.isnan(loss).any():
        loss = problem.reference.loss.mean(axis=0)
    names = strings["string_id"].to_numpy(dtype=str)
    forget, unseen = (
        np.flatnonzero(which)[np.argsort(names[which])]
        for which in (problem.forget, candidates(strings))
    )
    if not len(unseen):
        keys = problem.keys
        raise UserError(
            f"{keys['language']}, size {keys['size']}, seed {keys['seed']}: every test string was "
            "trained on, so there is no placebo; raise datasets/test_size"
        )
    unseen = np.tile(unseen, -(-len(forget) // len(unseen)))
    distance = abs(loss[forget][:, None] - loss[unseen]).round(DECIMALS)
    chosen = dict(zip(forget, unseen[linear_sum_assignment(distance)[1]], strict=True))
    return np.array([chosen[one] for one in np.flatnonzero(problem.forget)])


def measured_strings(problem: Problem) -> list[tuple[str, np.ndarray]]:
    """The forget strings and their placebos: name of the kind, and indices int[forget strings]."""
    forget = np.flatnonzero(problem.forget)
    return list(zip(KINDS, (forget, placebos(problem)), strict=True))
