"""What models say of a run's strings in one more pass: that of the run, and those of other seeds.

The models of other seeds are trained on other strings, so they are reference models. Where a string
is in their training, too, nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from palimpsest.audit.membership import Given
from palimpsest.audit.membership.attack import (
    LOWERCASE,
    NEIGHBOURS,
    PREFIXED,
    Retrained,
)
from palimpsest.audit.passes import Pass


@dataclass(frozen=True)
class Passes:
    """The passes over the strings of one run.

    `strings` is the run's dataset. `frames` has rows of the table `last_pass` in the order of the
    strings, that of the run's model first. `is_apart` bool[strings]: no other model was trained on
    the string.
    """

    strings: pd.DataFrame
    frames: Sequence[pd.DataFrame]
    is_apart: np.ndarray

    @classmethod
    def of(
        cls, rows: pd.DataFrame, strings: pd.DataFrame, datasets: Sequence[pd.DataFrame]
    ) -> Passes:
        """From the rows of the table `last_pass` of one run.

        `strings` is the run's dataset, and `datasets` are those of all runs.
        """
        seed = strings["seed"].iloc[0]
        by_seed = dict(list(rows.groupby("model_seed")))
        others = sorted(set(by_seed) - {seed})
        frames = [
            by_seed[of].set_index("string_id").loc[strings["string_id"]] for of in (seed, *others)
        ]
        elsewhere = pd.concat(
            [
                other.loc[other["count"] > 0, "text"]
                for other in datasets
                if other["seed"].iloc[0] in others
            ]
            or [strings["text"].head(0)]
        )
        return cls(strings, frames, ~strings["text"].isin(elsewhere).to_numpy())

    @property
    def n_references(self) -> int:
        return len(self.frames) - 1

    @property
    def seconds(self) -> np.ndarray:
        """float[models]: core-seconds of each model's pass."""
        return np.array([frame["seconds"].iloc[0] for frame in self.frames])

    def seconds_of_changed(self, version: str) -> float:
        """Core-seconds of the pass over changed strings, and over the strings themselves."""
        return self.seconds[0] + self.frames[0][f"{version}_seconds"].iloc[0]

    @property
    def trained(self) -> np.ndarray:
        """int[trained]: rows of the training strings, in the dataset's order."""
        return np.flatnonzero(self.strings["count"] > 0)

    @cached_property
    def vectors(self) -> np.ndarray:
        """float64[trained, D]: embeddings of the training strings by the run's model."""
        return np.stack(self.frames[0]["vector"].iloc[self.trained]).astype(float)

    def pass_of(self, rows: np.ndarray, model: int = 0) -> Pass:
        """What one of the models says of the strings in some rows of the dataset."""
        frame = self.frames[model].iloc[rows]
        values = (
            np.concatenate(frame[name].to_list()).astype(float)
            for name in ("log_probs", "means", "deviations", "ranks")
        )
        n_tokens = frame["log_probs"].map(len).to_numpy()
        return Pass(n_tokens, *values, np.full(n_tokens.sum(), np.nan))

    def given(self, rows: np.ndarray) -> Given:
        """What an attack without a reference is given of the strings in some rows."""
        return Given(self.strings["text"].iloc[rows].tolist(), self.pass_of(rows))

    @cached_property
    def changed(self) -> dict[str, Pass]:
        """Passes of changed training strings by the run's model; of them, only losses are known."""
        found = {}
        for version in (LOWERCASE, NEIGHBOURS, PREFIXED):
            losses = np.concatenate(self.frames[0][version].iloc[self.trained].to_list())
            if len(losses):
                once, unknown = np.ones(len(losses), dtype=int), np.full(len(losses), np.nan)
                found[version] = Pass(once, -losses.astype(float), *[unknown] * 4)
        return found

    @cached_property
    def beside_references(self) -> tuple[np.ndarray, Given]:
        """Which training strings no reference has seen, bool[trained], and what is given of them.

        After them come all strings that no model has seen: the population. The reference of a token
        is the mean of its log probability over the reference models.
        """
        is_apart = self.is_apart[self.trained]
        unseen = np.flatnonzero((self.strings["count"] == 0) & self.is_apart)
        rows = np.append(self.trained[is_apart], unseen)
        target = self.pass_of(rows)
        others = [self.pass_of(rows, 1 + of) for of in range(self.n_references)]
        mean = np.mean([other.log_prob for other in others], axis=0)
        without = np.stack([other.nll for other in others])
        given = Given(
            self.strings["text"].iloc[rows].tolist(),
            target,
            reference=replace(others[0], log_prob=mean),
            population=np.arange(len(rows)) >= is_apart.sum(),
            retrained=Retrained(target.nll / target.n_tokens, without / target.n_tokens),
        )
        return is_apart, given
