"""Phases of Fanchuan, the first of the competition.

Source: Are we making progress in unlearning?, appendix A.4.
"""

from __future__ import annotations

from palimpsest.lazy_import import lazy_import
from palimpsest.unlearning.losses import contrastive, kl_from_uniform, string_means
from palimpsest.unlearning.methods.phases import Training, phase
from palimpsest.unlearning.methods.values import number
from palimpsest.unlearning.sets import FORGET, RETAIN

torch = lazy_import("torch")


@phase("uniform")
class Uniform(Training):
    """Pulls predictions on the forget set towards the uniform distribution: KL(f || uniform)."""

    over = FORGET

    def loss(self, task, batch, beside):
        return kl_from_uniform(task.models.logits(batch.ids_MBT), batch.targets_MBT)


@phase("contrastive")
class Contrastive(Training):
    """Makes a forgotten string's outputs equally similar to those of all retained ones.

    A classifier has one vector of logits for an example; here the mean of a string's stands for it.
    The retained strings' are constants, as in the released code.
    """

    over, beside = FORGET, RETAIN
    temperature: float = number(1.15, above=0)

    def loss(self, task, batch, beside):
        forget = string_means(task.models.logits(batch.ids_MBT), batch.targets_MBT)
        with torch.no_grad():
            retain = string_means(task.models.logits(beside.ids_MBT), beside.targets_MBT)
        return contrastive(forget, retain, self.temperature)
