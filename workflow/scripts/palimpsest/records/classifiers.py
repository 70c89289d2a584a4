"""Attacks that learn from known members: all attacks together, and one that sees no model at all.

A record is scored by a classifier that was trained on other groups.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

COMBINED, BLIND = "combined", "blind"
LEAST = 10  # members, and as many non-members, without which nothing is learned
LEAST_GROUPS = 2  # of members, and as many of non-members, in each half


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
    """float64[texts]: rank of membership by the words and letters of a text alone.

    If these tell members, then members differ from non-members in kind, such as in source or date,
    and no attack on these texts says anything about the model. Letters, in sequences of up to
    three, see what words do not, such as longer numbers.

    Source: Das, Zhang and Tramer, Blind Baselines Beat Membership Inference Attacks (2024), who
    look at words.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_union

    words = CountVectorizer(ngram_range=(1, 2), binary=True, token_pattern=r"(?u)\b\w+\b")
    letters = CountVectorizer(analyzer="char", ngram_range=(1, 3), binary=True)
    if not any(map(words.build_analyzer(), texts)):
        return np.full(len(texts), 0.5)  # all are alike
    # Which words there are tells nothing of members, and a half may have no word at all.
    given = make_union(words, letters).fit_transform(texts).tocsr()
    return _by_others(LogisticRegression(max_iter=1000), given, member, group, seed)


def can_learn(member: np.ndarray, group: np.ndarray, seed: int) -> bool:
    """Whether members can be learned in each half of the groups, and found in the other one.

    This takes `LEAST` members and as many others, and in each half two groups or more of both. If
    labels follow groups, such as sources, then there are not. `member` and `group` are those of
    `combined`.
    """
    if min(member.sum(), (~member).sum()) < LEAST:
        return False
    names = group.astype(str)
    if min(len(np.unique(names[side])) for side in (member, ~member)) < 2 * LEAST_GROUPS:
        return False
    return all(
        len(np.unique(names[half][side[half]])) >= LEAST_GROUPS
        for _, half in _halves(member, names, seed)
        for side in (member, ~member)
    )


def _by_others(model, given, member: np.ndarray, group: np.ndarray, seed: int) -> np.ndarray:
    """The scores of each half of the groups by a classifier that was trained on the other half."""
    from scipy.stats import rankdata
    from sklearn.base import clone

    found = np.zeros(len(member))
    with warnings.catch_warnings():
        # Of few texts there are fewer quantiles.
        warnings.filterwarnings("ignore", message="n_quantiles")
        for others, own in _halves(member, group, seed):
            fitted = clone(model).fit(given[others], member[others])
            # Two classifiers' odds are on scales of their own; ranks within a half are comparable.
            found[own] = rankdata(fitted.decision_function(given[own])) / len(own)
    return found


def _halves(member: np.ndarray, group: np.ndarray, seed: int) -> list[tuple]:
    """The two halves of the groups, each after the other one: int[any] places of texts."""
    from sklearn.model_selection import StratifiedGroupKFold

    halves = StratifiedGroupKFold(2, shuffle=True, random_state=seed)
    return list(halves.split(member, member, group.astype(str)))
