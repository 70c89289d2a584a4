"""Unlearning by cross-entropy with the model's own predictions."""

from __future__ import annotations

from palimpsest.unlearning.methods.ascent import HeldBack
from palimpsest.unlearning.methods.losses import cross_entropy_unlearning
from palimpsest.unlearning.methods.phases import phase
from palimpsest.unlearning.methods.values import number


@phase("ce-u")
class CEU(HeldBack):
    """Cross-entropy with the model's own predictions, after the true token was made impossible.

    The gradient is bounded, unlike the one of gradient ascent. The published method has no retain
    loss.

    Source: CE-U: Cross Entropy Unlearning (Yang, 2025).
    """

    retain: float = number(0.0, least=0)

    def forget_loss(self, task, batch):
        logits = task.models.logits(batch.ids_MBT)
        return cross_entropy_unlearning(logits, batch.targets_MBT)
