"""Norms of a model's weights: the baselines that information measures are compared with.

Source: the paper on information measures of neurons, appendix C.4 and D.2; Jiang et al., Fantastic
generalization measures and where to find them (2019).
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from palimpsest.errors import UserError


class Norms(NamedTuple):
    """The mean over the weight matrices of the logarithms of two norms.

    The paper's measures are products over the matrices. The mean of logarithms orders models of one
    architecture in the same way, and its size does not depend on the number of matrices.

    Parameters
    ----------
    two_norm : of the largest singular values
    frobenius : of the square roots of the sums of squares
    """

    two_norm: float
    frobenius: float


def norms(matrices: Iterable[np.ndarray]) -> Norms:
    """The norms of some weight matrices, each float[outputs, inputs].

    Raises `UserError` if there are no matrices, or if one is 0 or not finite.
    """
    logs = []
    for place, matrix in enumerate(matrices):
        values = np.asarray(matrix, dtype=float)
        if not (np.isfinite(values).all() and values.any()):
            raise UserError(
                f"norms: matrix {place} is 0 or not finite; lower the learning rate of the model, "
                "and train it again"
            )
        logs.append([np.log(np.linalg.norm(values, order)) for order in (2, "fro")])
    if not logs:
        raise UserError("norms: the model has no weight matrices")
    return Norms(*np.mean(logs, axis=0).tolist())
