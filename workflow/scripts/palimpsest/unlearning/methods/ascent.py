"""Gradient ascent on the forget set, alone and held back by the retain set."""

from __future__ import annotations

from palimpsest.unlearning.losses import cross_entropy
from palimpsest.unlearning.methods.phases import FORGET, RETAIN, Training, phase
from palimpsest.unlearning.methods.values import number


@phase("gradient-ascent")
class GradientAscent(Training):
    """Maximises the cross-entropy on the forget set.

    Source: Knowledge Unlearning for Mitigating Privacy Risks in Language Models (Jang et al.,
    2023), equation 1.
    """

    over = FORGET

    def loss(self, task, batch, beside):
        return -cross_entropy(task.models.logits(batch.ids_MBT), batch.targets_MBT)


@phase("gradient-difference")
class GradientDifference(GradientAscent):
    """Maximises the cross-entropy on the forget set, less that on as many retained strings.

    Source: Continual Learning and Private Unlearning (Liu et al., 2022); TOFU (Maini et al., 2024),
    section 3.2.
    """

    beside = RETAIN
    retain: float = number(1.0, least=0)

    def loss(self, task, batch, beside):
        kept = cross_entropy(task.models.logits(beside.ids_MBT), beside.targets_MBT)
        return super().loss(task, batch, None) + self.retain * kept


@phase("neggrad")
class NegGrad(Training):
    """NegGrad+: minimises alpha * retain - (1 - alpha) * forget, over the retain set.

    Source: Towards Unbounded Machine Unlearning (Kurmanji et al., 2023), section 4; Are we making
    progress in unlearning?, section 5.
    """

    over, beside = RETAIN, FORGET
    alpha: float = number(least=0, most=1)

    def loss(self, task, batch, beside):
        retain = cross_entropy(task.models.logits(batch.ids_MBT), batch.targets_MBT)
        forget = cross_entropy(task.models.logits(beside.ids_MBT), beside.targets_MBT)
        return self.alpha * retain - (1 - self.alpha) * forget
