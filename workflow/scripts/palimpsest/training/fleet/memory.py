"""The number of models to train at once: what fits into memory, and what is fastest."""

import psutil
import torch

# Models per thread on a CPU; the activations of more models do not fit into the CPU's caches.
FASTEST_ON_CPU = 8
# Copies of the parameters: the weights, the gradient twice (in parts and as one tensor), and the
# optimiser's two moments.
COPIES = 5
# Memory of the backward pass in addition to the saved activations, relative to these activations.
BACKWARD = 0.5
SHARE_OF_GPU = 0.8


def most_members(engine, waiting: int, each: int) -> int:
    """The size of the next wave, for `waiting` members of `each` bytes that have to be trained.

    A wave fits into memory; on a CPU, it is at most as large as is fastest. All waves have about
    the same size, because a last wave with few members would be inefficient.
    """
    fits = max(1, int(free_bytes(engine) / each))
    if engine.device.type == "cpu":
        fits = min(fits, FASTEST_ON_CPU * engine.threads)
    waves = -(-waiting // fits)
    return -(-waiting // waves)


def free_bytes(engine) -> int:
    if engine.device.type == "cuda":
        return int(SHARE_OF_GPU * torch.cuda.mem_get_info(engine.device)[0])
    return max(0, engine.memory - psutil.Process().memory_info().rss)
