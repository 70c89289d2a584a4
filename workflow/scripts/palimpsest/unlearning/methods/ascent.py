"""Gradient ascent on the forget set, alone or combined with a loss on the retain set."""

from __future__ import annotations

from dataclasses import dataclass

from palimpsest.unlearning.methods.losses import cross_entropy, kl
from palimpsest.unlearning.methods.phases import Training, phase
from palimpsest.unlearning.methods.sets import FORGET, RETAIN
from palimpsest.unlearning.methods.values import choice, number

CROSS_ENTROPY, KL = "cross-entropy", "kl"


@phase("gradient-ascent")
class GradientAscent(Training):
    """Maximises the cross-entropy on the forget set.

    Source: Knowledge Unlearning for Mitigating Privacy Risks in Language Models (Jang et al.,
    2023), equation 1.
    """

    over = FORGET

    def loss(self, task, batch, paired_batch):
        return -cross_entropy(task.models.logits(batch.ids_MBT), batch.targets_MBT)


@dataclass(frozen=True, kw_only=True)
class WithRetain(Training):
    """A loss on the forget set, plus `retain` times a loss on equally many retain strings."""

    over = FORGET
    retain: float = number(1.0, least=0)

    @property
    def paired_set(self):
        return RETAIN if self.retain else None

    def loss(self, task, batch, paired_batch):
        if paired_batch is None:
            return self.forget_loss(task, batch)
        return self.forget_loss(task, batch) + self.retain * self.loss_on_paired_set(
            task, paired_batch
        )

    def forget_loss(self, task, batch):
        """The loss [M] on the forget set, which is minimised."""
        raise NotImplementedError

    def loss_on_paired_set(self, task, batch):
        """The loss [M] on the retain set, which is minimised."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class HeldBack(WithRetain):
    """A loss on the forget set, while predictions on the retain set are held.

    `retain_loss` is the cross-entropy or KL(original || model).

    Source: TOFU: A Task of Fictitious Unlearning for LLMs (Maini et al., 2024), section 3.2, which
    has both.
    """

    retain_loss: str = choice((CROSS_ENTROPY, KL), CROSS_ENTROPY)

    def prepare(self, task):
        if self.paired_set and self.retain_loss == KL:
            task.reference.keep_logits(RETAIN)

    def loss_on_paired_set(self, task, batch):
        logits = task.models.logits(batch.ids_MBT)
        if self.retain_loss == KL:
            return kl(task.reference.logits(batch), logits, batch.targets_MBT)
        return cross_entropy(logits, batch.targets_MBT)


@phase("gradient-difference")
class GradientDifference(HeldBack):
    """Maximises the cross-entropy on the forget set, and holds the model back on the retain set.

    With the retain loss `kl`, this is the method that TOFU calls KL minimisation.

    Source: Continual Learning and Private Unlearning (Liu et al., 2022); TOFU (Maini et al., 2024),
    section 3.2.
    """

    retain: float = number(1.0, above=0)

    def forget_loss(self, task, batch):
        return -cross_entropy(task.models.logits(batch.ids_MBT), batch.targets_MBT)


@phase("neggrad")
class NegGrad(Training):
    """NegGrad+: minimises alpha * retain - (1 - alpha) * forget; it passes over the retain set.

    Source: Towards Unbounded Machine Unlearning (Kurmanji et al., 2023), section 4; Are we making
    progress in unlearning?, section 5.
    """

    over, paired_set = RETAIN, FORGET
    alpha: float = number(least=0, most=1)

    def loss(self, task, batch, paired_batch):
        retain = cross_entropy(task.models.logits(batch.ids_MBT), batch.targets_MBT)
        forget = cross_entropy(task.models.logits(paired_batch.ids_MBT), paired_batch.targets_MBT)
        return self.alpha * retain - (1 - self.alpha) * forget
