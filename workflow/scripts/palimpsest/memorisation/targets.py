"""Memorisation of target strings by retraining without them: `target_scores` and `agreement`.

Each target string is measured in two runs with the same seed: in `with-s0`, the string is in the
training data at its frequency; in `without-s0`, the string is not in the training data.

Source: Learning Without Memorizing Considered Infeasible, sections 3.2 and 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest import traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.making import makes, reads
from palimpsest.memorisation.all_measures import Thresholds, every_measure
from palimpsest.memorisation.approximation import GAP
from palimpsest.memorisation.interventions import target_of, without_target
from palimpsest.memorisation.kinds import AGREEMENT, TARGET_SCORES
from palimpsest.memorisation.measures import Memorisation, Start, lemma_assumption_broken
from palimpsest.memorisation.runs import (
    epoch_of,
    learning_table,
    paired,
    restrict,
    run_name,
    stand_in_losses,
)
from palimpsest.traces import Trace

# Each cheaper threshold, and the exact threshold that it approximates.
CHEAPER = {
    ("counterfactual", "same-frequency"): ("counterfactual", "retraining"),
    ("contextual", "same-frequency"): ("contextual", "retraining"),
    ("bayes", "language"): ("contextual", "retraining"),
}


@dataclass(frozen=True)
class Targets:
    """Curves of target strings, one column each.

    `keys` has one row per target (seed, role, string_id, count, log_prob, optimal_loss). The curves
    are float[epochs, targets], in nats per token, except `wrong`, the share of wrong tokens.
    `without` is the loss in the run without the target. `stand_in` is the median loss of the
    same-frequency unseen strings in the run with the target.
    """

    run: dict
    epochs: np.ndarray
    keys: pd.DataFrame
    loss: np.ndarray
    wrong: np.ndarray
    without: np.ndarray
    stand_in: np.ndarray
    test_loss: np.ndarray

    CURVES = ("loss", "wrong", "without", "stand_in", "test_loss")

    @classmethod
    def stack(cls, targets: list[Targets]) -> Targets:
        """Combine the curves of several targets; UserError if their epochs or models differ."""
        first = targets[0]
        for other in targets[1:]:
            if other.run != first.run or not np.array_equal(other.epochs, first.epochs):
                raise UserError(
                    f"{first.run} and {other.run}: runs of different models, languages, sizes or "
                    "epochs cannot be in one table"
                )
        curves = {
            name: np.concatenate([getattr(target, name) for target in targets], axis=1)
            for name in cls.CURVES
        }
        keys = pd.concat([target.keys for target in targets], ignore_index=True)
        return cls(first.run, first.epochs, keys, **curves)

    def mean_over_seeds(self) -> Targets:
        """One column per role, with every curve averaged over the seeds; the seed is null."""
        roles = self.keys["role"].to_numpy()
        distinct = list(dict.fromkeys(roles))

        def mean(values: np.ndarray) -> np.ndarray:
            """Mean over the seeds of values [..., targets]; NaN only for a role that has a NaN."""
            return np.stack([values[..., roles == role].mean(-1) for role in distinct], axis=-1)

        keys = self.keys.drop_duplicates("role").assign(
            seed=pd.array([pd.NA] * len(distinct), dtype="Int64"),
            count=np.rint(mean(self.keys["count"].to_numpy())).astype(int),
        )
        curves = {name: mean(getattr(self, name)) for name in self.CURVES}
        return Targets(self.run, self.epochs, keys.reset_index(drop=True), **curves)

    def measured(self, thresholds: Thresholds) -> dict[tuple[str, str], Memorisation]:
        optimal = self.keys["optimal_loss"].to_numpy()
        return every_measure(self.loss, self.wrong, optimal, self.losses_without, thresholds)

    @property
    def losses_without(self) -> dict[str, np.ndarray]:
        return {"retraining": self.without, "same-frequency": self.stand_in}


@reads(with_traces=[traces.read], with_datasets=[STRINGS], without_traces=[traces.read])
@makes(TARGET_SCORES, AGREEMENT)
def target_tables(
    with_traces: Sequence[Trace],
    with_datasets: Sequence[pd.DataFrame],
    without_traces: Sequence[Trace],
    start: Start,
    loss_threshold: float,
    accuracy_threshold: float,
    stand_in_gap: float = GAP,
) -> dict[str, pd.DataFrame]:
    """Exact and approximate memorisation of the targets of one model, language and size.

    There are rows for every seed, and rows with a null seed. For the latter, losses are averaged
    over the seeds first, and then the start is determined; the start of a mean curve is not the
    mean of the starts.

    Parameters
    ----------
    with_traces : variants with-s0, with-s1, ..., all seeds
    with_datasets : tables `strings`, in the order of `with_traces`
    without_traces : variants without-s0, ..., all seeds, in any order
    start, loss_threshold, accuracy_threshold, stand_in_gap : see `memorisation_tables`

    Raises `UserError` if the run without some target is missing, or if runs and datasets do not fit
    together.
    """
    without = {(trace.run["seed"], role_of(trace)): trace for trace in without_traces}
    targets = Targets.stack(
        [target_curves(*run, without, stand_in_gap) for run in paired(with_traces, with_datasets)]
    )
    thresholds = Thresholds(start, loss_threshold, accuracy_threshold, stand_in_gap)
    measured = targets.measured(thresholds)
    mean, by_seed = targets.mean_over_seeds(), score_rows(targets, measured)
    of_mean = score_rows(mean, mean.measured(thresholds))
    return {
        "target_scores": pd.concat(
            [
                by_seed.assign(expected_score=np.nan),
                of_mean.assign(expected_score=expected_scores(by_seed, of_mean)),
            ],
            ignore_index=True,
        ),
        "agreement": agreement_rows(targets, measured),
    }


def expected_scores(by_seed: pd.DataFrame, of_mean: pd.DataFrame) -> np.ndarray:
    """Expected scores float[rows of `of_mean`]: the mean over the seeds of their scores.

    NaN where a seed has no score. The expectation over datasets is taken of the scores, and not of
    the losses that scores are made from.

    Source: section 3.1, the expectations below equations 1 and 2.
    """
    keys = ["role", "measure", "evidence", "epoch"]
    means = by_seed.groupby(keys)["score"].agg(lambda scores: scores.mean(skipna=False))
    return means.reindex(pd.MultiIndex.from_frame(of_mean[keys])).to_numpy()


def target_curves(
    trace: Trace, strings: pd.DataFrame, without: dict[tuple[int, str], Trace], stand_in_gap: float
) -> Targets:
    seed, role = trace.run["seed"], role_of(trace)
    target = strings[(strings["role"] == role) & (strings["count"] > 0)]
    if len(target) != 1:
        raise UserError(
            f"{run_name(trace.run)}: its dataset must have one training string of role {role}; "
            f"it has {len(target)}"
        )
    if (seed, role) not in without:
        missing = run_name({**trace.run, "variant": without_target(role)})
        raise UserError(f"{run_name(trace.run)}: no trace of {missing} to compare it with")
    included, excluded = restrict(trace, target), restrict(without[seed, role], target)
    if not np.array_equal(included.epochs, excluded.epochs):
        raise UserError(
            f"{run_name(trace.run)} and {run_name(excluded.run)} were measured at different "
            "epochs; delete the older trace and rerun"
        )
    keys = target[["string_id", "count", "log_prob", "optimal_loss"]].assign(role=role)
    return Targets(
        run={key: trace.run[key] for key in ("model", "language", "size")},
        epochs=trace.epochs,
        keys=keys.assign(seed=pd.array([seed], dtype="Int64")),
        loss=included.loss,
        wrong=1 - included.accuracy,
        without=excluded.loss,
        stand_in=stand_in_losses(trace, strings, target, stand_in_gap)[1],
        test_loss=learning_table(trace, strings)[["test_loss"]].to_numpy(),
    )


def role_of(trace: Trace) -> str:
    return target_of(trace.run["variant"])


def score_rows(targets: Targets, measured: dict[tuple[str, str], Memorisation]) -> pd.DataFrame:
    n_epochs, n_targets = targets.loss.shape
    per_target = targets.keys.loc[targets.keys.index.repeat(n_epochs)].reset_index(drop=True)
    parts = []
    for (measure, evidence), result in measured.items():
        without = np.full_like(targets.loss, np.nan)
        broken = np.full(n_targets, np.nan)
        if evidence in targets.losses_without:
            without = targets.losses_without[evidence]
            broken = lemma_assumption_broken(targets.loss, without)[0]
        parts.append(
            per_target.assign(
                **targets.run,
                measure=measure,
                evidence=evidence,
                epoch=np.tile(targets.epochs, n_targets),
                loss=targets.loss.T.ravel(),
                loss_without=without.T.ravel(),
                threshold=result.threshold.T.ravel(),
                score=result.score.T.ravel(),
                start=epoch_of(result.start, targets.epochs).repeat(n_epochs),
                test_loss=targets.test_loss.T.ravel(),
                assumption_broken=broken.repeat(n_epochs),
            )
        )
    return pd.concat(parts, ignore_index=True)


def agreement_rows(targets: Targets, measured: dict[tuple[str, str], Memorisation]) -> pd.DataFrame:
    parts = []
    for (measure, evidence), exactly in CHEAPER.items():
        cheap, exact = measured[measure, evidence], measured[exactly]
        parts.append(
            targets.keys[["seed", "role", "string_id"]].assign(
                **targets.run,
                measure=measure,
                evidence=evidence,
                threshold_error=(cheap.threshold - exact.threshold).mean(axis=0),
                start_error=epoch_of(cheap.start, targets.epochs)
                - epoch_of(exact.start, targets.epochs),
                score_error=np.abs(cheap.score - exact.score).mean(axis=0),
                same_verdict=np.where(
                    cheap.is_known, (cheap.memorised == exact.memorised).mean(axis=0), np.nan
                ),
            )
        )
    return pd.concat(parts, ignore_index=True)
