"""Norms of a model's weights: the baselines that information measures are compared with.

Source: the paper on information measures of neurons, appendix C.4 and D.2; Jiang et al., Fantastic
generalization measures and where to find them (2019).
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
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


def path_norm(matrices: Sequence[np.ndarray], biases: Sequence[np.ndarray] = ()) -> float:
    """The logarithm of the path norm of a feed-forward network with ReLUs.

    The path norm is the square root of the sum, over all paths from an input or a bias to an
    output, of the product of the squared weights on the path.

    Parameters
    ----------
    matrices : float[outputs, inputs] of every layer, from the input to the output
    biases : float[outputs] of every layer, or none at all

    Raises `UserError` if there are no matrices, if one does not take what the one before it gives,
    if there is not one bias for each output, or if no path has a finite norm above 0.

    Source: Neyshabur, Tomioka and Srebro, Norm-based capacity control in neural networks (2015);
    Jiang et al., Fantastic generalization measures and where to find them (2019).
    """
    if not len(matrices):
        raise UserError("path_norm: the model has no weight matrices")
    shapes = [np.shape(matrix) for matrix in matrices]
    chained = all(len(shape) == 2 for shape in shapes) and all(
        before[0] == after[1] for before, after in pairwise(shapes)
    )
    given = [np.shape(bias) for bias in biases]
    if not chained or (given and given != [shape[:1] for shape in shapes]):
        raise UserError(
            "path_norm: must be matrices [outputs, inputs] in the order of the layers, with one "
            f"bias for each output or none; their shapes are {shapes} and {given}"
        )
    paths, log = np.ones(shapes[0][1]), 0.0
    for place, matrix in enumerate(matrices):
        paths = np.square(np.asarray(matrix, dtype=float)) @ paths
        if given:
            paths += np.square(np.asarray(biases[place], dtype=float)) * np.exp(-log)
        # Scaled, because products over many layers would be too large for a float.
        total = paths.sum()
        if not (np.isfinite(total) and total > 0):
            raise UserError("path_norm: no path from input to output is finite and above 0")
        paths, log = paths / total, log + np.log(total)
    return float(log / 2)
