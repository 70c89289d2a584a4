"""Whether metrics of unlearning tell what models were trained on, and whether this lasts.

What every model was trained on is known: all forget strings, an eighth of them, or none. A metric
gives a number for every model. A model is called trained on the forget strings if its number is
among the largest of those of retrained models, at a level of 5 %.

Source: OpenUnlearning (Dorna et al., 2025), section 4: a metric is faithful if it separates models
with a knowledge from models without, and robust if relearning and rounding of weights do not change
what it says. There, what unlearned models know is inferred; here, all models of `auc`, `dose` and
`kept` are trainings whose strings are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from palimpsest.datasets.choices import in_tokens_of_a_model
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.making import makes, reads
from palimpsest.statistics import (
    CONFIDENCE,
    DECIMALS,
    NO_INTERVAL,
    Interval,
    clopper_pearson,
    is_constant,
    rank_association,
    student,
    with_exact_ties,
)
from palimpsest.unlearning.attacks.confidence import logit_scaled_confidence
from palimpsest.unlearning.attacks.kolmogorov import ks_p_value
from palimpsest.unlearning.attacks.membership import auc
from palimpsest.unlearning.attacks.permutation import against_chance
from palimpsest.unlearning.evaluate.metrics import (
    Measured,
    mean_of_others,
    of_tokens,
    of_traces,
    rows_of_predictions,
)
from palimpsest.unlearning.evaluate.placebos import placebos
from palimpsest.unlearning.evaluate.predictions import Predictions, TokenScores
from palimpsest.unlearning.evaluate.relearning import tried
from palimpsest.unlearning.evaluate.samples import Problem
from palimpsest.unlearning.interventions import TRACED
from palimpsest.unlearning.judging.parts import EIGHTH, SECOND, every
from palimpsest.unlearning.kinds import JUDGED, PROBED
from palimpsest.unlearning.run.setups import FULL, NONE, RETRAIN, Setup

AS_IS, ROUNDED, RELEARNED, PATCHED = "unlearning", "4-bit", "relearning", "patching"  # stages
LEVEL = 1 - CONFIDENCE
SEED = 0  # of the models that are drawn for a comparison
STUDIES = 40  # comparisons of a few models with retrained models, in a problem
LOSS, RELEARNED_LOSS, QUALITY = "loss", "relearned_loss", "forgetting_quality"
DOSES = {RETRAIN: 0.0, TRACED: 1 / EIGHTH, NONE: 1.0}  # share of the forget strings in training
AUC, CALLED, DOSE, STUDY = "auc", "called", "dose", "study"
KEPT, RETURNED, UNDONE = "kept", "returned", "undone_patched"
AFTER = {"4_bit": ROUNDED, "relearned": RELEARNED, "patched": PATCHED}
SHARES = (CALLED, STUDY, *(f"{kind}_{name}" for kind in (KEPT, RETURNED) for name in AFTER))

Values = dict[str, np.ndarray]  # of a metric, by its name: float[models]


@dataclass(frozen=True)
class Outcome:
    """A statistic in one problem, and on placebos; `n` models or comparisons are behind it."""

    metric: str
    statistic: str
    method: str
    value: float
    n: int
    placebo: float = np.nan
    n_placebo: int = 0


@reads(probed=[PROBED], datasets=[STRINGS])
@makes(JUDGED)
def judged(
    probed: Sequence[pd.DataFrame],
    datasets: Sequence[pd.DataFrame],
    *,
    names: Sequence[str],
    study: int,
    confidence: str,
    thresholds: str,
    delta: float,
    bin_width: float,
) -> pd.DataFrame:
    """The table `unlearning_judged` of one model and language.

    Parameters
    ----------
    probed : of every problem and, within it, of every name in `names`
    datasets : one for each problem
    names : the kinds of models: none, traced and retrain, and methods
    study : number of models of each kind in a comparison of some models with retrained models
    confidence, thresholds, delta, bin_width : those of the forgetting quality, see `Rules`
    """

    def quality_p(*nll: np.ndarray, n_tokens: np.ndarray) -> float:
        samples = (logit_scaled_confidence(each, n_tokens, confidence) for each in nll)
        return against_chance(*samples, delta, thresholds, bin_width).quality_p

    outcomes = []
    for place, strings in enumerate(datasets):
        first = place * len(names)
        tables = {name: probed[first + number] for number, name in enumerate(names)}
        world = World.of(tables, strings)
        chance = np.random.default_rng([SEED, place])
        outcomes += [*world.outcomes(), *world.studies(study, quality_p, chance)]
        keys = world.problem.keys
    return summarised(outcomes, {key: keys[key] for key in ("model", "language", "size")})


@dataclass(frozen=True)
class World:
    """The models of a problem, by their kind and stage, and the strings that they are judged by.

    The strings to forget are those of the split forget; `with_forget` makes others take this place.
    No string of a set is among the test strings with which it is compared.
    """

    problem: Problem
    models: dict[str, dict[str, Predictions]]
    placebos: np.ndarray

    @classmethod
    def of(cls, tables: dict[str, pd.DataFrame], strings: pd.DataFrame) -> World:
        """From the tables `unlearning_probed` by name, and the dataset."""
        models = {name: by_stage(table, strings) for name, table in tables.items()}
        originals, retrained = models[NONE][AS_IS], models[RETRAIN][AS_IS]
        setup = Setup(FULL, len(originals.nll), 1, len(originals.nll))
        strings = in_tokens_of_a_model(strings, originals.n_tokens)
        problem = Problem(strings, originals, retrained, (setup,))
        chosen = np.zeros(len(strings), dtype=bool)
        chosen[placebos(problem)] = True
        return cls(problem, models, chosen)

    def with_forget(self, chosen: np.ndarray) -> Problem:
        """The problem with the strings bool[strings] in the place of the forget strings."""
        split = self.problem.strings["split"].mask(self.problem.forget | self.placebos, "other")
        count = self.problem.strings["count"].mask(chosen, 1)
        strings = self.problem.strings.assign(split=split.mask(chosen, "forget"), count=count)
        return replace(self.problem, strings=strings)

    def values(
        self, problem: Problem, name: str, stage: str, of_retrained: str | None = None
    ) -> Values:
        """What every metric says of some models; more means that they know more.

        The losses of retrained models that calibrate a score are those of all others, in the same
        stage or another one.
        """
        predictions = self.models[name][stage]
        retrained = self.models[RETRAIN][of_retrained or stage].loss
        others = mean_of_others(retrained) if name == RETRAIN else retrained.mean(axis=0)
        return {
            LOSS: -predictions.loss[:, problem.forget].mean(axis=1),
            **of_traces(problem, predictions, others),
            **of_tokens(problem, predictions),
        }

    # Single models

    def outcomes(self) -> Iterator[Outcome]:
        """Statistics of metrics that are a number for each model."""
        yield from self._told()
        for stage in (ROUNDED, PATCHED):
            yield from self._lasting(self.with_forget(self.problem.forget), stage)
        untaught = self.problem.forget & ~every(SECOND, self.problem.forget)
        if untaught.any():
            yield from self._lasting(self.with_forget(untaught), RELEARNED)
        yield from self._relearned_loss()
        yield from self._undone()

    def _told(self) -> Iterator[Outcome]:
        sets = [self.with_forget(self.problem.forget), self.with_forget(self.placebos)]
        found = [{name: self.values(each, name, AS_IS) for name in self.models} for each in sets]
        for metric in found[0][NONE]:
            of_forget, of_placebo = ({n: v[metric] for n, v in each.items()} for each in found)
            yield from _pairs(metric, of_forget, of_placebo)
            dose, on_placebo = (_dose(each) for each in (of_forget, of_placebo))
            n = sum(len(_judged(of_forget, name)) for name in DOSES)
            yield Outcome(metric, DOSE, TRACED, dose, n, on_placebo, n)

    def _relearned_loss(self) -> Iterator[Outcome]:
        """How low the loss is on the strings that were learned again. Placebos were not."""
        taught = every(SECOND, self.problem.forget)
        values = {
            name: -stages[RELEARNED].loss[:, taught].mean(axis=1)
            for name, stages in self.models.items()
        }
        yield from _pairs(RELEARNED_LOSS, values, None)

    def _undone(self) -> Iterator[Outcome]:
        """Which share of what a method raised the loss of the forget strings by patching undoes."""

        def mean(name: str, stage: str) -> float:
            return self.models[name][stage].loss[:, self.problem.forget].mean()

        for name in self.models:
            rise = mean(name, AS_IS) - mean(NONE, AS_IS)
            if name not in DOSES and rise > 0:
                undone = (mean(name, AS_IS) - mean(name, PATCHED)) / rise
                yield Outcome(LOSS, UNDONE, name, undone, len(self.models[name][AS_IS].nll))

    def _lasting(self, problem: Problem, stage: str) -> Iterator[Outcome]:
        """Whether what is said of the models is said after a change of the models, too.

        All models are changed, the retrained ones with which they are compared as well. Patched
        models are compared with retrained models as they are: the lower layers of an original fit
        the models that came from it, and no others, so that patched retrained models predict
        nothing.
        """
        reference = AS_IS if stage == PATCHED else stage
        suffix = next(name for name, each in AFTER.items() if each == stage)
        before = {name: self.values(problem, name, AS_IS) for name in self.models}
        after = {
            name: self.values(problem, name, reference if name == RETRAIN else stage, reference)
            for name in self.models
        }
        for metric in before[NONE]:
            called = {}
            for name in self.models:
                pair = [
                    {n: v[metric] for n, v in each.items() if n in (name, RETRAIN)}
                    for each in (before, after)
                ]
                called[name] = [_called(_judged(each, name), _reference(each)) for each in pair]
            by_chance = {then: _share(called[RETRAIN], then) for then in (True, False)}
            for name in self.models:
                if name in (TRACED, RETRAIN):
                    continue
                first = name == NONE
                value, n = _share(called[name], first)
                if n:
                    statistic = f"{KEPT if first else RETURNED}_{suffix}"
                    chance = (np.nan, 0) if stage == PATCHED else by_chance[first]
                    yield Outcome(metric, statistic, name, value, n, *chance)

    # Comparisons of a few models with retrained models

    def studies(
        self, size: int, quality_p: Callable[..., float], chance: np.random.Generator
    ) -> Iterator[Outcome]:
        """How often `size` models are told from retrained models by the table of metrics.

        Of `retrain`, both sides are retrained models with random labels, so the share is that of
        false alarms. Models are drawn for each comparison; `n` is the number of comparisons that
        share no model.
        """
        sets = [self.with_forget(self.problem.forget), self.with_forget(self.placebos)]
        found = [{n: self.values(each, n, AS_IS) for n in DOSES} for each in sets]
        for name in DOSES:
            told = [{}, {}]
            for _ in range(STUDIES):
                places = _draw(chance, self.models, name, size)
                for problem, values, counts in zip(sets, found, told, strict=True):
                    for metric, is_told in self._verdicts(problem, values, name, places, quality_p):
                        counts.setdefault(metric, []).append(is_told)
            n = len(self.models[name][AS_IS].nll) // (2 * size if name == RETRAIN else size)
            for metric, verdicts in told[0].items():
                value, placebo = np.mean(verdicts), np.mean(told[1][metric])
                yield Outcome(metric, STUDY, name, value, n, placebo, n)

    def _verdicts(
        self,
        problem: Problem,
        values: dict[str, Values],
        name: str,
        places: tuple[np.ndarray, np.ndarray],
        quality_p: Callable[..., float],
    ) -> Iterator[tuple[str, bool]]:
        one, other = (self.models[n][AS_IS] for n in (name, RETRAIN))
        loss = one.loss[places[0]], other.loss[places[1]]
        samples = [each[:, problem.forget] for each in loss]
        log_p = np.log(ks_p_value(*samples))
        measured, reference = (
            {metric: each[chosen] for metric, each in values[n].items()}
            for n, chosen in zip((name, RETRAIN), places, strict=True)
        )
        pairs = np.arange(len(places[0]))
        few = Measured(pairs, measured, log_p, tried(*np.empty((2, 0))))
        for metric, row in rows_of_predictions(few, reference, NONE):
            yield metric, bool(row["differs"])
        n_tokens = one.n_tokens[problem.forget]
        yield QUALITY, quality_p(*(each * n_tokens for each in samples), n_tokens=n_tokens) <= LEVEL


def _judged(values: Values, name: str) -> np.ndarray:
    """The values of the models of a kind; of retrained models, of those that are no reference."""
    return values[name][len(values[name]) // 2 :] if name == RETRAIN else values[name]


def _reference(values: Values) -> np.ndarray:
    """The values of the first half of the retrained models, with which others are compared."""
    return values[RETRAIN][: len(values[RETRAIN]) // 2]


def _called(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """bool[models]: whether a value is among the largest of the reference's, at `LEVEL`.

    If a model is like those of the reference, it is called so with a probability of at most
    `LEVEL`, because its rank among them is then as probable as any other. Equal values count
    against it.
    """
    ordered = with_exact_ties(np.concatenate([values, reference]))
    values, reference = ordered[: len(values)], np.sort(ordered[len(values) :])
    n_as_large = len(reference) - np.searchsorted(reference, values)
    return (1 + n_as_large) / (1 + len(reference)) <= LEVEL


def _pairs(metric: str, of_forget: Values, of_placebo: Values | None) -> Iterator[Outcome]:
    """How every kind of models compares with retrained models, by the values of one metric."""
    for name in of_forget:
        for statistic, function in ((AUC, _auc), (CALLED, _share_called)):
            if (statistic, name) == (AUC, RETRAIN):
                continue
            value, n = function(of_forget, name), len(_judged(of_forget, name))
            placebo = np.nan if of_placebo is None else function(of_placebo, name)
            yield Outcome(metric, statistic, name, value, n, placebo, n)


def _auc(values: Values, name: str) -> float:
    return float(auc(values[name][None], _judged(values, RETRAIN)[None])[0])


def _share_called(values: Values, name: str) -> float:
    return float(_called(_judged(values, name), _reference(values)).mean())


def _dose(values: Values) -> float:
    """Somers' D of the values given the share of the forget strings that was trained on."""
    parts = {name: _judged(values, name) for name in DOSES}
    doses = np.concatenate([np.full(len(part), DOSES[name]) for name, part in parts.items()])
    return float(rank_association(doses, with_exact_ties(np.concatenate([*parts.values()]))))


