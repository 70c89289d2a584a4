"""Conformal intervals: an exact value from what is cheap to measure.

A regression predicts the exact value from what the cheap measures say. On other items, whose exact
values are known, its errors tell how wide an interval must be: if a new item is like them
(exchangeable), the interval has the exact value with the stated probability, however wrong the
regression is. This holds in the mean over draws of the known items, and over all groups of items,
each counted once; not in each part of them, nor of each draw.

Sources: Lei et al., Distribution-Free Predictive Inference for Regression (2018), section 2.2; of
items in groups, Dunn, Wasserman and Ramdas, Distribution-Free Prediction Sets for Two-Layer
Hierarchical Models (2023), section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

LEVEL = 0.9
# On the scale of an arsinh, errors count alike below its unit, and as shares of the value above it;
# with an infinite unit, they count alike.
SCALE, PLAIN = 0.01, math.inf
ROUNDING = 1e-9
SPLIT_SEED = 0
FOLDS = 5
FEWEST = 20  # items with exact values, and FOLDS of new ones, without which nothing is said


@dataclass(frozen=True)
class Calibration:
    """A regression, and the errors that it made on items of which it had no exact values.

    `scale` float[measures] is what measures are divided by before their arsinh, and `unit` what
    values are. `score` float[n] are the sizes of errors on the scale of that arsinh, and `weight`
    float[n] is 1 over the number of items in the same group. `range` are the lowest and the highest
    prediction: outside of them, nothing is said.
    """

    scale: np.ndarray
    unit: float
    regression: Pipeline
    score: np.ndarray
    weight: np.ndarray
    range: tuple[float, float]

    @classmethod
    def of(
        cls,
        measured: np.ndarray,
        exact: np.ndarray,
        groups: np.ndarray | None = None,
        unit: float = SCALE,
        is_informed: bool = True,
    ) -> Calibration:
        """Fit on a random half of the groups, and take the errors on the other half.

        Parameters
        ----------
        measured : float[items, measures]; NaN where a measure does not apply
        exact : float[items], such as nats per token
        groups : str[items]; items of a group need not be independent, groups must be. By default,
            each item is a group.
        unit : see above
        is_informed : whether the measures are used; otherwise all items have one interval
        """
        group, size = _groups(exact, groups)
        is_fitted = ~is_scored(len(size))[group]
        scale = scale_of(measured)
        features, target = features_of(measured, scale), _scaled(exact, unit)
        regression = _regression(is_informed).fit(features[is_fitted], target[is_fitted])
        predicted = regression.predict(features[~is_fitted])
        score = np.abs(target[~is_fitted] - predicted)
        weight = 1 / size[group][~is_fitted]
        return cls(scale, unit, regression, score, weight, (predicted.min(), predicted.max()))

    @classmethod
    def narrowest(
        cls,
        measured: np.ndarray,
        exact: np.ndarray,
        groups: np.ndarray | None = None,
        level: float = LEVEL,
    ) -> Calibration:
        """The calibration whose intervals are narrowest, with or without the measures.

        It is chosen on the half that is fitted, by cross-validation, so the errors on the other
        half tell as much as without a choice.

        Parameters
        ----------
        measured, exact, groups : see `of`
        level : see `interval`
        """
        candidates = [(unit, informed) for informed in (True, False) for unit in (SCALE, PLAIN)]
        unit, is_informed = min(
            candidates, key=lambda one: width_to_expect(measured, exact, groups, level, *one)
        )
        return cls.of(measured, exact, groups, unit, is_informed)

    def interval(self, measured: np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
        """The ends float[items] of intervals of the exact values, in their unit.

        They are NaN for an item whose prediction is outside the range of the calibration.

        Parameters
        ----------
        measured : float[items, measures]
        level : the probability that the interval has the exact value
        """
        predicted, reach = self.predicted(measured), self.reach(level)
        ends = (_unscaled(predicted + sign * reach, self.unit) for sign in (-1, 1))
        inside = (predicted >= self.range[0]) & (predicted <= self.range[1])
        return tuple(np.where(inside, end, np.nan) for end in ends)

    def predicted(self, measured: np.ndarray) -> np.ndarray:
        return self.regression.predict(features_of(measured, self.scale))

    def reach(self, level: float) -> float:
        """The quantile of the errors, in which each group counts once.

        A new group counts as one with an infinite error.
        """
        return upper_quantile(self.score, self.weight, level)


def width_to_expect(
    measured: np.ndarray,
    exact: np.ndarray,
    groups: np.ndarray | None = None,
    level: float = LEVEL,
    unit: float = SCALE,
    is_informed: bool = True,
) -> float:
    """The median width of intervals, by cross-validation in the half that a calibration fits.

    So a choice by this width leaves the errors on the other half as they are. The parameters are
    those of `Calibration.of` and `interval`.
    """
    group, size = _groups(exact, groups)
    chosen = ~is_scored(len(size))[group]
    features, target = features_of(measured, scale_of(measured))[chosen], _scaled(exact, unit)
    folds = GroupKFold(min(FOLDS, len(np.unique(group[chosen]))))
    predicted = cross_val_predict(
        _regression(is_informed), features, target[chosen], groups=group[chosen], cv=folds
    )
    reach = np.quantile(np.abs(target[chosen] - predicted), level)
    return float(np.median(_unscaled(predicted + reach, unit) - _unscaled(predicted - reach, unit)))


def _groups(exact: np.ndarray, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The number of each item's group, and the size of each group."""
    names = np.arange(len(exact)) if groups is None else groups
    return np.unique(names, return_inverse=True, return_counts=True)[1:]


