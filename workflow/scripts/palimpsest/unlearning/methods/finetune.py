"""Further training on the retain set: the simplest repair, and a baseline of unlearning."""

from __future__ import annotations

from palimpsest.unlearning.methods.losses import cross_entropy
from palimpsest.unlearning.methods.phases import Training, phase
from palimpsest.unlearning.methods.sets import RETAIN


@phase("finetune")
class Finetune(Training):
    """Minimises the cross-entropy on the retain set; forgetting is only a side effect.

    Source: Are we making progress in unlearning?, section 5.
    """

    over = RETAIN

    def loss(self, task, batch, paired_batch):
        return cross_entropy(task.models.logits(batch.ids_MBT), batch.targets_MBT)
