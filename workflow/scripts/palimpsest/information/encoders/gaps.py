"""Gaps between groups in the labels that a classifier gives.

Source: the paper on information measures of neurons, appendix D.1, table 5; Orgad, Goldfarb-Tarrant
and Belinkov, How gender debiasing affects internal model representations, and why it matters
(2022), section 3; De-Arteaga et al., Bias in Bios (2019).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.errors import UserError
from palimpsest.information.kinds import GAPS

PERMUTATIONS = 20  # of groups, for the placebo


def gaps(right: ArrayLike, given: ArrayLike, groups: ArrayLike) -> dict[str, float]:
    """The gaps of table 5, of n texts.

    A rate of a label is compared between groups: its largest minus its smallest, then the mean over
    the labels that all groups have. The other two are mutual informations with the group, nats.

    Parameters
    ----------
    right, given : [n], the right labels, and those of the classifier
    groups : [n], two groups or more

    Returns
    -------
    The numbers of `kinds.GAPS`: `tpr_gap`, of the share of texts of a label to which it is given;
    `fpr_gap`, the same of texts of other labels; `separation_gap`, I(given; group | right);
    `sufficiency_gap`, I(right; group | given).

    Raises `UserError` if there are not two groups or more.
    """
    counts = _counts(right, given, groups)  # [right, given, groups]
    if counts.shape[2] < 2:
        raise UserError("gaps: all texts are of one group; give two groups or more")
    k = len(counts)
    total, of_group = counts.sum(axis=1), counts.sum(axis=(0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        hits = counts[np.arange(k), np.arange(k)]
        tpr = hits / total
        fpr = (counts.sum(axis=0) - hits) / (of_group - total)
    return dict(
        zip(
            GAPS,
            (
                _range(tpr),
                _range(fpr),
                _conditional(counts),
                _conditional(counts.transpose(1, 0, 2)),
            ),
            strict=True,
        )
    )


def gaps_by_chance(
    right: ArrayLike, given: ArrayLike, groups: ArrayLike, seed: int = 0
) -> dict[str, float]:
    """Mean gaps where the groups of the texts of each label are permuted: the placebo."""
    right, groups = np.asarray(right), np.asarray(groups)
    chance, found = np.random.default_rng(seed), []
    for _ in range(PERMUTATIONS):
        permuted = groups.copy()
        for label in np.unique(right):
            own = np.flatnonzero(right == label)
            permuted[own] = groups[chance.permutation(own)]
        found.append(list(gaps(right, given, permuted).values()))
    return dict(zip(GAPS, np.mean(found, axis=0).tolist(), strict=True))


def _counts(right: ArrayLike, given: ArrayLike, groups: ArrayLike) -> np.ndarray:
    """Counts int[labels, labels, groups] of right labels, given ones, and groups."""
    labels, codes = np.unique(np.concatenate([right, given]), return_inverse=True)
    names, members = np.unique(np.asarray(groups), return_inverse=True)
    counts = np.zeros((len(labels), len(labels), len(names)), dtype=np.int64)
    first, second = np.split(codes, 2)
    np.add.at(counts, (first, second, members), 1)
    return counts


def _range(rates: np.ndarray) -> float:
    """The largest rate minus the smallest, mean over the labels in which no rate is missing."""
    known = rates[np.isfinite(rates).all(axis=1)]
    return float(np.ptp(known, axis=1).mean()) if len(known) else np.nan


def _conditional(counts: np.ndarray) -> float:
    """I(B; C | A) of counts int[A, B, C], nats."""
    shares = counts / counts.sum()
    of_a = shares.sum(axis=(1, 2), keepdims=True)
    of_ab, of_ac = shares.sum(axis=2, keepdims=True), shares.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        terms = shares * np.log(shares * of_a / (of_ab * of_ac))
    return float(max(0.0, np.nansum(terms)))
