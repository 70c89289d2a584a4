"""Whether unlearning removes memorisation: the platform's measures on the forget strings."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from palimpsest.memorisation.measures import Memorisation
from palimpsest.unlearning.samples import Predictions, Problem, UnlearnedModels

RECOLLECTION = ("recollection", "recollection_accuracy")
# Models stand where a measure has epochs, and they do not follow one another: each is judged alone.
EACH_ALONE = "first_crossing"


def memorisation(
    problem: Problem,
    methods: Iterable[UnlearnedModels],
    retrained: Predictions,
    loss_threshold: float,
    accuracy_threshold: float,
) -> pd.DataFrame:
    """The table `unlearning_memorisation`: forget strings before and after unlearning.

    The thresholds are those of the measures, with the retrained models in the place of a training
    without the string: recollection below constants; counterfactual memorisation below the mean
    loss of the retrained models at the last epoch; contextual memorisation below the lowest, over
    the epochs, of their mean loss; Bayes memorisation below the optimal loss of the language. A
    model memorises a string that is below the threshold at the model's end: there is no start.

    A retrained model, which has never seen the string, is below the mean of its kind about half
    of the time. So what unlearning should reach is not 0 but the share of the retrained models
    that stands beside, and of the ideal `retrain`, whose models are none of those the thresholds
    come from.

    Parameters
    ----------
    problem : Problem
    methods : iterable of UnlearnedModels, as `Problem.methods` gives them
    retrained : Predictions
        Of retrained models, of the forget strings, at all epochs.
    loss_threshold : float, nats per token; recollection is below it
    accuracy_threshold : float, share of right tokens; recollection by accuracy is above it

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
