"""Sparse unlearning."""

from __future__ import annotations

from palimpsest.lazy_import import lazy_import
from palimpsest.unlearning.methods.finetune import Finetune
from palimpsest.unlearning.methods.phases import phase
from palimpsest.unlearning.methods.values import number

torch = lazy_import("torch")


@phase("l1-finetune")
class L1Finetune(Finetune):
    """Cross-entropy on the retain set plus alpha * |theta|_1.

    The penalty is minimised by a proximal step after each step of the optimiser, just as AdamW
    decays weights separately from the gradient: each weight moves towards 0 by rate * alpha, and
    stops at 0. If the penalty were in the gradient, Adam would scale it to about the learning rate
    for any alpha.

    Source: Model Sparsity Can Simplify Machine Unlearning (Jia et al., 2023), section 4.
    """

    works_on_every_weight = "shrinks every weight after each step"

    alpha: float = number(least=0)

    def step(self, task, loss_M, rate_M):
        super().step(task, loss_M, rate_M)
        with task.models.weights() as weights:
            for weight in weights.values():
                nearer_M = (rate_M * self.alpha).to(weight)
                shrunk = weight.abs() - nearer_M.view(-1, *[1] * (weight.dim() - 1))
                weight.copy_(weight.sign() * shrunk.clamp(min=0))
