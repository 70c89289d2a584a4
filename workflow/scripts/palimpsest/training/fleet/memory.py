"""The number of models to train at once: what fits into memory, and what is fastest."""

from typing import NamedTuple

import psutil
import torch

# Models per thread on a CPU. With these, what Python does for all models at once takes a small part
# of the time; more models are hardly faster.
FASTEST_ON_CPU = 32
# Copies of the parameters that a model keeps between steps: weights and the optimiser's two
# moments. Within a step there are the gradients too, in parts and as one tensor.
KEPT, GRADIENTS = 3, 2
# Memory of the backward pass in addition to the saved activations, relative to these activations.
BACKWARD = 0.5
SHARE_OF_GPU = 0.8


class Needs(NamedTuple):
    """The bytes that each member of a wave needs, and those of a thread for its members in turn."""

    each: int
    of_a_thread: int


def most_members(engine, waiting: int, needs: Needs) -> int:
    """The size of the next wave, for `waiting` members that have to be trained.

    A wave fits into memory; on a CPU, it is at most as large as is fastest. All waves have about
    the same size, because a last wave with few members would be inefficient.
    """
    free = free_bytes(engine) - engine.threads * needs.of_a_thread
    fits = max(1, free // needs.each)
    if engine.device.type == "cpu":
        fits = min(fits, FASTEST_ON_CPU * engine.threads)
    waves = -(-waiting // fits)
    return -(-waiting // waves)


def free_bytes(engine) -> int:
    if engine.device.type == "cuda":
        return int(SHARE_OF_GPU * torch.cuda.mem_get_info(engine.device)[0])
    return engine.memory - psutil.Process().memory_info().rss
