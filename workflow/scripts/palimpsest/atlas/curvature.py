"""The curvature of a string's loss around its tokens' vectors: how fast the gradient turns there.

Strings that a model fits alone sit where the loss bends most. The curvature is averaged over the
epochs so far, because it falls again once a string is fitted.

Source: Garg, Ravikumar and Roy, Memorization Through the Lens of Curvature of Loss Function Around
Samples (2024), section 3, for images. They estimate the mean squared norm of H v, of the loss's
Hessian H with respect to the input and random signs v, by a finite difference; here, H v is exact,
and the input is the vectors of the tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from palimpsest.training.batches import IGNORED, TokenisedStrings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

AT_ONCE = 128  # strings


def mean_curvature(
    models: Iterable[PreTrainedModel], encoded: TokenisedStrings, rows: np.ndarray, seed: int
) -> np.ndarray:
    """float64[epochs, rows]: the mean over the epochs so far of the squared norm of H v.

    The loss is a string's mean nll per token, in nats. Each epoch has signs of its own.

    Parameters
    ----------
    models : the model after each epoch; it may be the same object with other weights
    encoded, rows : the strings, and the rows of those that are measured
    """
    chance = np.random.default_rng(seed)
    found = np.array([_squared_norms(model, encoded, rows, chance) for model in models])
    return found.cumsum(axis=0) / np.arange(1, len(found) + 1)[:, None]


def _squared_norms(
    model: PreTrainedModel, encoded: TokenisedStrings, rows: np.ndarray, chance: np.random.Generator
) -> np.ndarray:
    """float64[rows]: the squared norm of H v of each string, with its own signs."""
    order = np.argsort(encoded.lengths[rows], kind="stable")
    found = np.empty(len(rows))
    for begin in range(0, len(order), AT_ONCE):
        places = order[begin : begin + AT_ONCE]
        found[places] = _of_batch(model, encoded, rows[places], chance)
    return found


def _of_batch(
    model: PreTrainedModel, encoded: TokenisedStrings, rows: np.ndarray, chance: np.random.Generator
) -> np.ndarray:
    length = int(encoded.lengths[rows].max())
    device = model.device
    ids_BT = torch.from_numpy(encoded.ids[rows, : length - 1]).to(device)
    targets_BT = torch.from_numpy(encoded.targets[rows, 1:length]).to(device)
    vectors_BTD = model.get_input_embeddings()(ids_BT).detach().requires_grad_()
    signs = chance.choice([-1.0, 1.0], size=tuple(vectors_BTD.shape))
    signs_BTD = torch.as_tensor(signs, dtype=vectors_BTD.dtype, device=device)
    # Only this kernel of attention has second derivatives.
    with sdpa_kernel(SDPBackend.MATH):
        logits_BTV = model(inputs_embeds=vectors_BTD, use_cache=False).logits
        nll_BT = torch.nn.functional.cross_entropy(
            logits_BTV.transpose(1, 2), targets_BT, ignore_index=IGNORED, reduction="none"
        )
        n_tokens_B = (targets_BT != IGNORED).sum(dim=1)
        # Strings do not depend on each other, so the sum has each string's own derivatives.
        loss = (nll_BT.sum(dim=1) / n_tokens_B).sum()
        (grad_BTD,) = torch.autograd.grad(loss, vectors_BTD, create_graph=True)
        (turned_BTD,) = torch.autograd.grad((grad_BTD * signs_BTD).sum(), vectors_BTD)
    return turned_BTD.double().square().sum(dim=(1, 2)).cpu().numpy()
