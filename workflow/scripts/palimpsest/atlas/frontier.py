"""The frontier: how well every contender agrees with exact retraining, and what it costs.

The ceiling of a statistic is that of retraining once more, with other initial weights and another
order of the strings. The placebo is the same statistic where there is nothing to find: against the
influence on strings that no training saw, or against exact values under the names of other strings.

Source of the linear datamodelling score: Park et al., TRAK (2023), section 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest import manifests, token_losses, traces
from palimpsest.atlas import kinds
from palimpsest.atlas.agreement import SHUFFLE_SEED, Agreement, MeanAgreement
from palimpsest.atlas.contenders import (
    BY_CHANGE,
    CURVE,
    GRADIENTS_AT_END,
    ITSELF,
    LANGUAGE,
    LAST,
    OTHER_SEEDS,
    RETRAINING,
    STRINGS_ALONE,
    UNSEEN,
    WITH_STARTS,
    amounts_of,
    effects_of,
    said_of,
    seconds_by_measure,
)
from palimpsest.atlas.kinds import AGAIN, AMOUNT, APART, CROSS, HALVES, RANK, SINGLE, START
from palimpsest.atlas.kinds import UNSEEN as UNSEEN_HALVES
from palimpsest.atlas.passes import Passes
from palimpsest.atlas.truth import RUN, rows_of_run
from palimpsest.audit.membership import ATTACKS
from palimpsest.corpora.files import read_grammar
from palimpsest.datasets.kinds import STRINGS
from palimpsest.making import makes, reads
from palimpsest.memorisation.all_measures import Thresholds
from palimpsest.memorisation.approximation import GAP
from palimpsest.memorisation.measures import Start
from palimpsest.memorisation.runs import paired
from palimpsest.token_losses import TokenLosses
from palimpsest.traces import Trace

NEVER = np.inf  # a string that never starts ranks last
MOST = 0.25  # share of the strings that are found or missed, those that lose most
N_SHUFFLES = 200
RESAMPLES, BOOTSTRAP_SEED = 400, 0
ENDS = [0.025, 0.975]
KEYS = ["measure", "needs", "question", "statistic"]


class Compared(NamedTuple):
    """A measure against exact retraining, and against what it cannot know."""

    measure: str
    needs: str
    question: str
    found: Agreement | MeanAgreement
    placebo: Agreement | MeanAgreement

    @property
    def key(self) -> tuple[str, str, str]:
        return self.measure, self.needs, self.question


@reads(
    traces=[traces.read],
    datasets=[STRINGS],
    tokens=[token_losses.read],
    truth=kinds.TRUTH,
    influence=kinds.INFLUENCE,
    halves=kinds.HALF_RUNS,
    manifests=[manifests.read],
    removals_manifests=[manifests.read],
    gradient_scores=kinds.GRADIENT_SCORES,
    gradient_effects=kinds.GRADIENT_EFFECTS,
    gradient_costs=kinds.GRADIENT_COSTS,
    last_pass=kinds.LAST_PASS,
)
@makes(kinds.CONTENDERS, kinds.FRONTIER, kinds.ATLAS)
def frontier_tables(
    traces: Sequence[Trace],
    datasets: Sequence[pd.DataFrame],
    tokens: Sequence[TokenLosses],
    truth: pd.DataFrame,
    influence: pd.DataFrame,
    halves: pd.DataFrame,
    manifests: Sequence[dict],
    removals_manifests: Sequence[dict],
    start: Start,
    loss_threshold: float,
    accuracy_threshold: float,
    stand_in_gap: float = GAP,
    gradient_scores: pd.DataFrame | None = None,
    gradient_effects: pd.DataFrame | None = None,
    gradient_costs: pd.DataFrame | None = None,
    last_pass: pd.DataFrame | None = None,
    corpus: str | None = None,
) -> dict[str, pd.DataFrame]:
    """Every contender against exact retraining: what it says, for each run, and over all runs.

    Parameters
    ----------
    traces : one per seed: the run on all strings
    datasets, tokens, manifests : of the same runs, in their order
    truth, influence, halves : exact values of all the runs
    removals_manifests : of the trainings with removals, in the order of the runs
    start, ..., stand_in_gap : see `palimpsest.memorisation.all_measures.Thresholds`
    gradient_scores, gradient_effects, gradient_costs : of all runs; None without such measures
    last_pass : of all runs; None without what needs it
    corpus : path of the grammar of the language; None without effects that need it

    Raises `UserError` if the files are not of the same runs.
    """
    thresholds = Thresholds(start, loss_threshold, accuracy_threshold, stand_in_gap)
    grammar = None if corpus is None else read_grammar(corpus)
    said, rows, runs = [], [], []
    for (trace, strings), of_tokens, *costs in zip(
        paired(traces, datasets), tokens, manifests, removals_manifests, strict=True
    ):
        about = {name: trace.run[name] for name in RUN}
        exact = [rows_of_run(table, about) for table in (truth, influence, halves)]
        names = exact[0]["string_id"].to_numpy(dtype=object)
        unseen = np.setdiff1d(exact[2]["string_id"].unique(), names)
        seconds, passes = seconds_of(*costs), None
        if last_pass is not None:
            passes = Passes.of(rows_of_run(last_pass, about), strings, datasets)
            seconds |= seconds_of_passes(passes, seconds["training"])
        contenders, effects = said_of(
            trace, strings, of_tokens, names, unseen, thresholds, passes, grammar
        )
        if gradient_scores is not None:
            amounts = amounts_of(rows_of_run(gradient_scores, about), names)
            contenders = pd.concat([contenders, amounts], ignore_index=True)
            more = effects_of(rows_of_run(gradient_effects, about), names)
            effects = pd.concat([effects, more], ignore_index=True)
            seconds |= seconds_by_measure(rows_of_run(gradient_costs, about))
        runs.append(list(compared(*exact, contenders, effects)))
        rows.append(rows_of(runs[-1], seconds).assign(**about))
        said.append(contenders.assign(**about))
    frontier = pd.concat(rows, ignore_index=True)
    return {
        "contenders": pd.concat(said, ignore_index=True),
        "frontier": frontier,
        "atlas": over_runs(frontier, runs),
    }


def seconds_of(manifest: dict, removals: dict) -> dict[str, float]:
    """Core-seconds by the names in the column `needs`, and of the model's `training`.

    `manifest` is that of the run on all strings, and `removals` that of all its removals.
    """

    def core_seconds(of: dict, key: str) -> float:
        return of[key] * of["hardware"]["threads"]

    training = core_seconds(manifest, "training_seconds")
    curve = core_seconds(manifest, "wall_time_seconds") - training
    recipe = manifest["configuration"]["recipe"]
    once = curve / (1 + math.ceil(recipe["epochs"] / recipe["evaluate_every"]))
    return {
        "training": training,
        STRINGS_ALONE: 0.0,
        LAST: once,
        LANGUAGE: once,
        UNSEEN: curve,
        CURVE: curve,
        RETRAINING: core_seconds(removals, "wall_time_seconds"),
    }


def seconds_of_passes(passes: Passes, training: float) -> dict[str, float]:
    """Core-seconds of one pass, and of a pass of each model with the training of the references.

    Of attacks with changed strings, by their names: those of both passes.
    """
    changed = {name: ATTACKS[name].needs[0] for name in BY_CHANGE}
    return {
        GRADIENTS_AT_END: passes.seconds.mean(),
        OTHER_SEEDS: passes.seconds.sum() + passes.n_references * training,
        **{name: passes.seconds_of_changed(version) for name, version in changed.items()},
    }


def rows_of(pairs: Sequence[Compared], seconds: Mapping[str, float]) -> pd.DataFrame:
    """The rows of the table `frontier` of one run, without the columns of the run."""
    found = [(pair, pair.found.statistics(), pair.placebo.statistics()) for pair in pairs]
    ceilings = {pair.question: values for pair, values, _ in found if pair.measure == AGAIN}
    rows = [
        {
            "measure": pair.measure,
            "needs": pair.needs,
            "question": pair.question,
            "statistic": statistic,
            "value": value[0],
            "ceiling": ceilings[pair.question][statistic][0],
            "placebo": placebos.get(statistic, [np.nan])[0],
            "n_strings": pair.found.n_strings,
            "seconds": (extra := seconds.get(pair.measure, seconds.get(pair.needs))),
            "cost": 1 + extra / seconds["training"],
        }
        for pair, values, placebos in found
        for statistic, value in values.items()
    ]
    return pd.DataFrame(rows)


def over_runs(frontier: pd.DataFrame, runs: Sequence[Sequence[Compared]]) -> pd.DataFrame:
    """The means over the seeds of the table `frontier`, with intervals over strings and seeds."""
    means = frontier.groupby(KEYS, sort=False).agg(
        value=("value", _mean),
        ceiling=("ceiling", _mean),
        placebo=("placebo", _mean),
        n_seeds=("value", "count"),
        cost=("cost", _mean),
    )
    cell = frontier[["model", "language", "size"]].iloc[0]
    return means.reset_index().assign(**cell).merge(intervals(runs), on=KEYS)


def compared(
    truth: pd.DataFrame,
    influence: pd.DataFrame,
    halves: pd.DataFrame,
    contenders: pd.DataFrame,
    effects: pd.DataFrame,
) -> Iterator[Compared]:
    """Every contender against exact retraining, by every question that it answers.

    The first of a question is retraining once more.
    """
    yield from _amounts(truth, contenders)
    yield from _starts(truth, contenders)
    yield from _others(influence, effects)
    if len(halves):
        trained = halves["string_id"].isin(influence["removed"])
        yield from _of_halves(influence, halves[trained], effects)
        yield from _of_unseen(halves[trained], halves[~trained], effects)


def intervals(runs: Sequence[Sequence[Compared]]) -> pd.DataFrame:
    """The 95 % intervals of the means over runs, and of their shares of the ceiling.

    Seeds are drawn with replacement, and for each of them its strings; of matrices, rows and
    columns. All measures have the same draws. `runs` are those of `compared`, for each seed. A
    statistic that is undefined in a run, or in a draw, has no interval.

    The share is the value over the root of the ceiling, which is the correlation with what two
    retrainings have in common (corrected for attenuation).
    """
    chance = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = chance.integers(len(runs), size=(len(runs), RESAMPLES))
    resampled, values = {}, {}
    for pairs in zip(*runs, strict=True):
        of_seeds = [
            pair.found.statistics(np.random.default_rng([BOOTSTRAP_SEED, place]), RESAMPLES)
            for place, pair in enumerate(pairs)
        ]
        whole = [pair.found.statistics() for pair in pairs]
        for statistic in of_seeds[0]:
            found = np.array([of_seed[statistic] for of_seed in of_seeds])
            resampled[*pairs[0].key, statistic] = found[drawn, np.arange(RESAMPLES)].mean(axis=0)
            values[*pairs[0].key, statistic] = np.mean([of[statistic][0] for of in whole])
    rows = []
    for (measure, needs, question, statistic), draws in resampled.items():
        key = AGAIN, RETRAINING, question, statistic
        row = {"measure": measure, "needs": needs, "question": question, "statistic": statistic}
        row["lower"], row["upper"] = _ends(draws)
        share = row["share_lower"] = row["share_upper"] = np.nan
        if statistic == RANK and values[key] > 0 and (resampled[key] > 0).all():
            share = values[measure, needs, question, statistic] / math.sqrt(values[key])
            row["share_lower"], row["share_upper"] = _ends(draws / np.sqrt(resampled[key]))
        rows.append({**row, "share_of_ceiling": share})
    return pd.DataFrame(rows)


def _ends(draws: np.ndarray) -> tuple[float, float]:
    if np.isnan(draws).any():
        return np.nan, np.nan
    lower, upper = np.quantile(draws, ENDS)
    return float(lower), float(upper)


def _mean(values: pd.Series) -> float:
    """The mean; NaN if a value is undefined, because its value often decides so."""
    return float(values.mean(skipna=False))


def _amounts(truth: pd.DataFrame, contenders: pd.DataFrame) -> Iterator[Compared]:
    """Which strings lose most without themselves, and which are the quarter that loses most."""
    exact, again, placebo = (
        truth[name].to_numpy(dtype=float)
        for name in ("self_influence", "self_influence_again", "placebo_influence")
    )
    most = exact > np.quantile(exact, 1 - MOST)
    amounts = _values(truth, contenders, "amount")
    for measure, needs, amount in ((AGAIN, RETRAINING, again), *amounts):
        found = Agreement(amount, exact, most)
        yield Compared(measure, needs, AMOUNT, found, Agreement(amount, placebo))


def _starts(truth: pd.DataFrame, contenders: pd.DataFrame) -> Iterator[Compared]:
    """At which epoch memorisation starts."""
    exact, again = (truth[name].fillna(NEVER).to_numpy(float) for name in ("start", "start_again"))
    known = contenders[contenders["measure"].isin(WITH_STARTS)]
    # A string to which a measure does not apply has neither an amount nor a start.
    start = known["measured_start"].fillna(NEVER).mask(known["amount"].isna())
    starts = _values(truth, known.assign(start=start), "start")
    for measure, needs, start in ((AGAIN, RETRAINING, again), *starts):
        placebo = Agreement(start, exact, n_shuffles=N_SHUFFLES)
        yield Compared(measure, needs, START, Agreement(start, exact), placebo)


def _others(influence: pd.DataFrame, effects: pd.DataFrame) -> Iterator[Compared]:
    """Which other string lowered the loss of a string: a correlation over the removed strings."""
    exact, again = (
        influence.pivot(index="removed", columns="string_id", values=name)
        for name in ("influence", "influence_again")
    )
    itself = np.eye(len(exact), dtype=bool)
    truth = np.where(itself, np.nan, exact)
    shuffled = np.where(itself, np.nan, _shuffled(exact))
    others = effects[effects["measure"] != ITSELF]
    for measure, needs, effect in ((AGAIN, RETRAINING, again), *_matrices(others)):
        given = effect.reindex(index=exact.index, columns=exact.columns).to_numpy(float)
        found, placebo = (MeanAgreement(given, side) for side in (truth, shuffled))
        yield Compared(measure, needs, CROSS, found, placebo)


def _of_halves(
    influence: pd.DataFrame, halves: pd.DataFrame, effects: pd.DataFrame
) -> Iterator[Compared]:
    """The linear datamodelling score: minus the loss on halves, by the sum over what they keep.

    A string's own effect counts. In the score's source, the strings are test examples, which have
    none: see `_of_unseen`.
    """
    loss, again, kept = (
        halves.pivot(index="half", columns="string_id", values=name)
        for name in ("loss", "loss_again", "kept")
    )
    exact = influence.rename(columns={"influence": "effect"})
    effects = pd.concat([exact.assign(measure=SINGLE, needs=RETRAINING), effects])
    predictions = list(_predictions(kept, again, effects))
    sides = -loss.to_numpy(), -_shuffled(loss)
    for measure, needs, predicted in predictions:
        found, placebo = (MeanAgreement(predicted, of, together=2) for of in sides)
        yield Compared(measure, needs, HALVES, found, placebo)
    apart = kept.to_numpy(bool)
    for measure, needs, predicted in predictions:
        if measure != ITSELF:  # whose prediction is the same for all halves with the string
            found, placebo = (MeanAgreement(predicted, of, apart, 2) for of in sides)
            yield Compared(measure, needs, APART, found, placebo)


def _of_unseen(
    halves: pd.DataFrame, unseen: pd.DataFrame, effects: pd.DataFrame
) -> Iterator[Compared]:
    """The linear datamodelling score of strings that no training saw, as in the score's source.

    The strings are those of which every measure has the effects.
    """
    effects = effects[effects["measure"] != ITSELF]
    of_measures = (set(of) for _, of in effects.groupby("measure")["string_id"])
    known = set(unseen["string_id"]).intersection(*of_measures)
    unseen = unseen[unseen["string_id"].isin(known)]
    if unseen.empty:
        return
    loss, again = (
        unseen.pivot(index="half", columns="string_id", values=name)
        for name in ("loss", "loss_again")
    )
    kept = halves.pivot(index="half", columns="string_id", values="kept")
    sides = -loss.to_numpy(), -_shuffled(loss)
    for measure, needs, predicted in _predictions(kept, again, effects):
        found, placebo = (MeanAgreement(predicted, of, together=2) for of in sides)
        yield Compared(measure, needs, UNSEEN_HALVES, found, placebo)


def _predictions(
    kept: pd.DataFrame, again: pd.DataFrame, effects: pd.DataFrame
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Minus the loss float[halves, strings], by retraining once more and by every measure.

    That of a measure is the sum of the effects of the strings that a half has.
    """
    yield AGAIN, RETRAINING, -again.to_numpy()
    for measure, needs, effect in _matrices(effects):
        of_strings = effect.reindex(index=kept.columns, columns=again.columns)
        yield measure, needs, kept.to_numpy(float) @ of_strings.to_numpy(float)


def _values(
    truth: pd.DataFrame, contenders: pd.DataFrame, column: str
) -> Iterator[tuple[str, str, np.ndarray]]:
    """A column float[strings] of each contender, in the order of the strings of `truth`."""
    for (measure, needs), rows in contenders.groupby(["measure", "needs"], sort=False):
        values = truth["string_id"].map(rows.set_index("string_id")[column])
        yield measure, needs, values.to_numpy(dtype=float)


def _matrices(effects: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """The effects float[removed, measured] of each contender."""
    for (measure, needs), rows in effects.groupby(["measure", "needs"], sort=False):
        yield measure, needs, rows.pivot(index="removed", columns="string_id", values="effect")


def _shuffled(values: pd.DataFrame) -> np.ndarray:
    """The same columns, each in the place of another string."""
    order = np.random.default_rng(SHUFFLE_SEED).permutation(values.shape[1])
    shuffled = np.empty(values.shape)
    shuffled[:, order] = values.to_numpy()[:, np.roll(order, 1)]
    return shuffled
