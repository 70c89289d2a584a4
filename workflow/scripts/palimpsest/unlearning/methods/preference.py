"""Preference optimisation; the strings of the forget set are the dispreferred ones."""

from __future__ import annotations

import numpy as np

from palimpsest.unlearning.methods.ascent import HeldBack
from palimpsest.unlearning.methods.losses import dpo, npo, real, simnpo, string_nll
from palimpsest.unlearning.methods.phases import phase
from palimpsest.unlearning.methods.sets import FORGET, REFUSED, VALIDATION
from palimpsest.unlearning.methods.values import number, texts


def _nll(task, batch):
    return string_nll(task.models.logits(batch.ids_MBT), batch.targets_MBT)


@phase("npo")
class NPO(HeldBack):
    """Negative preference optimisation: gradient ascent that becomes weaker for forgotten strings.

    Source: Negative Preference Optimization (Zhang et al., 2024).
    """

    beta: float = number(0.1, above=0)

    def prepare(self, task):
        super().prepare(task)
        task.reference.keep_nll(FORGET)

    def forget_loss(self, task, batch):
        return npo(_nll(task, batch), task.reference.nll(batch), self.beta)


@phase("simnpo")
class SimNPO(HeldBack):
    """NPO with a string's mean log probability instead of its ratio to the original model's.

    Source: Simplicity Prevails: Rethinking Negative Preference Optimization for LLM Unlearning
    (Fan et al., 2024).
    """

    beta: float = number(2.5, above=0)
    gamma: float = number(0.0, least=0)

    def forget_loss(self, task, batch):
        n_tokens_MB = real(batch.targets_MBT).sum(-1)
        return simnpo(_nll(task, batch), n_tokens_MB, self.beta, self.gamma)


@phase("dpo")
class DPO(HeldBack):
    """Direct preference optimisation: one fixed string is preferred to each forget string.

    The preferred string is added to each batch. In the literature, a refusal to answer is
    preferred. Strings of a grammar are not answers to a prompt, so the preferred string here is the
    first string of the validation set.

    Source: Negative Preference Optimization (Zhang et al., 2024), section 2; TOFU (Maini et al.,
    2024), section 3.2.
    """

    beta: float = number(0.1, above=0)

    @property
    def sets(self):
        """Also the validation set, although each step reads only one of its strings."""
        return (*super().sets, VALIDATION)

    def prepare(self, task):
        super().prepare(task)
        task.reference.keep_nll(FORGET)
        task.reference.keep_nll(VALIDATION, first=1)

    def loss(self, task, batch, paired_batch):
        first_M1 = np.full((task.models.count, 1), task.sets[VALIDATION][0])
        with_preferred = task.batch(np.concatenate([batch.rows_MB, first_M1], axis=1))
        return super().loss(task, with_preferred, paired_batch)

    def forget_loss(self, task, batch):
        nll_MB, original_MB = _nll(task, batch), task.reference.nll(batch)
        preferred = nll_MB[:, -1:], original_MB[:, -1:]
        return dpo(nll_MB[:, :-1], original_MB[:, :-1], *preferred, self.beta)


@phase("refusal-dpo")
class RefusalDPO(HeldBack):
    """Direct preference optimisation: a refusal is preferred to each forget string's own answer.

    It stands after the same prompt. Each step has as many refusals as strings, so it costs a pass
    more. The string and the seed of the problem decide which of the `refusals` it is.

    Source: TOFU: A Task of Fictitious Unlearning for LLMs (Maini et al., 2024), section 3.2.
    """

    works_on_symbols = False

    beta: float = number(0.1, above=0)
    refusals: tuple[str, ...] = texts()

    @property
    def passes_per_step(self):
        return super().passes_per_step + 1

    def add_strings(self, task):
        task.refuse(self.refusals)

    def prepare(self, task):
        super().prepare(task)
        for name in (FORGET, REFUSED):
            task.reference.keep_nll(name)

    def loss(self, task, batch, paired_batch):
        refused_MB = task.refused_rows[batch.rows_MB]
        both = task.batch(np.concatenate([batch.rows_MB, refused_MB], axis=1))
        return super().loss(task, both, paired_batch)

    def forget_loss(self, task, batch):
        nll_MB, refused_MB = _nll(task, batch).chunk(2, dim=1)
        original_MB, original_refused_MB = task.reference.nll(batch).chunk(2, dim=1)
        return dpo(nll_MB, original_MB, refused_MB, original_refused_MB, self.beta)
