"""Gradient ascent weighted by saturation and importance."""

from __future__ import annotations

from palimpsest.unlearning.methods.ascent import HeldBack
from palimpsest.unlearning.methods.losses import weighted_ascent
from palimpsest.unlearning.methods.phases import phase
from palimpsest.unlearning.methods.values import number


@phase("satimp")
class SatImp(HeldBack):
    """A token of probability p has the weight p^beta1 * (1 - p)^beta2.

    The first factor is saturation: it spares tokens that are forgotten already. The second is
    importance: it spares tokens that the context makes certain anyway.

    Source: Exploring Criteria of Loss Reweighting to Enhance LLM Unlearning (Yang et al., 2025),
    section 5.
    """

    beta1: float = number(5.0, least=0)
    beta2: float = number(1.0, least=0)

    def forget_loss(self, task, batch):
        logits = task.models.logits(batch.ids_MBT)
        return weighted_ascent(logits, batch.targets_MBT, self.beta1, self.beta2)
