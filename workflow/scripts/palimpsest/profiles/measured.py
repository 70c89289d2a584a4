"""What a stream leaves behind: its outcomes as panels, and the learning rate of each cohort."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest import manifests, traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.profiles import kinds
from palimpsest.profiles.panel import NEVER, Panel
from palimpsest.profiles.streams import PANEL, VALIDATION
from palimpsest.traces import Trace
from palimpsest.training.recipe import Recipe

STREAMS = {"traces": [traces.read], "datasets": [STRINGS], "manifests": [manifests.read]}
# Outcomes of a trace, float[times, strings]: more is better for all of them
OUTCOMES: dict[str, Callable[[Trace], np.ndarray]] = {
    kinds.LOG_LIKELIHOOD: lambda trace: -trace.nll,
    kinds.TOKEN_ACCURACY: lambda trace: trace.accuracy,
    kinds.NEGATIVE_RANK: lambda trace: -trace.rank_sum / trace.n_tokens,
}
DRAW = 15  # separates the random times of placebos from other draws with the same seed


@dataclass(frozen=True)
class Stream:
    """A run on a stream.

    `cohorts` float64[strings] are the macro-batches of the strings in the trace, `NEVER` for
    validation strings. `rates` maps each cohort to the mean learning rate of its steps.
    """

    trace: Trace
    cohorts: np.ndarray
    rates: Mapping[int, float]
    parameters: int

    @classmethod
    def of(cls, trace: Trace, strings: pd.DataFrame, manifest: Mapping) -> "Stream":
        rates = learning_rates(strings, manifest["configuration"]["recipe"])
        return cls(trace, cohorts_in(trace, strings), rates, manifest["parameters"])

    @property
    def keys(self) -> dict:
        names = ("model", "language", "size", "seed")
        return {**{name: self.trace.run[name] for name in names}, "parameters": self.parameters}

    def panels(self, outcome: str, size: int) -> dict[str, Panel]:
        """The panel of the trained strings, and that of placebos, by the kind of strings.

        Placebos are at most half of the validation strings. They are in cohorts of `size` strings,
        each with another random time at which its strings are treated as if they had been trained
        on; all other validation strings are the comparison. The times are the same for all seeds,
        and the strings are not.
        """
        return {
            kinds.TRAINED: self._panel(outcome, np.arange(len(self.cohorts)), self.cohorts),
            kinds.PLACEBO: self._panel(outcome, *self._placebos(size)),
        }

    def _panel(self, outcome: str, places: np.ndarray, cohorts: np.ndarray) -> Panel:
        values = OUTCOMES[outcome](self.trace)[:, places].T
        name = f"{self.trace.run['model']}, seed {self.trace.run['seed']}"
        return Panel(self.trace.epochs.astype(float), cohorts, values, name)

    def _placebos(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The places of the validation strings in the trace, and the cohorts assigned to them."""
        chance = np.random.default_rng([self.trace.run["seed"], DRAW])
        places = chance.permutation(np.flatnonzero(np.isinf(self.cohorts)))
        times = np.random.default_rng(DRAW).permutation(self.trace.epochs[1:])
        n = min(max(1, len(places) // 2 // size), len(times))
        cohorts = np.full(len(places), NEVER)
        cohorts[: n * size] = np.repeat(times[:n], size)
        return places, cohorts


def cohorts_in(trace: Trace, strings: pd.DataFrame) -> np.ndarray:
    """The cohort of each string of a trace, float64[strings]; `NEVER` for validation strings."""
    measured = strings[strings["split"].isin([PANEL, VALIDATION])].set_index("string_id")
    numbers = measured.loc[trace.string_ids, "cohort"].astype("Float64")
    return numbers.to_numpy(dtype=float, na_value=NEVER)


def learning_rates(strings: pd.DataFrame, recipe: Mapping) -> dict[int, float]:
    """The mean learning rate of the optimiser steps on each cohort.

    `recipe` holds the keys of a `Recipe`; its epochs are the cohorts.
    """
    known = {name: value for name, value in recipe.items() if name in Recipe.__dataclass_fields__}
    made = Recipe(**known)
    steps = made.steps_per_epoch(int(strings.loc[strings["cohort"] == 1, "count"].sum()))
    rates = [
        made.learning_rate_at(step, made.epochs * steps) for step in range(made.epochs * steps)
    ]
    means = np.reshape(rates, (made.epochs, steps)).mean(1)
    return dict(enumerate(means.tolist(), start=1))
