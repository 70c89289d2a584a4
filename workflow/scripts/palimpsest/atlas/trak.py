"""TRAK: influence by the inverse kernel of projected gradients.

The gradient of each string is projected onto few random directions. The curvature is the sum of the
squares of the projected gradients of the training strings, and leaving out a string moves the
weights by its inverse times the gradient. The function whose gradients are taken is the loss of a
string itself, not the log odds of one label as in the source, because a string has many tokens; so
the source's factor Q is 1. Nor are scores thresholded.

Leaving a string out also takes it out of the curvature, so scores are divided by 1 - h, where h is
the string's leverage. The source drops this factor, which is near 1 where strings are many; here it
orders the strings.

Source: Park et al., TRAK: Attributing Model Behavior at Scale (2023), section 3 (equation 13).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from palimpsest.atlas.influence import Influence, Weighing

if TYPE_CHECKING:
    from palimpsest.atlas.string_gradients import StringGradients

SIZE = 512  # random directions
DAMPING = 0.1  # of the mean eigenvalue of the kernel


def trak(
    gradients: StringGradients,
    checkpoints: Iterable[Mapping[str, torch.Tensor]],
    weighing: Weighing,
    measured: np.ndarray,
    size: int = SIZE,
    damping: float = DAMPING,
    seed: int = 0,
) -> Influence:
    """TRAK influence of training strings, the mean over some checkpoints.

    Each checkpoint has its own random directions. A study has far fewer strings than directions, so
    the kernel is singular, and needs damping: it is added to all eigenvalues, as a multiple of the
    mean of those that can differ from 0.

    Parameters
    ----------
    gradients : of the strings, at any weights
    checkpoints : the weights of one or several models that were trained on these strings
    weighing : how training weighs the strings
    measured : rows of strings whose loss changes; they need not be trained on
    size : number of random directions
    damping : times the mean eigenvalue
    seed : of the random directions
    """
    train, rows = weighing.train, weighing.with_train(measured)
    own, cross, n = np.zeros(len(rows)), np.zeros((len(train), len(rows))), 0
    for weights in checkpoints:
        gradients.load(weights)
        directions_PK = random_directions(gradients.n_parameters, size, [seed, n])
        every_NK = projected(gradients, rows, directions_PK.to(gradients.device))
        copies = weighing.copies[train]
        solved_NK = inverse_kernel(every_NK, copies, damping)
        of_itself = np.einsum("nk,nk->n", every_NK, solved_NK)
        left = 1 - copies * of_itself[: len(train)]
        own += of_itself / np.append(left, np.ones(len(rows) - len(train)))
        cross += solved_NK[: len(train)] @ every_NK.T / left[:, None]
        n += 1
    return Influence.of_products(own / n, cross / n, weighing, rows, measured)


def random_directions(n_parameters: int, size: int, seed: list[int]) -> torch.Tensor:
    """float32[P, K]: signs at random, so that products are kept in the mean."""
    bits = np.random.default_rng(seed).integers(0, 2, (n_parameters, size), dtype=np.int8)
    return torch.from_numpy(bits).float().mul_(2).sub_(1).div_(size**0.5)


def projected(
    gradients: StringGradients, rows: np.ndarray, directions_PK: torch.Tensor
) -> np.ndarray:
    """Gradients float64[rows, K] of the summed nll of strings, along random directions."""
    found_NK = np.empty((len(rows), directions_PK.shape[1]))
    for places, grad_BP in gradients.batches(rows):
        found_NK[places] = (grad_BP @ directions_PK).double().cpu().numpy()
    return found_NK


def inverse_kernel(every_NK: np.ndarray, copies: np.ndarray, damping: float) -> np.ndarray:
    """float64[N, K]: the damped inverse of the kernel times every projected gradient.

    The kernel is that of the first rows, the training strings, with `copies` of each.
    """
    train_NK = every_NK[: len(copies)]
    kernel_KK = (train_NK * copies[:, None]).T @ train_NK
    damped = damping * np.trace(kernel_KK) / min(train_NK.shape)
    kernel_KK[np.diag_indices_from(kernel_KK)] += damped
    return np.linalg.solve(kernel_KK, every_NK.T).T
