"""The repair phase of Seif: a step is longer if its batch has more of the largest class.

Source: Are we making progress in unlearning?, appendices A.4 and A.10.
"""

from __future__ import annotations

from palimpsest.unlearning.methods.finetune import Finetune
from palimpsest.unlearning.methods.losses import per_token
from palimpsest.unlearning.methods.phases import phase
from palimpsest.unlearning.methods.values import number


@phase("majority-finetune")
class MajorityFinetune(Finetune):
    """Cross-entropy on the retain set; a step is longer if its batch has more of the largest class.

    The classes are the next tokens: the most frequent token has weight 1, every other token has
    weight `others`. The learning rate is multiplied by the batch's mean weight, divided by the
    retain set's mean weight. So the average step has the length `rate`, and this repair can replace
    a plain one, as in A.10. The paper calls a weighted loss equivalent, but this is not true here:
    if the next token is random, a weighted loss teaches a far too high probability of the most
    frequent token.
    """

    others: float = number(0.05, above=0, most=1)

    def rate_M(self, task, batch):
        majority_MBT = batch.targets_MBT == int(task.token_counts.argmax())
        share_M = per_token(majority_MBT.double(), batch.targets_MBT).cpu()
        share_of_all = float(task.token_counts.max() / task.token_counts.sum())
        return super().rate_M(task, batch) * self.weight(share_M) / self.weight(share_of_all)

    def weight(self, share):
        return self.others + (1 - self.others) * share
