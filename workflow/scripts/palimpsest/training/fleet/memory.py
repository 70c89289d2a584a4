"""How many models fit into memory, and how many are trained fastest, at once."""

import numpy as np
import psutil
import torch

from palimpsest.models.build import build
from palimpsest.training.batches import IGNORED
from palimpsest.training.fleet.members import Member
from palimpsest.training.fleet.stack import Stack

# On a CPU the activations of more models than these, per thread, no longer stay in its caches.
FASTEST_ON_CPU = 8
# Copies of the parameters: the weights, their gradient in parts and in one piece, two moments.
COPIES = 5
# What the backward pass holds beside the saved activations, as a share of them.
BACKWARD = 0.5
SHARE_OF_GPU = 0.8


def most_members(engine, members: list[Member]) -> int:
    """The size of a wave: as many members as memory holds, on a CPU no more than are fastest."""
    each = bytes_per_member(members, engine.device)
    fits = max(1, int(free_bytes(engine) / each))
    if engine.device.type == "cpu":
        fits = min(fits, FASTEST_ON_CPU * engine.threads)
    # Waves of about equal size: a last one of few members would be slow for its size.
    waves = -(-len(members) // fits)
    return -(-len(members) // waves)


def free_bytes(engine) -> int:
    """What the engine may still take."""
    if engine.device.type == "cuda":
        return int(SHARE_OF_GPU * torch.cuda.mem_get_info(engine.device)[0])
    return max(0, engine.memory - psutil.Process().memory_info().rss)


def bytes_per_member(members: list[Member], device: torch.device) -> int:
    """An estimate of the memory that one more member of a wave takes while it is trained.

    The activations are counted in a forward pass of one model, on as many strings as a step has,
    of the greatest length, so the estimate holds for every architecture.
    """
    first = members[0]
    run, material = first.run, first.material
    model = build(run.row, run.scale, material.vocabulary, material.seed, torch.float32).eval()
    stack = Stack(model, 1, device)
    stack.theta.zero_()
    longest = max(member.material.encoded.ids.shape[1] for member in members) - 1
    ids_MBT = torch.zeros((1, run.recipe.batch_size, longest), dtype=torch.int64, device=device)
    saved: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        logits = stack(ids_MBT).flatten(0, 2)
        targets = torch.full((len(logits),), IGNORED, device=device)
        targets[:1] = 0
        stack.operations.token_nll(logits, targets, IGNORED).sum()
    strings = int(np.prod(material.encoded.ids.shape)) * ids_MBT.element_size() * 2
    return int(sum(saved.values()) * (1 + BACKWARD)) + stack.theta.nbytes * COPIES + strings
