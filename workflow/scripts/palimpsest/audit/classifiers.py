"""Attacks that learn from known members: all attacks together, and one that sees no model at all.

A record is scored by a classifier that was trained on other groups.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

COMBINED, BLIND = "combined", "blind"
LEAST = 10  # members, and as many non-members, without which nothing is learned


def combined(scores: pd.DataFrame, member: np.ndarray, group: np.ndarray, seed: int) -> np.ndarray:
    """float64[texts]: rank of membership by a logistic regression on the scores of attacks.

    Parameters
    ----------
    scores : float[texts, attacks]
    member, group : bool[texts] and the names of the texts' groups
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import QuantileTransformer

    ranks = QuantileTransformer(n_quantiles=100, output_distribution="normal")
    return _by_others(
        make_pipeline(ranks, LogisticRegression()), scores.to_numpy(), member, group, seed
    )


def blind(texts: list[str], member: np.ndarray, group: np.ndarray, seed: int) -> np.ndarray:
    """float64[texts]: rank of membership by the words of a text alone.

    If these words tell members, then members differ from non-members in kind, such as in source or
    date, and no attack on these texts says anything about the model.

    Source: Das, Zhang and Tramer, Blind Baselines Beat Membership Inference Attacks (2024).
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    words = CountVectorizer(ngram_range=(1, 2), binary=True, token_pattern=r"(?u)\b\w+\b")
    given = np.array(texts, dtype=object)
    return _by_others(make_pipeline(words, LogisticRegression()), given, member, group, seed)


def can_learn(member: np.ndarray) -> bool:
    return min(member.sum(), (~member).sum()) >= LEAST


def _by_others(
    model, given: np.ndarray, member: np.ndarray, group: np.ndarray, seed: int
) -> np.ndarray:
    """The scores of each half of the groups by a classifier that was trained on the other half."""
    from scipy.stats import rankdata
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedGroupKFold

    found = np.zeros(len(member))
    halves = StratifiedGroupKFold(2, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # Of few texts there are fewer quantiles.
        warnings.filterwarnings("ignore", message="n_quantiles")
        for others, own in halves.split(given, member, group.astype(str)):
            fitted = clone(model).fit(given[others], member[others])
            # Two classifiers' odds are on scales of their own; ranks within a half are comparable.
            found[own] = rankdata(fitted.decision_function(given[own])) / len(own)
    return found
