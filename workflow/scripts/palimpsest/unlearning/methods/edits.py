"""Phases that change the selected weights directly, without training."""

from __future__ import annotations

import numpy as np

from palimpsest.lazy_import import lazy_import
from palimpsest.unlearning.methods.phases import Edit, phase
from palimpsest.unlearning.methods.task import WEIGHTS
from palimpsest.unlearning.methods.values import number

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
            chosen = selected.to(weights[name].device)
            weights[name].copy_(torch.where(chosen, initial[name], weights[name]))


@phase("noise")
class Noise(Edit):
    """Adds Gaussian noise of standard deviation `sigma` to the selected weights.

    Source: Are we making progress in unlearning?, appendix A.4 (Seif).
    """

    sigma: float = number(above=0)

    def unit_M(self, weight):
        """What a `sigma` of 1 is for each model's weights [M, ...] of one parameter."""
        return torch.ones(len(weight), device=weight.device)

    def edit(self, task, weights):
        generators = task.generators(WEIGHTS)
        for name, selected in task.selected.items():
            weight = weights[name]
            drawn = [g.standard_normal(weight.shape[1:], dtype=np.float32) for g in generators]
            noise = torch.from_numpy(np.stack(drawn)).to(weight)
            sigma_M = self.sigma * self.unit_M(weight).view(-1, *[1] * (weight.dim() - 1))
            chosen = selected.to(weight.device)
            weight.copy_(torch.where(chosen, weight + sigma_M * noise, weight))


@phase("relative-noise")
class RelativeNoise(Noise):
    """Adds noise, with `sigma` in units of the standard deviation of the parameter's weights.

    So one value has a similar effect in all architectures. An absolute value does not: the 0.6 of
    Seif is 10 to 29 standard deviations of the weights of a network with He's initialisation.

    Source: Are we making progress in unlearning?, appendix A.4 (Sun, which gives no value).
    """

    def unit_M(self, weight):
        return weight.flatten(1).std(1)