def _regression(is_informed: bool) -> Pipeline:
    last = Ridge(1.0) if is_informed else DummyRegressor(strategy="median")
    return make_pipeline(StandardScaler(), last)


def _scaled(value: np.ndarray, unit: float) -> np.ndarray:
    return value if unit == PLAIN else np.arcsinh(value / unit)


def _unscaled(scaled: np.ndarray, unit: float) -> np.ndarray:
    return scaled if unit == PLAIN else unit * np.sinh(scaled)


def scale_of(measured: np.ndarray) -> np.ndarray:
    """float[measures]: the median size of each measure; 1 where there is none."""
    sizes = np.nanmedian(np.abs(measured), axis=0)
    return np.where(np.isfinite(sizes) & (sizes > 0), sizes, 1.0)


def weights_of(groups: np.ndarray) -> np.ndarray:
    """float[items]: 1 over the number of items in the same group."""
    group, size = _groups(groups, groups)
    return 1 / size[group]


def upper_quantile(values: np.ndarray, weights: np.ndarray, level: float) -> float:
    """The value that one of a new group exceeds with a probability of 1 - `level` at most.

    `weights` are those of `weights_of`, or a part of them that has whole groups; the new group
    counts as one with an infinite value. Infinite if there are too few.
    """
    if not len(values):
        return math.inf
    order = np.argsort(values)
    below = weights[order].cumsum()
    # The last sum is the number of groups, but for rounding.
    place = np.searchsorted(below, level * (round(below[-1]) + 1) - ROUNDING)
    return float(values[order][place]) if place < len(order) else math.inf


def is_scored(n: int) -> np.ndarray:
    """bool[n]: the groups of a calibration whose errors are taken; the others are fitted."""
    return np.random.default_rng(SPLIT_SEED).permutation(n) >= n // 2


def features_of(measured: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """float[items, 2 measures]: arsinh of the values, 0 if unknown, and whether it is unknown."""
    unknown = np.isnan(measured)
    return np.hstack([np.arcsinh(np.where(unknown, 0.0, measured) / scale), unknown])


def told_apart(known: np.ndarray, new: np.ndarray, groups: np.ndarray | None = None) -> float:
    """How well new items can be told from those of a calibration, by their features.

    `groups` str[known + new] are kept together in cross-validation.

    Returns the cross-validated AUC; 0.5: not at all.
    """
    features = np.vstack([known, new])
    is_new = np.arange(len(features)) >= len(known)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    folds = FOLDS if groups is None else StratifiedGroupKFold(FOLDS)
    found = cross_val_predict(
        model, features, is_new, groups=groups, cv=folds, method="predict_proba"
    )
    return float(roc_auc_score(is_new, found[:, 1]))