def _share(called: Sequence[np.ndarray], first: bool) -> tuple[float, int]:
    """Of the models that are first called so, or not, the share called so then; their number."""
    before, after = called
    chosen = after[before == first]
    return (float(chosen.mean()), len(chosen)) if len(chosen) else (np.nan, 0)


def _draw(
    chance: np.random.Generator, models: dict, name: str, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Places int[size] of models of a kind, and of retrained models; no model is in both."""
    n_retrained = len(models[RETRAIN][AS_IS].nll)
    if name == RETRAIN:
        drawn = chance.permutation(n_retrained)[: 2 * size]
        return drawn[:size], drawn[size:]
    n = len(models[name][AS_IS].nll)
    return chance.permutation(n)[:size], chance.permutation(n_retrained)[:size]


def summarised(outcomes: Sequence[Outcome], keys: dict) -> pd.DataFrame:
    """The table `unlearning_judged`: means over the problems, with their intervals."""
    frame = pd.DataFrame([vars(one) for one in outcomes])
    rows = []
    order = ["metric", "statistic", "method"]
    for (metric, statistic, method), found in frame.groupby(order, sort=False):
        estimate = over_problems(found["value"], found["n"], statistic)
        on_placebos = over_problems(found["placebo"], found["n_placebo"], statistic)
        placebo = dict(zip(("placebo", "placebo_lower", "placebo_upper"), on_placebos, strict=True))
        if np.isnan(estimate.mean):
            continue
        rows.append(
            {
                **keys,
                "metric": metric,
                "statistic": statistic,
                "method": method,
                "n_compared": int(found["n"][found["value"].notna()].sum()),
                "n_problems": int(found["value"].notna().sum()),
                **estimate.columns("estimate"),
                **placebo,
            }
        )
    return pd.DataFrame(rows, columns=JUDGED.names)


def over_problems(values: pd.Series, n: pd.Series, statistic: str) -> Interval:
    """The mean over the problems in which a statistic is defined, with its interval.

    The interval is Student's over the problems, which differ in their strings and in all models.
    That of a share of models is at least as wide as Clopper and Pearson's for as many independent
    trials. That of a share of comparisons is theirs if all problems agree, for as many comparisons
    as share no model; otherwise, comparisons that share models also say something. Other statistics
    that are alike in all problems have no interval, and neither has anything in one problem.
    """
    known = values.notna()
    values, n_trials = values[known].to_numpy(dtype=float), n[known].sum()
    if len(values) < 2:
        return NO_INTERVAL._replace(mean=values.mean() if len(values) else np.nan)
    found, alike = student(values, DECIMALS), is_constant(values)
    if statistic in SHARES and (alike or statistic != STUDY):
        lower, upper = clopper_pearson(found.mean, n_trials)
        return Interval(
            found.mean, max(0.0, min(found.lower, lower)), min(1.0, max(found.upper, upper))
        )
    if alike:
        return NO_INTERVAL._replace(mean=found.mean)
    if statistic == UNDONE:
        return found
    least = -1.0 if statistic == DOSE else 0.0
    return Interval(found.mean, max(least, found.lower), min(1.0, found.upper))


def by_stage(table: pd.DataFrame, strings: pd.DataFrame) -> dict[str, Predictions]:
    """The predictions of one kind of models in each stage, from a table `unlearning_probed`.

    Raises `UserError` if the table is not of the dataset's strings, in their order.
    """
    names, found = strings["string_id"].to_numpy(dtype=object), {}
    for stage, rows in table.groupby("stage", sort=False):
        rows = rows.sort_values("origin", kind="stable")
        n_models = rows["origin"].nunique()
        if not np.array_equal(rows["string_id"].to_numpy(dtype=object), np.tile(names, n_models)):
            keys = strings.iloc[0]
            raise UserError(
                f"unlearning/judge: the models of {keys['language']}, seed {keys['seed']}, were "
                "measured on another dataset; delete results/unlearning/*/*/*/*/judge and rerun"
            )
        of_models = {
            name: rows[name].to_numpy().reshape(n_models, -1)
            for name in ("nll", "n_correct", "rank_sum", "min_k", "min_k_plus", "n_last_correct")
        }
        tokens = TokenScores(
            *(of_models.pop(name) for name in ("min_k", "min_k_plus", "n_last_correct"))
        )
        found[stage] = Predictions(
            problem={key: rows[key].iloc[0] for key in ("model", "language", "size", "seed")},
            what=rows["method"].iloc[0],
            files={(int(origin), 0): "" for origin in rows["origin"].unique()},
            epochs=None,
            string_ids=names,
            n_tokens=rows["n_tokens"].to_numpy()[: len(names)],
            tokens=tokens,
            **of_models,
        )
    return found
