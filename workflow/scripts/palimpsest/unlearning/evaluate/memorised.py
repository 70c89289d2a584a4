"""Whether unlearning removes memorisation: measures of memorisation on the forget strings."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest.unlearning.evaluate.placebos import measured_strings
from palimpsest.unlearning.evaluate.samples import Predictions, Problem, UnlearnedModels

LEVEL = 0.05  # share of retrained models that a threshold from retraining calls memorising
# Nats per token: a threshold of contextual memorisation that is not lower than that of
# counterfactual memorisation by more than this asks the same question once more.
SAME_THRESHOLD = 0.01


@dataclass(frozen=True)
class AppliedMeasure:
    """A measure of memorisation: its evidence, and the threshold float[strings] of each string.

    `answerable` is bool[strings]: whether the measure can answer for the string at all. With
    `of_accuracy`, the share of wrong tokens is compared with the threshold, and not the loss.
    """

    measure: str
    evidence: str
    threshold: np.ndarray
    answerable: np.ndarray
    of_accuracy: bool = False

    def columns(self, models: dict[str, Predictions]) -> dict:
        """Columns of the table for some strings; shares of some models, by the column's name."""
        return {
            "measure": self.measure,
            "evidence": self.evidence,
            "threshold": self.threshold,
            "answerable": self.answerable,
            **{name: self.memorised(some).mean(axis=0) for name, some in models.items()},
        }

    def memorised(self, predictions: Predictions) -> np.ndarray:
        """bool[models, strings]: whether a model memorises a string."""
        if self.of_accuracy:
            return 1 - predictions.n_correct / predictions.n_tokens < self.threshold
        return predictions.loss < self.threshold


def memorisation(
    problem: Problem,
    methods: Iterable[UnlearnedModels],
    retrained: Predictions,
    loss_threshold: float,
    accuracy_threshold: float,
) -> pd.DataFrame:
    """The table `unlearning_memorisation`: forget strings before and after unlearning.

    A model memorises a string if the string's loss in the final model is below a threshold; there
    is no start of memorisation. The thresholds:

    recollection : a constant. Answerable only for strings whose Bayes-optimal loss is above it: a
        model that learned the language perfectly would be below it on the others.
    counterfactual memorisation : the 5 % quantile of the retrained models' losses on the string, at
        the last epoch. So one retrained model in twenty is below it by construction, if there are
        19 or more; with n models fewer than that, it is one in n + 1.
    contextual memorisation : the lowest such quantile over the epochs. Answerable only for strings
        where it is lower than the threshold of counterfactual memorisation by more than 0.01 nats
        per token, because otherwise it is the same question.
    Bayes memorisation : the optimal loss of the language.

    The thresholds come from the first half of the retrained models. The column `retrained` is about
    the other half, the ideal, so it shows whether the level is kept. For every forget
    string, a placebo is measured, which no model was trained on. Its `after` should be like its
    `retrained`, retraining's own share of placebos. Its `before` may be larger, because the
    original models had more training strings.

    Parameters
    ----------
    problem : Problem
    methods : iterable of UnlearnedModels, from `Problem.methods`
    retrained : Predictions
        Predictions of the retrained models for `measured_strings`, at all epochs.
    loss_threshold : float, nats per token; recollection means a loss below this
    accuracy_threshold : float, share of right tokens; recollection by accuracy means above this

    Raises
    ------
    UserError
        If a model is missing, or if there is no placebo.

    Source: Learning Without Memorizing Considered Infeasible, section 3.1; the models are those of
    Are we making progress in unlearning?, section 4.
    """
    each = np.arange(problem.n_reference)
    curves = retrained.of(each)
    compared = []
    for kind, places in measured_strings(problem):
        there = pd.Index(curves.string_ids).get_indexer(problem.string_ids[places])
        applied = measures(
            problem.strings.iloc[places],
            curves.restricted(there).loss,
            loss_threshold,
            accuracy_threshold,
        )
        compared.append((kind, places, applied))
    ideal = problem.retrained.of(problem.n_reference + each)
    originals = problem.originals.of(np.unique(problem.stock.origins))
    parts = []
    for method in methods:
        after = method.of(problem.stock)
        for kind, places, applied in compared:
            models = {"before": originals, "after": after, "retrained": ideal}
            of_strings = {name: some.restricted(places) for name, some in models.items()}
            keys = {**problem.keys, "method": method.name, "string_role": kind}
            names = {"string_id": problem.string_ids[places]}
            parts += [pd.DataFrame({**keys, **names, **one.columns(of_strings)}) for one in applied]
    return pd.concat(parts, ignore_index=True)


def measures(
    strings: pd.DataFrame, loss: np.ndarray, loss_threshold: float, accuracy_threshold: float
) -> list[AppliedMeasure]:
    """Every measure for some strings.

    `strings` are rows of a table `strings`; `loss` is float[models, epochs, strings] of the
    retrained models.
    """
    optimal = strings["optimal_loss"].to_numpy(dtype=float)
    known = ~np.isnan(optimal)
    every = np.ones(len(strings), dtype=bool)
    hard = ~known | (optimal > loss_threshold)
    # A further value is below this quantile of n values with a probability of 5 %, if n is 19 or
    # more. Of fewer values, it is the lowest one, and the probability is 1 / (n + 1).
    level = np.quantile(loss, LEVEL, axis=0, method="weibull")
    last, lowest = level[-1], level.min(axis=0)
    constant, wrong = np.full(len(strings), loss_threshold), 1 - accuracy_threshold
    found = [
        AppliedMeasure("recollection", "constant", constant, hard),
        AppliedMeasure(
            "recollection_accuracy", "constant", np.full_like(constant, wrong), hard, True
        ),
        AppliedMeasure("counterfactual", "retraining", last, every),
        AppliedMeasure("contextual", "retraining", lowest, lowest < last - SAME_THRESHOLD),
    ]
    return [*found, AppliedMeasure("bayes", "language", optimal, every)] if known.all() else found
