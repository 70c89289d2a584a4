"""Conformal intervals: the exact self-influence of a string from cheap measures.

A regression predicts the exact value from what the cheap measures say. On other strings, whose
exact values are known, its errors tell how wide an interval must be: if a new string is like them
(exchangeable), the interval has the exact value with the stated probability, however wrong the
regression is. This holds over all such strings together, and not in each run or language.

Source: Lei et al., Distribution-Free Predictive Inference for Regression (2018), section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from palimpsest.atlas import kinds
from palimpsest.atlas.truth import RUN
from palimpsest.making import makes, reads

LEVEL = 0.9
STRING = "string"
HELD_OUT = (STRING, "seed", "language", "family", "size")
TOLD_APART = 0.95  # AUC above which new strings are not those of the calibration at all
SCALE = 0.01  # nats per token: below this, errors count alike; above, as shares of the value
SPLIT_SEED = 0
FOLDS = 5
FEWEST = 20  # strings with exact values, and FOLDS of new ones, without which nothing is said


@dataclass(frozen=True)
class Calibration:
    """A regression, and the errors that it made on strings of which it had no exact values.

    `scale` float[measures] is what measures are divided by before their arsinh. `score` float[n]
    are the sizes of errors, on the scale of arsinh(value / 0.01). `range` are the lowest and the
    highest prediction: outside of them, nothing is said.
    """

    scale: np.ndarray
    regression: Pipeline
    score: np.ndarray
    range: tuple[float, float]

    @classmethod
    def of(cls, measured: np.ndarray, exact: np.ndarray) -> Calibration:
        """Fit on a random half of the strings, and take the errors on the other half.

        Parameters
        ----------
        measured : float[strings, measures]; NaN where a measure does not apply
        exact : float[strings], nats per token
        """
        is_fitted = ~is_scored(len(exact))
        sizes = np.nanmedian(np.abs(measured), axis=0)
        scale = np.where(np.isfinite(sizes) & (sizes > 0), sizes, 1.0)
        features, target = features_of(measured, scale), np.arcsinh(exact / SCALE)
        regression = make_pipeline(StandardScaler(), Ridge(1.0))
        regression.fit(features[is_fitted], target[is_fitted])
        predicted = regression.predict(features[~is_fitted])
        score = np.abs(target[~is_fitted] - predicted)
        return cls(scale, regression, score, (predicted.min(), predicted.max()))

    def interval(self, measured: np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
        """The ends float[strings] of intervals of the exact values, nats per token.

        They are NaN for a string whose prediction is outside the range of the calibration.

        Parameters
        ----------
        measured : float[strings, measures]
        level : the probability that the interval has the exact value
        """
        predicted, reach = self.predicted(measured), self.reach(level)
        ends = SCALE * np.sinh(predicted - reach), SCALE * np.sinh(predicted + reach)
        inside = (predicted >= self.range[0]) & (predicted <= self.range[1])
        return tuple(np.where(inside, end, np.nan) for end in ends)

    def predicted(self, measured: np.ndarray) -> np.ndarray:
        return self.regression.predict(features_of(measured, self.scale))

    def reach(self, level: float) -> float:
        """The quantile of the errors; a new string counts as one with an infinite error."""
        place = math.ceil(level * (len(self.score) + 1)) - 1
        return float(np.sort(self.score)[place]) if place < len(self.score) else math.inf


def is_scored(n: int) -> np.ndarray:
    """bool[n]: the strings of a calibration whose errors are taken; the others are fitted."""
    return np.random.default_rng(SPLIT_SEED).permutation(n) >= n // 2


def features_of(measured: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """float[strings, 2 measures]: arsinh of the values, 0 if unknown, and whether it is unknown."""
    unknown = np.isnan(measured)
    return np.hstack([np.arcsinh(np.where(unknown, 0.0, measured) / scale), unknown])


def told_apart(known: np.ndarray, new: np.ndarray) -> float:
    """How well new strings can be told from those of a calibration, by their features.

    Returns the cross-validated AUC; 0.5: not at all.
    """
    features = np.vstack([known, new])
    is_new = np.arange(len(features)) >= len(known)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    found = cross_val_predict(model, features, is_new, cv=FOLDS, method="predict_proba")
    return float(roc_auc_score(is_new, found[:, 1]))


@reads(truth=kinds.TRUTH, contenders=kinds.CONTENDERS)
@makes(kinds.CONFORMAL)
def conformal_table(
    truth: pd.DataFrame, contenders: pd.DataFrame, language: str, families: Mapping[str, str]
) -> pd.DataFrame:
    """How often conformal intervals of a language's strings have the exact value.

    Each run is tested by calibrations that lack half of the strings (which are tested), its seed,
    its language, its model's family or its size. Only the first are exchangeable.

    Parameters
    ----------
    truth, contenders : of all cells
    language : whose runs are tested
    families : the family of each model
    """
    measured = contenders.pivot(index=[*RUN, "string_id"], columns="measure", values="amount")
    measured = measured.dropna(axis=1, how="all")  # a measure that applies to no string
    exact = truth.set_index([*RUN, "string_id"])["self_influence"].reindex(measured.index)
    of_rows = measured.index.to_frame(index=False)
    of_rows["family"] = of_rows["model"].map(families)
    # A string is on the same side in every run that has it.
    names = np.unique(of_rows["string_id"])
    side = np.random.default_rng(SPLIT_SEED).permutation(len(names)) % 2
    of_rows[STRING] = side[np.searchsorted(names, of_rows["string_id"])]
    rows = [
        row
        for run, places in of_rows[of_rows["language"] == language].groupby(RUN).groups.items()
        for row in _tested(of_rows, measured, exact.to_numpy(), run, places.to_numpy())
    ]
    return pd.DataFrame(rows, columns=kinds.CONFORMAL.names)


def _tested(
    of_rows: pd.DataFrame, measured: pd.DataFrame, exact: np.ndarray, run: tuple, places: np.ndarray
) -> Iterator[dict]:
    values = measured.to_numpy(dtype=float)
    of_run = places
    for held_out in HELD_OUT:
        own = of_rows[held_out].to_numpy()
        tested = 1 if held_out == STRING else own[of_run[0]]
        known, places = own != tested, of_run[own[of_run] == tested]
        if known.sum() < FEWEST or len(places) < FOLDS:
            continue
        whole = Calibration.of(values[known], exact[known])
        singles = {
            name: Calibration.of(values[known][:, [place]], exact[known])
            for place, name in enumerate(measured.columns)
        }
        # The best single measure is chosen without the strings that are tested.
        single = min(singles, key=lambda name: singles[name].reach(LEVEL))
        column = [measured.columns.get_loc(single)]
        shift = told_apart(*(features_of(values[rows], whole.scale) for rows in (known, places)))
        found = {
            "": whole.interval(values[places]),
            "single_": singles[single].interval(values[places][:, column]),
        }
        row = {**dict(zip(RUN, run, strict=True)), "held_out": held_out, "single": single}
        row |= {"level": LEVEL, "n_strings": len(places), "shift": shift}
        row["told_apart"] = shift > TOLD_APART
        row["refused"] = float(np.isnan(found[""][0]).mean())
        for name, (lower, upper) in found.items():
            answered = ~np.isnan(lower)
            inside = (lower <= exact[places]) & (exact[places] <= upper)
            row[f"{name}coverage"] = inside[answered].mean() if answered.any() else np.nan
            row[f"{name}width"] = np.median((upper - lower)[answered]) if answered.any() else np.nan
        yield row
