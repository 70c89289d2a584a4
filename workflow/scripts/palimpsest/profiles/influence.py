"""Influence functions: what a model would predict without some strings, without training again.

The weights of a trained model are moved to where they would be, to first order, if some training
strings had been left out of the training loss L, the mean over N strings of their nll:

    weights without the strings = weights + 1/N (G + d I)^-1 (sum of the strings' gradients)

The paper has the Hessian of L in place of G + d I. That matrix must be positive definite, and the
Hessian of a network that has not converged is not. So G is the Gauss-Newton matrix, which is the
Hessian of L where the network is replaced by its linearisation. Its products with vectors are
computed from a sample of the training strings. The system is damped by d and solved by conjugate
gradients, which stop after some steps; both keep the moved weights close to the old ones. How much
of the system is left unsolved is part of the result. With less damping, the weights move further.

A run that has not converged still has a large gradient, which all strings share. Leaving strings
out, as the paper does, moves the weights along it, and changes the predictions of all strings by
several nats. So other strings can take the place of those that are left out, as in a stream without
a macro-batch.

Sources: Causal Estimation of Memorisation Profiles, section 5.2 and appendix B.2 (eq. 13, 33); Bae
et al., If influence functions are the answer, then what is the question? (2022), for Gauss-Newton
and damping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from palimpsest.models.trained import Models
from palimpsest.training.batches import IGNORED, TokenisedStrings, by_length

DAMPING = 100.0  # times the mean eigenvalue
STEPS = 15  # of conjugate gradients
PROBES = 8  # random vectors from which the mean eigenvalue is estimated
SAMPLED = 16  # training strings whose curvature is computed
# A derivative by a vector is computed from a step of this length, relative to the weights. The
# curvature along a gradient is so strong that longer steps are no longer linear.
RELATIVE_STEP = 1e-4
STRINGS_AT_ONCE = 16


@dataclass(frozen=True)
class Moved:
    """The weights without some strings, and how well the linear system was solved.

    `weights` float32[M, parameters] are the moved weights of each model, in the order of its
    `shapes`. `residual` float64[M] is the length of right side minus left side of the linear system
    at the solution, relative to the right side: 0 is exact.
    """

    weights: torch.Tensor
    residual: np.ndarray


def without(
    models: Models,
    strings: TokenisedStrings,
    removed: Sequence[np.ndarray],
    replacements: np.ndarray | None,
    training: np.ndarray,
) -> Moved:
    """The weights of a trained model without some of its training strings, to first order.

    Parameters
    ----------
    models : M copies of one trained model; their weights are the same afterwards
    strings : the strings of the model's dataset
    removed : for each of the M copies, the rows int[n] of the strings that are left out
    replacements : rows of strings like those that take their place; their mean gradient counts once
        for every string that is left out. With None, nothing takes their place
    training : rows int[N] of the training set

    Source: Causal Estimation of Memorisation Profiles, eq. 13; see the module for what differs.
    """
    chance = np.random.default_rng(0)  # of the sample, and of the estimate of the mean eigenvalue
    sample = chance.permutation(training)[:SAMPLED]
    curvature = GaussNewton(models, strings, sample)
    damping = DAMPING * mean_eigenvalue(curvature, chance)
    gradient_MP = gradients_of_sums(models, strings, removed)
    if replacements is not None:
        # The copies are equal, so each takes a part of the strings, and the parts are added up.
        parts = np.array_split(replacements, models.count)
        mean_P = gradients_of_sums(models, strings, parts).sum(0) / len(replacements)
        for place, rows in enumerate(removed):
            gradient_MP[place] -= len(rows) * mean_P

    def times(vector_MP: torch.Tensor) -> torch.Tensor:
        return curvature.times(vector_MP) + damping * vector_MP

    solution_MP = conjugate_gradients(times, gradient_MP, STEPS)
    rest_M = (gradient_MP - times(solution_MP)).norm(dim=1)
    moved_MP = curvature.start_MP + solution_MP / len(training)
    return Moved(moved_MP, (rest_M / gradient_MP.norm(dim=1)).double().cpu().numpy())


def mean_eigenvalue(curvature: GaussNewton, chance: np.random.Generator) -> float:
    """Estimate of the mean eigenvalue of the matrix, which all copies of a model share.

    The mean of v G v over random signs v is the trace of G. The number of vectors v does not depend
    on the number of copies.
    """
    shape = PROBES, curvature.start_MP.shape[1]
    signs = torch.from_numpy(chance.choice([-1.0, 1.0], size=shape)).to(curvature.start_MP)
    found = []
    for some in signs.split(len(curvature.start_MP)):
        # Every copy has a vector; the last ones may repeat.
        vectors_MP = some[torch.arange(len(curvature.start_MP)) % len(some)]
        found.append((vectors_MP * curvature.times(vectors_MP)).mean(1)[: len(some)])
    return float(torch.cat(found).mean())


def conjugate_gradients(
    times: Callable[[torch.Tensor], torch.Tensor], right_MP: torch.Tensor, steps: int
) -> torch.Tensor:
    """Approximate solutions float[M, P] of M linear systems with positive definite matrices.

    `times` multiplies each of M vectors with its matrix. A solved system does not change. Of all
    steps, the one with the smallest residual is returned: residuals rise and fall.
    """
    solution_MP = torch.zeros_like(right_MP)
    rest_MP, direction_MP = right_MP.clone(), right_MP.clone()
    square_M = rest_MP.square().sum(1)
    best_MP, best_M = solution_MP.clone(), square_M.clone()
    for _ in range(steps):
        product_MP = times(direction_MP)
        curvature_M = (direction_MP * product_MP).sum(1)
        length_M = torch.where(curvature_M > 0, square_M / curvature_M, 0.0)
        solution_MP += length_M[:, None] * direction_MP
        rest_MP -= length_M[:, None] * product_MP
        before_M, square_M = square_M, rest_MP.square().sum(1)
        is_better_M = square_M < best_M
        best_MP[is_better_M], best_M = solution_MP[is_better_M], square_M.minimum(best_M)
        ratio_M = torch.where(before_M > 0, square_M / before_M, 0.0)
        direction_MP = rest_MP + ratio_M[:, None] * direction_MP
    return best_MP


class GaussNewton:
    """The Gauss-Newton matrix of the mean nll of some strings, at the weights of M models.

    `start_MP` are the weights.
    """

    def __init__(self, models: Models, strings: TokenisedStrings, rows: np.ndarray):
        self._models, self._n = models, len(rows)
        self.start_MP = flat_weights(models)
        self._batches = []
        for some in by_length(strings.lengths, rows, STRINGS_AT_ONCE, 1):
            ids_MBT, is_real_MBT, _ = copies_of(strings, [some] * models.count, models.device)
            with torch.no_grad():
                logits_MBTV = models.logits(ids_MBT)
            self._batches.append((ids_MBT, is_real_MBT, logits_MBTV))

    def times(self, vector_MP: torch.Tensor) -> torch.Tensor:
        """The matrix of each model times a vector of its own; the models' weights stay the same.

        With the logits z and the softmax p, the matrix is the mean over strings of the sum over
        tokens of (dz)' (diag(p) - p p') (dz). Its product needs the derivative of z by the vector,
        which is computed from a small step, and one backward pass.
        """
        lengths_M = vector_MP.norm(dim=1).clamp(min=1e-30)
        step_M = RELATIVE_STEP * self.start_MP.norm(dim=1) / lengths_M
        set_weights(self._models, self.start_MP + step_M[:, None] * vector_MP)
        with torch.no_grad():
            moved = [self._models.logits(ids_MBT) for ids_MBT, _, _ in self._batches]
        set_weights(self._models, self.start_MP)
        total_MP = torch.zeros_like(vector_MP)
        for (ids_MBT, is_real_MBT, logits_MBTV), moved_MBTV in zip(
            self._batches, moved, strict=True
        ):
            change_MBTV = (moved_MBTV - logits_MBTV) / step_M[:, None, None, None]
            p_MBTV = logits_MBTV.softmax(-1)
            mean_MBT1 = (p_MBTV * change_MBTV).sum(-1, keepdim=True)
            weighted_MBTV = p_MBTV * (change_MBTV - mean_MBT1) * is_real_MBT[..., None]
            loss_M = (self._models.logits(ids_MBT) * weighted_MBTV).sum((1, 2, 3)) / self._n
            total_MP += flat(self._models.gradients(loss_M))
        return total_MP


def gradients_of_sums(
    models: Models, strings: TokenisedStrings, rows: Sequence[np.ndarray]
) -> torch.Tensor:
    """The gradients float32[M, parameters] of the summed nll of each model's own rows."""
    total_MP = torch.zeros_like(flat_weights(models))
    for part in parts_of(rows):
        total_MP += flat(models.gradients(nll_of(models, strings, part).sum(1)))
    return total_MP


