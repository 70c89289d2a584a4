"""Variants with or without a target string.

Source: Learning Without Memorizing Considered Infeasible, section 3.2.
"""

from collections import Counter

import numpy as np
import pandas as pd

from palimpsest.corpora import string_of
from palimpsest.datasets.build import DatasetRequest, tabulate
from palimpsest.errors import UserError
from palimpsest.memorisation.interventions import target_of, with_target


def with_or_without_target(request: DatasetRequest) -> pd.DataFrame:
    """The paper's D' (sampled without the target), or D (D' and the copies of the target).

    D has `size` strings. The number of copies of the target is the expected number among `size`
    strings, and D' has the other strings. A target that is not in train has split `held_out`: it is
    only measured.
    """
    language, size, role = request.sampler.language, request.size, target_of(request.variant)
    corpus = request.sampler.corpus
    target = string_of(corpus, _target(request.targets, role, language))
    copies = target_counts(request.targets, size)[role]
    if copies >= size:
        raise UserError(
            f"language {language}, size {size}: {copies} copies of the target {role} leave no room "
            "for other strings; raise the train size or ask for fewer targets "
            "(memorisation/studies/disagreement/targets)"
        )
    train = Counter(request.sampler.train(size - copies, but=target))
    if request.variant == with_target(role):
        train[target] = copies
    pairs = zip(request.targets["text"], request.targets["role"], strict=True)
    roles = {string_of(corpus, line): of_line for line, of_line in pairs}
    return tabulate(request, train, held_out=[target], roles=roles)


def target_counts(targets: pd.DataFrame, size: int) -> dict[str, int]:
    """The number of copies of each target in the data that include it.

    This is the expected count among `size` strings, rounded. It is at least 1, and at least one
    more than the count of the next target, so that the frequencies differ even at small sizes.
    """
    counts: dict[str, int] = {}
    least = 1
    for role, log_prob in zip(targets["role"][::-1], targets["log_prob"][::-1], strict=True):
        counts[role] = max(least, round(size * float(np.exp(log_prob))))
        least = counts[role] + 1
    return counts


def _target(targets: pd.DataFrame, role: str, language: str) -> str:
    """The text of the target."""
    texts = targets.loc[targets["role"] == role, "text"]
    if texts.empty:
        raise UserError(
            f"language {language}: no target {role!r}; known: {', '.join(targets['role'])}; "
            "ask for more (memorisation/studies/disagreement/targets)"
        )
    return texts.iloc[0]
