"""ROC curves of attacks: how many members are found at how many false positives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Curve(NamedTuple):
    """A ROC curve: float64[points] false and true positive rates, rising from (0, 0) to (1, 1)."""

    fpr: np.ndarray
    tpr: np.ndarray


def roc(score: np.ndarray, member: np.ndarray) -> Curve:
    """The ROC curve of scores; a point for each distinct score.

    Parameters
    ----------
    score : float[texts], higher for texts that are taken for members
    member : bool[texts]
    """
    order = np.argsort(-score, kind="stable")
    is_last = np.append(np.diff(score[order]) != 0, True)
    hits = np.cumsum(member[order])[is_last]
    alarms = np.cumsum(~member[order])[is_last]
    return Curve(np.append(0, alarms / alarms[-1]), np.append(0, hits / hits[-1]))


def auc(score: np.ndarray, member: np.ndarray) -> float:
    """The probability that a member has a higher score than a non-member; ties count a half."""
    curve = roc(score, member)
    return float(np.trapezoid(curve.tpr, curve.fpr))


def tpr_at(score: np.ndarray, member: np.ndarray, fpr: float) -> float:
    """The share of members found at a share `fpr` of false positives at most.

    NaN if there are so few non-members that one of them is more than this share.
    """
    if fpr * np.count_nonzero(~member) < 1:
        return np.nan
    curve = roc(score, member)
    return float(curve.tpr[curve.fpr <= fpr].max())
