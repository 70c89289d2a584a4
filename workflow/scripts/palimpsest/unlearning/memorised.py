"""Whether unlearning removes memorisation: measures of memorisation on the forget strings."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from palimpsest.memorisation.measures import Memorisation
from palimpsest.unlearning.samples import Predictions, Problem, UnlearnedModels

RECOLLECTION = ("recollection", "recollection_accuracy")
# The measures expect an axis of epochs. Here this axis holds models, which have no order, so each
# model is judged separately.
EACH_ALONE = "first_crossing"


def memorisation(
    problem: Problem,
    methods: Iterable[UnlearnedModels],
    retrained: Predictions,
    loss_threshold: float,
    accuracy_threshold: float,
) -> pd.DataFrame:
    """The table `unlearning_memorisation`: forget strings before and after unlearning.

    A model memorises a string if the string's loss in the final model is below a threshold; there
    is no start of memorisation. The thresholds are those of the measures, and the retrained models
    take the place of a training without the string:

    recollection : a constant
    counterfactual memorisation : the mean loss of the retrained models at the last epoch
    contextual memorisation : the lowest mean loss of the retrained models over the epochs
    Bayes memorisation : the optimal loss of the language

    A retrained model has never seen the string, but its loss is below the mean of the retrained
    models about half of the time. So the goal of unlearning is not 0. The goal is the share in the
    column `retrained`, or the share of the ideal `retrain`; the thresholds do not use the models of
    the ideal.

    Parameters
    ----------
    problem : Problem
    methods : iterable of UnlearnedModels, from `Problem.methods`
    retrained : Predictions
        Predictions of the retrained models for the forget strings, at all epochs.
    loss_threshold : float, nats per token; recollection means a loss below this
    accuracy_threshold : float, share of right tokens; recollection by accuracy means above this

    Raises
    ------
    UserError
        If a model is missing.

    Source: Learning Without Memorizing Considered Infeasible, section 3.1; the models are those of
    Are we making progress in unlearning?, section 4.
    """
    curve = retrained.of(np.arange(problem.n_reference)).loss.mean(axis=0)
    forgotten = problem.strings[problem.forget]
    thresholds = {
        ("recollection", "constant"): loss_threshold,
        ("recollection_accuracy", "constant"): 1 - accuracy_threshold,
        ("counterfactual", "retraining"): curve[-1],
        ("contextual", "retraining"): curve.min(axis=0),
    }
    if forgotten["optimal_loss"].notna().all():
        thresholds["bayes", "language"] = forgotten["optimal_loss"].to_numpy()
    stock = problem.stock
    before = _measured(problem, problem.originals.of(np.unique(stock.origins)), thresholds)
    ideal = _measured(problem, problem.reference, thresholds)
    parts = []
    for method in methods:
        after = _measured(problem, method.of(stock), thresholds)
        for measure, evidence in thresholds:
            key = (measure, evidence)
            parts.append(
                pd.DataFrame(
                    {
                        **problem.keys,
                        "method": method.name,
                        "string_id": forgotten["string_id"].to_numpy(),
                        "measure": measure,
                        "evidence": evidence,
                        "threshold": thresholds[key],
                        "before": before[key].memorised.mean(axis=0),
                        "after": after[key].memorised.mean(axis=0),
                        "retrained": ideal[key].memorised.mean(axis=0),
                        "score_before": before[key].score.mean(axis=0),
                        "score_after": after[key].score.mean(axis=0),
                        "score_retrained": ideal[key].score.mean(axis=0),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def _measured(
    problem: Problem, predictions: Predictions, thresholds: dict
) -> dict[tuple[str, str], Memorisation]:
    """Every measure of the forget strings [models, strings], by measure and evidence."""
    forget = predictions.restricted(problem.forget)
    wrong = 1 - forget.n_correct / forget.n_tokens
    return {
        key: Memorisation.below(
            threshold,
            wrong if key[0] == "recollection_accuracy" else forget.loss,
            EACH_ALONE,
            binary=key[0] in RECOLLECTION,
        )
        for key, threshold in thresholds.items()
    }
