"""Training on wrong labels of the forget set."""

from __future__ import annotations

from palimpsest.unlearning.methods.losses import cross_entropy
from palimpsest.unlearning.methods.phases import Training, phase
from palimpsest.unlearning.methods.sets import FORGET


@phase("random-label")
class RandomLabel(Training):
    """Minimises the cross-entropy with random next tokens on the forget set.

    The tokens are drawn from the tokens of the retain set, once per run of the phase. The inputs of
    the model do not change.

    Source: Are we making progress in unlearning?, section 5.
    """

    over = FORGET

    def loss(self, task, batch, paired_batch):
        return cross_entropy(task.models.logits(batch.ids_MBT), task.random_targets(batch))
