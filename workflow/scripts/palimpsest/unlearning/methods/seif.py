"""The repair of Seif, whose steps are as long as a batch has examples of the largest class.

Source: Are we making progress in unlearning?, appendices A.4 and A.10.
"""

from __future__ import annotations

from palimpsest.unlearning.losses import real, weighted_cross_entropy
from palimpsest.unlearning.methods.phases import RETAIN, Training, phase
from palimpsest.unlearning.methods.values import number


@phase("majority-finetune")
class MajorityFinetune(Training):
    """Cross-entropy on the retain set in which the most frequent next token weighs 1, others less.

    With plain gradient descent a batch's weighted sum makes its step longer, the more of that token
    it has. Adam divides by the gradient's size, so here the loss is the weighted mean, and the rate
    is multiplied by the batch's mean weight over the retain set's: on average the steps are as long
    as `rate` says, so that this repair can replace a plain one.
    """

    over = RETAIN
    others: float = number(0.05, above=0, most=1)

    def loss(self, task, batch, beside):
        logits, weights = task.models.logits(batch.ids_MBT), self.weights(task, batch)
        return weighted_cross_entropy(logits, batch.targets_MBT, weights)

    def rate_M(self, task, batch):
        mask_MBT = real(batch.targets_MBT)
        total_M = (self.weights(task, batch) * mask_MBT).sum((1, 2)).cpu()
        mean_M = total_M / mask_MBT.sum((1, 2)).cpu()
        share = task.token_counts.max() / task.token_counts.sum()
        return super().rate_M(task, batch) * mean_M / (share + self.others * (1 - share))

    def weights(self, task, batch):
        """1 where the most frequent token is next, `others` elsewhere: [M, B, T]."""
        majority_MBT = batch.targets_MBT == int(task.token_counts.argmax())
        return majority_MBT * (1 - self.others) + self.others
