"""Whether records trained on and others are alike in kind, as far as their texts show."""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.records.classifiers import blind, can_learn
from palimpsest.records.losses import Losses
from palimpsest.records.roc_curves import AUC, statistics
from palimpsest.statistics import NO_INTERVAL, Interval

BLIND_LOOK = ("blind", "blind_lower", "blind_upper")
SEED = 0  # of the halves in which the classifier learns and is tried


def told_apart(texts: Mapping[str, str], losses: Losses) -> Interval:
    """The AUC by which texts alone, without a model, tell records trained on from the others.

    NaN without texts, without a placebo, or with too few records or groups of a kind to learn from.
    Without an interval if the groups are too few for one.

    Parameters
    ----------
    texts : the text of each record, by its id

    Source: see `classifiers.blind`.
    """
    if not texts or not losses.has_placebo:
        return NO_INTERVAL
    member, group = losses.is_trained, losses.groups
    if not can_learn(member, group, SEED):
        return NO_INTERVAL
    score = blind([texts[record] for record in losses.ids], member, group, SEED)
    return statistics(score, member, group, [])[AUC]
