"""The number of models to train at once: what fits into memory, and what is fastest."""

from typing import NamedTuple

import psutil
import torch

# Models per thread on a CPU. What Python does for all models at once then takes a small part of the
# time. Where activations of all models are in memory, those of more models do not fit into caches.
FASTEST_ON_CPU = 8
# With fewer members for each thread, threads that have one member less would wait too long.
ENOUGH = 4
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
    threads, free = engine.threads, free_bytes(engine)
    fits = max(1, (free - threads * needs.of_a_thread) // needs.each)
    if engine.device.type == "cpu":
        fits = min(fits, FASTEST_ON_CPU * threads)
    waves = -(-waiting // fits)
    size = -(-waiting // waves)
    if size > threads and not is_even(size, threads) and size * sum(needs) > free:
        size -= size % threads
    return size


def is_even(members: int, threads: int) -> bool:
    """Whether threads can take one member after another, each with about as many members.

    Otherwise the threads share the work on each member, and all members need memory at once.
    """
    return members % threads == 0 or members >= ENOUGH * threads


def free_bytes(engine) -> int:
    if engine.device.type == "cuda":
        return int(SHARE_OF_GPU * torch.cuda.mem_get_info(engine.device)[0])
    return engine.memory - psutil.Process().memory_info().rss
