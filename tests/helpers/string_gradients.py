"""Small twins and strings, and gradients of single strings by plain autograd."""

from dataclasses import replace

import numpy as np
import torch

from helpers.commands import MODELS
from palimpsest.atlas.influence import Weighing
from palimpsest.models import read_models
from palimpsest.models.alphabets import TWIN_SPECIALS
from palimpsest.models.build import build
from palimpsest.training.batches import TokenisedStrings

VOCABULARY, LENGTHS = 9, (7, 3, 5, 7, 4, 6)
COPIES = (2, 1, 0, 1, 1, 0)


def strings(lengths=LENGTHS, vocabulary: int = VOCABULARY) -> TokenisedStrings:
    """Random symbols after a start token, which is not predicted."""
    rng, first = np.random.default_rng(0), len(TWIN_SPECIALS)
    rows = [
        [TWIN_SPECIALS["start"], *rng.integers(first, vocabulary, length - 1)] for length in lengths
    ]
    return TokenisedStrings.of_rows(rows, filler=TWIN_SPECIALS["end"])


def weighing(encoded: TokenisedStrings, copies=COPIES, steps=2, clipping=1e9) -> Weighing:
    return Weighing(np.array(copies), encoded.n_tokens, steps, clipping)


def twin(family: str = "opt-1.3b", seed: int = 0, **sizes):
    """A twin of a family, with weights far from zero; `sizes` are columns of the table."""
    row = replace(read_models(MODELS)[family], twin_hidden=16, twin_heads=2)
    model = build(replace(row, **sizes), "twin", VOCABULARY, 0, torch.float32).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn(weight.shape, generator=generator))
    return model


def weights_of(model) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def summed_nll(model, encoded: TokenisedStrings, row: int, labels=None) -> torch.Tensor:
    """The loss of one string alone, without padding; `labels` may replace its tokens."""
    length = encoded.lengths[row]
    ids = torch.from_numpy(encoded.ids[row, : length - 1])[None]
    labels = encoded.targets[row, 1:length] if labels is None else labels
    logits = model(input_ids=ids, use_cache=False).logits[0]
    labels = torch.as_tensor(labels[: length - 1])
    return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")


def by_autograd(model, encoded: TokenisedStrings, row: int, labels=None) -> dict[str, torch.Tensor]:
    """The gradient of `summed_nll` by parameter."""
    model.requires_grad_(True)
    model.zero_grad()
    summed_nll(model, encoded, row, labels).backward()
    return {
        name: torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
        for name, weight in model.named_parameters()
    }


def flat_gradients(model, encoded: TokenisedStrings) -> np.ndarray:
    """Gradients float64[strings, parameters] of all strings, one by one."""
    rows = range(len(encoded.lengths))
    found = [by_autograd(model, encoded, row).values() for row in rows]
    return torch.stack([torch.cat([g.flatten() for g in one]) for one in found]).double().numpy()
