"""The repair of Seif, whose steps are as long as a batch has examples of the largest class.

Source: Are we making progress in unlearning?, appendices A.4 and A.10.
"""

from __future__ import annotations

from palimpsest.unlearning.losses import per_token
from palimpsest.unlearning.methods.finetune import Finetune
from palimpsest.unlearning.methods.phases import phase
from palimpsest.unlearning.methods.values import number


@phase("majority-finetune")
class MajorityFinetune(Finetune):
    """Cross-entropy on the retain set, in longer steps the more the largest class is in a batch.

    The classes are the next tokens: the most frequent one weighs 1, every other `others`. The rate
    is multiplied by the batch's mean weight over the retain set's, so that on average the steps are
    as long as `rate` says and this repair can replace a plain one, as in A.10. A weighted loss,
    which the paper calls equivalent, is not so here: where the next token is a matter of chance,
    it teaches that the most frequent one is many times as probable as it is.
    """

    others: float = number(0.05, above=0, most=1)

    def rate_M(self, task, batch):
        majority_MBT = batch.targets_MBT == int(task.token_counts.argmax())
        share_M = per_token(majority_MBT.double(), batch.targets_MBT).cpu()
        share_of_all = float(task.token_counts.max() / task.token_counts.sum())
        return super().rate_M(task, batch) * self.weight(share_M) / self.weight(share_of_all)

    def weight(self, share):
        """Mean weight of tokens of which the most frequent one is a share."""
        return self.others + (1 - self.others) * share
