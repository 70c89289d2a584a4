"""Losses of original, unlearned and retrained models, with a known share of the gap closed."""

from typing import NamedTuple

import numpy as np

SHARE = 0.4  # the truth
RECORDS_OF_GROUP = 2


class GapWorld(NamedTuple):
    """Losses float[records], float[models, records], and the group of each record."""

    model: np.ndarray
    originals: np.ndarray
    retrained: np.ndarray
    group: np.ndarray


def gap_world(chance, n_original=1, n_retrained=1, n_groups=20) -> GapWorld:
    """Records of a group are alike, and so are those of a model, if there are several models."""
    group = np.arange(RECORDS_OF_GROUP * n_groups) % n_groups
    n = len(group)
    gap = 2 + chance.normal(0, 0.5, n_groups)[group] + chance.normal(0, 0.3, n)
    rise = SHARE * gap + chance.normal(0, 0.4, n_groups)[group] + chance.normal(0, 0.3, n)

    def models(n_models, mean):
        of_model = chance.normal(0, 0.15, (n_models, 1)) * (n_models > 1)
        return mean + of_model + chance.normal(0, 0.1, (n_models, n))

    retrained = models(n_retrained, 1 + gap)
    return GapWorld(models(1, 1 + rise)[0], models(n_original, 1.0), retrained, group)
