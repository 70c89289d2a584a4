"""How many models fit into memory, and how many are trained fastest, at once."""

import psutil
import torch

# On a CPU the activations of more models than these, per thread, no longer stay in its caches.
FASTEST_ON_CPU = 8
# Copies of the parameters: the weights, their gradient in parts and in one piece, two moments.
COPIES = 5
# What the backward pass holds beside the saved activations, as a share of them.
BACKWARD = 0.5
SHARE_OF_GPU = 0.8


def most_members(engine, waiting: int, each: int) -> int:
    """The size of the next wave: as many members as memory holds, each of so many bytes.

    On a CPU no more than are fastest. Waves are of about equal size: a last one of few members
    would be slow for its size.
    """
    fits = max(1, int(free_bytes(engine) / each))
    if engine.device.type == "cpu":
        fits = min(fits, FASTEST_ON_CPU * engine.threads)
    waves = -(-waiting // fits)
    return -(-waiting // waves)


def free_bytes(engine) -> int:
    """What the engine may still take."""
    if engine.device.type == "cuda":
        return int(SHARE_OF_GPU * torch.cuda.mem_get_info(engine.device)[0])
    return max(0, engine.memory - psutil.Process().memory_info().rss)
