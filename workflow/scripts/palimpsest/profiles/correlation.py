"""How alike the memorisation profiles of two models are.

Source: Causal Estimation of Memorisation Profiles, section 7 and figure 6.
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd

from palimpsest.making import makes, reads
from palimpsest.profiles import kinds
from palimpsest.profiles.summaries import with_side
from palimpsest.statistics import FEWEST_TERMS, is_constant, rounding_error

CELL = ["cohort", "time"]


@reads(profiles=kinds.PROFILE)
@makes(kinds.PROFILE_CORRELATION)
def correlations(profiles: pd.DataFrame) -> pd.DataFrame:
    """A table `profile_correlation`, from stacked tables `profile` of models on one language.

    Cells before the treatment are the comparison. Nothing is memorised there, but all models are
    measured on the same strings, so their errors are correlated. `within_lags` is the correlation
    without what all cohorts have in common at a time since their treatment: effects that fade alike
    in both models are no sign that one predicts which strings the other memorises.
    """
    estimates = with_side(
        profiles[
            (profiles["estimator"] == kinds.DIFFERENCE_IN_DIFFERENCES)
            & (profiles["string_role"] == kinds.TRAINED)
        ]
    )
    order = estimates.drop_duplicates("model").sort_values("parameters", kind="stable")["model"]
    rows = []
    groups = ["language", "size", "seed", "outcome", "cells"]
    for keys, group in estimates.groupby(groups):
        wide = group.pivot(index=CELL, columns="model", values="estimate")
        lags = wide.index.get_level_values("time") - wide.index.get_level_values("cohort")
        for model, other in combinations_with_replacement(order, 2):
            named = dict(zip(groups, keys, strict=True)) | {"model": model, "other": other}
            x, y = (wide[name].to_numpy() for name in (model, other))
            found = {
                "correlation": pearson(x, y),
                "within_lags": pearson(within(lags, x), within(lags, y)),
            }
            rows.append({**named, "n_cells": len(wide), **found})
    return pd.DataFrame(rows)[kinds.PROFILE_CORRELATION.names]


def within(groups: Sequence, values: np.ndarray) -> np.ndarray:
    """Values float[..., n] minus the mean of their group; exactly 0 where only rounding is left.

    `groups` has n names.
    """
    names, places = np.unique(groups, return_inverse=True)
    is_in = np.eye(len(names))[places]  # float[n, groups]
    found = values - (values @ is_in / is_in.sum(axis=0))[..., places]
    largest = np.abs(values).max(axis=-1, initial=0.0, keepdims=True)
    return np.where(np.abs(found) <= rounding_error(largest, FEWEST_TERMS), 0.0, found)


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's correlation of float[n] and float[n]; NaN if one of them does not vary."""
    if is_constant(x) or is_constant(y):
        return np.nan
    return float(np.corrcoef(x, y)[0, 1])
