"""Random orders in which what belongs together stays together."""

from collections.abc import Sequence

import numpy as np


def order_of_groups(groups: Sequence, seed: int) -> np.ndarray:
    """A random order int[n]; the members of a group follow the place of its first member.

    So a group with many members is as likely on each side of the order as one with few.
    """
    first: dict = {}
    first_members = np.array([first.setdefault(group, place) for place, group in enumerate(groups)])
    n = len(first_members)
    place = np.empty(n, dtype=int)
    place[np.random.default_rng(seed).permutation(n)] = np.arange(n)
    return np.lexsort((np.arange(n), place[first_members]))
