"""How alike the memorisation profiles of two models are.

Source: Causal Estimation of Memorisation Profiles, section 7 and figure 6.
"""

from itertools import combinations_with_replacement

import numpy as np
import pandas as pd

from palimpsest.making import makes, reads
from palimpsest.profiles import kinds
from palimpsest.profiles.summaries import with_side
from palimpsest.statistics import is_constant

CELL = ["cohort", "time"]


@reads(profiles=kinds.PROFILE)
@makes(kinds.PROFILE_CORRELATION)
def correlations(profiles: pd.DataFrame) -> pd.DataFrame:
    """A table `profile_correlation`, from stacked tables `profile` of models on one language.

    Cells before the treatment are the comparison. Nothing is memorised there, but all models are
    measured on the same strings, so their errors are correlated.
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
        for model, other in combinations_with_replacement(order, 2):
            named = dict(zip(groups, keys, strict=True)) | {"model": model, "other": other}
            r = pearson(wide[model].to_numpy(), wide[other].to_numpy())
            rows.append({**named, "n_cells": len(wide), "correlation": r})
    return pd.DataFrame(rows)[kinds.PROFILE_CORRELATION.names]


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's correlation of float[n] and float[n]; NaN if one of them does not vary."""
    if is_constant(x) or is_constant(y):
        return np.nan
    return float(np.corrcoef(x, y)[0, 1])