def losses(
    models: Models, strings: TokenisedStrings, rows: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The nll float64[n] in nats of each model's own rows."""
    with torch.no_grad():
        nll_MB = torch.cat([nll_of(models, strings, part) for part in parts_of(rows)], dim=1)
    found = nll_MB.double().cpu().numpy()
    return [of_model[: len(own)] for of_model, own in zip(found, rows, strict=True)]


def parts_of(rows: Sequence[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """The rows of each model in parts of equal length; -1 where a model has no row left."""
    longest = max(map(len, rows))
    padded = np.stack([np.pad(own, (0, longest - len(own)), constant_values=-1) for own in rows])
    for first in range(0, longest, STRINGS_AT_ONCE):
        yield list(padded[:, first : first + STRINGS_AT_ONCE])


def nll_of(models: Models, strings: TokenisedStrings, rows: list[np.ndarray]) -> torch.Tensor:
    """The nll float32[M, B] of each model's own rows, in nats; 0 for a row of -1."""
    ids_MBT, is_real_MBT, targets_MBT = copies_of(strings, rows, models.device)
    log_p_MBTV = models.logits(ids_MBT).log_softmax(-1)
    own_MBT = log_p_MBTV.gather(-1, targets_MBT[..., None])[..., 0]
    return -(own_MBT * is_real_MBT).sum(-1)


def copies_of(
    strings: TokenisedStrings, rows: list[np.ndarray], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs, whether a token is predicted, and targets, [M, B, T] each, of each model's rows.

    A row of -1 has no string. A target that is not predicted is 0.
    """
    batch = strings.batch(np.concatenate(rows), device)
    shape = len(rows), len(rows[0]), -1
    is_real_NT = batch.targets_BT != IGNORED
    targets_NT = batch.targets_BT.masked_fill(~is_real_NT, 0)
    return tuple(t.reshape(shape) for t in (batch.ids_BT, is_real_NT, targets_NT))


def flat(tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    """The tensors [M, ...] of M models as one matrix float32[M, parameters]."""
    return torch.cat([tensor.flatten(1).float() for tensor in tensors.values()], dim=1)


def flat_weights(models: Models) -> torch.Tensor:
    """A copy of the weights of M models, float32[M, parameters], in the order of `shapes`."""
    with models.weights() as weights:
        return flat({name: weights[name] for name in models.shapes})


def set_weights(models: Models, weights_MP: torch.Tensor) -> None:
    with models.weights() as weights:
        sizes = [shape.numel() for shape in models.shapes.values()]
        for name, part in zip(models.shapes, weights_MP.split(sizes, dim=1), strict=True):
            weights[name].copy_(part.reshape(weights[name].shape))
