"""Phases of Fanchuan, the winner of the competition.

Source: Are we making progress in unlearning?, appendix A.4.
"""

from __future__ import annotations

from palimpsest.lazy_import import lazy_import
from palimpsest.unlearning.methods.losses import contrastive, kl_from_uniform, string_means
from palimpsest.unlearning.methods.phases import Training, phase
from palimpsest.unlearning.methods.sets import FORGET, RETAIN
from palimpsest.unlearning.methods.values import number

torch = lazy_import("torch")


@phase("uniform")
class Uniform(Training):
    """Pulls predictions on the forget set towards the uniform distribution: KL(f || uniform)."""

    over = FORGET

    def loss(self, task, batch, paired_batch):
        return kl_from_uniform(task.models.logits(batch.ids_MBT), batch.targets_MBT)


@phase("contrastive")
class Contrastive(Training):
    """Makes the output of a forget string equally similar to the outputs of all retain strings.

    A classifier has one vector of logits per example. Here, the output of a string is the mean of
    its tokens' logits. The outputs of retain strings are constants (without gradient), as in the
    released code.
    """

    over, paired_set = FORGET, RETAIN
    temperature: float = number(1.15, above=0)

    def loss(self, task, batch, paired_batch):
        forget = string_means(task.models.logits(batch.ids_MBT), batch.targets_MBT)
        with torch.no_grad():
            retain = string_means(
                task.models.logits(paired_batch.ids_MBT), paired_batch.targets_MBT
            )
        return contrastive(forget, retain, self.temperature)
