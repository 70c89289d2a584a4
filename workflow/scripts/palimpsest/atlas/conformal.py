"""Conformal intervals of the exact self-influence of strings, and how often they have it.

They are calibrated on strings, seeds, languages, families and sizes other than those tested, of
which only the first are like them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest.atlas import kinds
from palimpsest.atlas.truth import RUN
from palimpsest.conformal import (
    FEWEST,
    FOLDS,
    LEVEL,
    SPLIT_SEED,
    Calibration,
    features_of,
    told_apart,
    width_to_expect,
)
from palimpsest.making import makes, reads

STRING = "string"
HELD_OUT = (STRING, "seed", "language", "family", "size")
TOLD_APART = 0.95  # AUC above which new strings are not those of the calibration at all


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
    calibrated: dict[tuple, Calibrated] = {}  # many runs are tested by one calibration
    rows = [
        row
        for run, places in of_rows[of_rows["language"] == language].groupby(RUN).groups.items()
        for row in _tested(of_rows, measured, exact.to_numpy(), run, places.to_numpy(), calibrated)
    ]
    return pd.DataFrame(rows, columns=kinds.CONFORMAL.names)


class Calibrated(NamedTuple):
    """Calibrations by all measures together, and by the best one alone, which has a place."""

    whole: Calibration
    alone: Calibration
    single: int

    @classmethod
    def of(cls, measured: np.ndarray, exact: np.ndarray, strings: np.ndarray) -> Calibrated:
        """From float[rows, measures], float[rows] and str[rows].

        A string that several runs have is one group, because its values are not independent. The
        best measure is chosen on the half that is fitted.
        """
        widths = [
            width_to_expect(column[:, None], exact, strings) for column in measured.transpose()
        ]
        single = int(np.argmin(widths))
        alone = Calibration.of(measured[:, [single]], exact, strings)
        return cls(Calibration.of(measured, exact, strings), alone, single)


def _tested(
    of_rows: pd.DataFrame,
    measured: pd.DataFrame,
    exact: np.ndarray,
    run: tuple,
    places: np.ndarray,
    calibrated: dict[tuple, Calibrated],
) -> Iterator[dict]:
    """The rows of one run; `calibrated` is filled with what other runs may use."""
    values, strings = measured.to_numpy(dtype=float), of_rows["string_id"].to_numpy()
    of_run = places
    for held_out in HELD_OUT:
        own = of_rows[held_out].to_numpy()
        tested = 1 if held_out == STRING else own[of_run[0]]
        known, places = own != tested, of_run[own[of_run] == tested]
        if known.sum() < FEWEST or len(places) < FOLDS:
            continue
        if (held_out, tested) not in calibrated:
            made = Calibrated.of(values[known], exact[known], strings[known])
            calibrated[held_out, tested] = made
        whole, alone, single = calibrated[held_out, tested]
        shift = told_apart(*(features_of(values[rows], whole.scale) for rows in (known, places)))
        found = {
            "": whole.interval(values[places]),
            "single_": alone.interval(values[places][:, [single]]),
        }
        row = {**dict(zip(RUN, run, strict=True)), "held_out": held_out}
        row |= {"single": measured.columns[single]}
        row |= {"level": LEVEL, "n_strings": len(places), "shift": shift}
        row["told_apart"] = shift > TOLD_APART
        row["refused"] = float(np.isnan(found[""][0]).mean())
        for name, (lower, upper) in found.items():
            answered = ~np.isnan(lower)
            inside = (lower <= exact[places]) & (exact[places] <= upper)
            row[f"{name}coverage"] = inside[answered].mean() if answered.any() else np.nan
            row[f"{name}width"] = np.median((upper - lower)[answered]) if answered.any() else np.nan
        yield row
