"""Phases that change the selected weights directly, without training."""

from __future__ import annotations

import numpy as np

from palimpsest.lazy_import import lazy_import
from palimpsest.unlearning.methods.phases import Edit, phase
from palimpsest.unlearning.methods.values import number
from palimpsest.unlearning.task import WEIGHTS

torch = lazy_import("torch")


@phase("reinitialise")
class Reinitialise(Edit):
    """Resets the selected weights to values before any fine-tuning.

    A twin gets newly drawn weights; a full model gets its pretrained weights.

    Source: Are we making progress in unlearning?, appendix A.4.
    """

    def edit(self, task, weights):
        seeds = [int(generator.integers(2**32)) for generator in task.generators(WEIGHTS)]
        initial = task.models.initial(seeds)
        for name, selected in task.selected.items():
            weights[name].copy_(torch.where(selected, initial[name], weights[name]))


@phase("noise")
class Noise(Edit):
    """Adds Gaussian noise to the selected weights.

    `sigma` is in units of the standard deviation of the parameter's weights. The paper's absolute
    value 0.6 is for one architecture, and would have another effect in others.

    Source: Are we making progress in unlearning?, appendix A.4 (Seif, Sun).
    """

    sigma: float = number(above=0)

    def edit(self, task, weights):
        generators = task.generators(WEIGHTS)
        for name, selected in task.selected.items():
            weight = weights[name]
            drawn = [g.standard_normal(weight.shape[1:], dtype=np.float32) for g in generators]
            noise = torch.from_numpy(np.stack(drawn)).to(weight)
            std_M = weight.flatten(1).std(1).view(-1, *[1] * (weight.dim() - 1))
            weight.copy_(torch.where(selected, weight + self.sigma * std_M * noise, weight))
