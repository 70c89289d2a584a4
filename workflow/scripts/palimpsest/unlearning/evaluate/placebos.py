"""Placebos and retained strings: the controls, measured by the same code as the forget strings.

A placebo is a string that no model was trained on. A retained string was trained on, like a forget
string, and is not to be forgotten: it has something to lose.
"""

import numpy as np

from palimpsest.datasets.choices import DECIMALS, candidates
from palimpsest.errors import UserError
from palimpsest.unlearning.evaluate.samples import Problem

FORGET, PLACEBO, RETAINED = "forget", "placebo", "retained"
CONTROLS = (PLACEBO, RETAINED)


def placebos(problem: Problem) -> np.ndarray:
    """Indices int[forget strings] of each forget string's placebo among the problem's strings.

    A placebo is an unseen test string that is as hard as the forget string: its Bayes-optimal loss
    is near. For the choice, see `as_hard`. Raises `UserError` if no test string is unseen.
    """
    unseen = candidates(problem.strings)
    if not unseen.any():
        keys = problem.keys
        raise UserError(
            f"{keys['language']}, size {keys['size']}, seed {keys['seed']}: every test string was "
            "trained on, so there is no placebo; raise datasets/test_size"
        )
    return as_hard(problem, unseen)


def retained(problem: Problem) -> np.ndarray | None:
    """Indices int[forget strings] of a retained training string for each forget string.

    The retained string is as hard as the forget string. For the choice, see `as_hard`. None if
    every training string is to be forgotten.
    """
    kept = (problem.strings["count"] > 0).to_numpy() & ~problem.forget
    return as_hard(problem, kept) if kept.any() else None


def as_hard(problem: Problem, among: np.ndarray) -> np.ndarray:
    """Indices int[forget strings] of a string for each forget string, with a near loss.

    `among` is bool[strings], the strings to choose from. The losses are Bayes-optimal. Where a
    corpus has no probabilities, the mean loss of the retrained models takes their place. Every
    forget string gets a string of its own, with the smallest sum of the distances; if there are
    more forget strings than strings to choose from, every string is used as often as necessary, but
    no more. The names of strings decide between equal sums.
    """
    from scipy.optimize import linear_sum_assignment

    strings = problem.strings
    loss = strings["optimal_loss"].to_numpy(dtype=float)
    if np.isnan(loss).any():
        loss = problem.reference.loss.mean(axis=0)
    names = strings["string_id"].to_numpy(dtype=str)
    forget, others = (
        np.flatnonzero(which)[np.argsort(names[which])] for which in (problem.forget, among)
    )
    others = np.tile(others, -(-len(forget) // len(others)))
    distance = abs(loss[forget][:, None] - loss[others]).round(DECIMALS)
    chosen = dict(zip(forget, others[linear_sum_assignment(distance)[1]], strict=True))
    return np.array([chosen[one] for one in np.flatnonzero(problem.forget)])


def measured_strings(problem: Problem) -> list[tuple[str, np.ndarray]]:
    """The forget strings and their placebos: name of the kind, and indices int[forget strings]."""
    forget = np.flatnonzero(problem.forget)
    return [(FORGET, forget), (PLACEBO, placebos(problem))]


def strings_and_controls(problem: Problem) -> list[tuple[str, np.ndarray]]:
    """`measured_strings`, and the retained strings as well, if there are any."""
    kept = retained(problem)
    return [*measured_strings(problem), *([] if kept is None else [(RETAINED, kept)])]
