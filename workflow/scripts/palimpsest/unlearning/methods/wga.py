"""Gradient ascent whose tokens count less once they are improbable."""

from __future__ import annotations

from palimpsest.unlearning.methods.ascent import HeldBack
from palimpsest.unlearning.methods.losses import weighted_ascent
from palimpsest.unlearning.methods.phases import phase
from palimpsest.unlearning.methods.values import number


@phase("wga")
class WGA(HeldBack):
    """Weighted gradient ascent: a token of probability p has the weight p^alpha.

    With alpha 0 this is `gradient-difference`. A larger alpha stops sooner.

    Source: Rethinking LLM Unlearning Objectives: A Gradient Perspective and Go Beyond (Wang et al.,
    2025), section 4.
    """

    alpha: float = number(1.0, least=0)

    def forget_loss(self, task, batch):
        logits = task.models.logits(batch.ids_MBT)
        return weighted_ascent(logits, batch.targets_MBT, self.alpha)
