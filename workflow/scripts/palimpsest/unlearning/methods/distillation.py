"""Phases that pull a model towards the original one, or away from it."""

from __future__ import annotations

from palimpsest.unlearning.methods.ascent import HeldBack
from palimpsest.unlearning.methods.losses import (
    cross_entropy,
    entropy_gap,
    kl,
    squared_error,
    symmetric_kl,
    undial,
)
from palimpsest.unlearning.methods.phases import Training, phase
from palimpsest.unlearning.methods.sets import FORGET, RETAIN, VALIDATION
from palimpsest.unlearning.methods.values import choice, number


@phase("distil")
class Distil(Training):
    """Minimises KL(model || original), by default on the validation set.

    Source: Are we making progress in unlearning?, appendix A.4 (Amnesiacs).
    """

    over: str = choice((VALIDATION, RETAIN), VALIDATION)

    def prepare(self, task):
        task.reference.keep_logits(self.over)

    def loss(self, task, batch, paired_batch):
        logits = task.models.logits(batch.ids_MBT)
        return kl(logits, task.reference.logits(batch), batch.targets_MBT)


class NearOriginal(Training):
    """Cross-entropy on the retain set, plus `weight` times a distance from the original model."""

    over = RETAIN

    def prepare(self, task):
        task.reference.keep_logits(RETAIN)

    def loss(self, task, batch, paired_batch):
        logits, targets = task.models.logits(batch.ids_MBT), batch.targets_MBT
        far = self.distance(logits, task.reference.logits(batch), targets)
        return cross_entropy(logits, targets) + self.weight * far

    def distance(self, logits, reference, targets):
        """Distance [M] between the model's and the original model's predictions."""
        raise NotImplementedError


@phase("distil-finetune")
class DistilFinetune(NearOriginal):
    """Cross-entropy and symmetric KL from the original model, on the retain set.

    Source: Are we making progress in unlearning?, appendix A.4 (Amnesiacs).
    """

    weight: float = number(1.0, least=0)

    def distance(self, logits, reference, targets):
        return symmetric_kl(logits, reference, targets)


@phase("entropy-finetune")
class EntropyFinetune(NearOriginal):
    """Cross-entropy, and squared difference of entropies to the original's, on the retain set.

    The paper weights tokens as in its original training. Here, neither training nor this phase
    weights them.

    Source: Are we making progress in unlearning?, appendix A.4 (Sebastian).
    """

    weight: float = number(1.0, least=0)

    def distance(self, logits, reference, targets):
        return entropy_gap(logits, reference, targets)


@phase("scrub-min")
class ScrubMin(NearOriginal):
    """Cross-entropy and KL(original || model) on the retain set.

    Source: Towards Unbounded Machine Unlearning (Kurmanji et al., 2023), equation 3.
    """

    weight: float = number(1.0, least=0)

    def distance(self, logits, reference, targets):
        return kl(reference, logits, targets)


@phase("scrub-max")
class ScrubMax(Training):
    """Maximises KL(original || model) on the forget set.

    Source: Towards Unbounded Machine Unlearning (Kurmanji et al., 2023), equation 3.
    """

    over = FORGET

    def prepare(self, task):
        task.reference.keep_logits(FORGET)

    def loss(self, task, batch, paired_batch):
        logits = task.models.logits(batch.ids_MBT)
        return -kl(task.reference.logits(batch), logits, batch.targets_MBT)


@phase("noisy-distil")
class NoisyDistil(Training):
    """Minimises the squared distance to the original model's logits, on noisy retain strings.

    The paper's text names the forget set once, and noisy retain examples once; its formula names
    retain examples. This phase uses retain strings. Gaussian noise is impossible for tokens.
    Instead, a share `noise` of each string's tokens, except the start token, is replaced by random
    tokens, the same in all passes.

    Source: Are we making progress in unlearning?, section 5 and appendix A.4 (Forget).
    """

    over = RETAIN
    noise: float = number(0.1, least=0, most=1)

    def prepare(self, task):
        task.reference.keep(
            ("noisy", self.noise),
            RETAIN,
            lambda batch: task.models.logits(task.noisy_ids(batch, self.noise)),
        )

    def loss(self, task, batch, paired_batch):
        logits = task.models.logits(task.noisy_ids(batch, self.noise))
        reference = task.reference.of(("noisy", self.noise), batch)
        return squared_error(logits, reference, batch.targets_MBT)


@phase("undial")
class Undial(HeldBack):
    """Distils the original model's predictions on the forget set, with less likely true tokens.

    The logit of the true token is lowered by `gamma`. The published method has no retain loss.

    Source: UNDIAL: Self-Distillation with Adjusted Logits (Dong et al., 2024).
    """

    gamma: float = number(above=0)
    retain: float = number(0.0, least=0)

    def prepare(self, task):
        super().prepare(task)
        task.reference.keep_logits(FORGET)

    def forget_loss(self, task, batch):
        logits = task.models.logits(batch.ids_MBT)
        return undial(logits, task.reference.logits(batch), batch.targets_MBT, self.gamma)
