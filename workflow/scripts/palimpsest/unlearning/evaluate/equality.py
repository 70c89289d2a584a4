"""Methods whose models predict exactly alike, which shows a mistake in a method or in its files."""

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np

from palimpsest.errors import UserError
from palimpsest.unlearning.evaluate.samples import Predictions, Problem, UnlearnedModels


def equal_methods(problem: Problem, methods: Iterable[UnlearnedModels]) -> list[tuple[str, str]]:
    """Pairs of methods whose models predict all strings exactly alike, to the last bit.

    The distinct models of the set-up with the most models are compared. An end is compared by its
    traces and, if they are read, by its own tables. So a method that does nothing is equal to
    `none`.
    """
    seen: list[tuple[str, set[bytes]]] = []
    pairs = []
    for method in methods:
        prints = fingerprints(problem, method)
        pairs += [(name, method.name) for name, known in seen if known & prints]
        seen.append((method.name, prints))
    return pairs


def refuse_equal(problem: Problem, methods: Iterable[UnlearnedModels]) -> Iterator[UnlearnedModels]:
    """Yield the methods; raise `UserError` at one that predicts all strings exactly like an earlier
    one.

    For the parameters see `equal_methods`.
    """
    seen: dict[bytes, str] = {}
    for method in methods:
        prints = fingerprints(problem, method)
        same = next((seen[one] for one in prints if one in seen), None)
        if same is not None:
            raise UserError(
                f"unlearning/methods: {method.name} and {same} make models with exactly equal "
                f"predictions of every string; one of them does nothing, or both are the same: "
                f"change its settings in unlearning/table, or leave {method.name} out"
            )
        seen |= dict.fromkeys(prints, method.name)
        yield method


def fingerprints(problem: Problem, method: UnlearnedModels) -> set[bytes]:
    both = method.of(problem.stock), method.measured_of(problem.stock)
    return {_fingerprint(predictions) for predictions in both if predictions is not None}


def _fingerprint(predictions: Predictions) -> bytes:
    values = predictions.nll, predictions.n_correct, predictions.rank_sum
    whole = np.stack([array.astype(np.float64) for array in values])
    return hashlib.sha256(whole.tobytes()).digest()
