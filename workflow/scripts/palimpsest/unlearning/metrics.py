"""Other measures of forgetting from the literature, beside the epsilon of every string."""

import warnings
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

from palimpsest.statistics import student
from palimpsest.unlearning.samples import Predictions, Problem, UnlearnedModels
from palimpsest.unlearning.setups import ENDS, RETRAIN

FOLDS = 10
SEED = 0  # of which strings are in which fold: the same for all models, methods and problems
# Models of a method whose membership is attacked: each takes tens of milliseconds.
ATTACKED = 8
OF_WEIGHTS = ("relearn_epochs", "distance_to_original", "distance_to_retrained")


def metrics(
    problem: Problem,
    methods: Iterable[UnlearnedModels],
    relearn_epochs: int,
    attacked: int = ATTACKED,
) -> pd.DataFrame:
    """The table `unlearning_metrics`: every metric of every model, then its mean over the models.

    The models are all the distinct ones of the set-up that has most of them, each with the
    retrained model beside it. Intervals are Student's over the models, null of fewer than two.

    accuracy_gap : how far the means, of unlearned and of retrained models, of the share of right
        tokens of the forget strings (copies counted) are apart.
    mia_accuracy : `membership_accuracy` on the losses of the distinct forget strings and of the
        test strings that were never trained on. Of the first `attacked` models only, as the
        column `n_models` says, because it is by far the slowest.
    mia_gap : how far its means, of unlearned and of retrained models, are apart; of the same.
    relearn_epochs : epochs of relearning, of the models with which it was tried; models that did
        not relearn within `relearn_epochs` count as one epoch more than that, so a mean that
        comes near that is a lower bound.
    distance_to_original, distance_to_retrained : L2 distances of weights.
    ks_log_p : log of the p-value of the Kolmogorov-Smirnov test between the losses of the forget
        strings in a model and in the retrained model beside it; -708.4 at least (see `ks_log_p`).
    extraction : share of the distinct forget strings that are predicted without an error.

    The reference of a gap is 0; that of ks_log_p is what the ideal has, other retrained models;
    that of relearning and distances what the ideal has if its models were measured, else null.

    Parameters
    ----------
    problem : Problem
    methods : iterable of UnlearnedModels, as `Problem.methods` gives them
    relearn_epochs : int, the most that were tried
    attacked : int, the most models of a method whose membership is attacked

    Raises
    ------
    UserError
        If a model is missing.

    Source: Are we making progress in unlearning?, sections 6 (Q4), A.5 and A.11. ks_log_p is the
    "forget quality" of TOFU (Maini et al. 2024, section 3.2) with losses in the place of truth
    ratios, for which there are no wrong answers to compare with.
    """
    retrained = _Measured(problem, problem.retrained.of(problem.stock.retrained), attacked)
    ideal = problem.retrained.of(problem.n_reference + problem.stock.retrained)
    ideal_loss = ideal.restricted(problem.forget).loss
    rows = [
        {**problem.keys, "method": method.name, "metric": metric, **row}
        for method in methods
        for metric, row in (
            *_of_predictions(
                _Measured(problem, method.of(problem.stock), attacked), retrained, ideal_loss
            ),
            *_of_weights(problem, method, relearn_epochs),
        )
    ]
    ends = {row["metric"]: row["estimate"] for row in rows if row["method"] == RETRAIN}
    for row in rows:
        if row["metric"] in OF_WEIGHTS:
            row["reference"] = ends.get(row["metric"], np.nan)
    return pd.DataFrame(rows)


class _Measured:
    """What the metrics want to know of some models' predictions, float[models] or [.., strings].

    Of the `membership` float[attacked], only the first models are attacked.
    """

    def __init__(self, problem: Problem, predictions: Predictions, attacked: int):
        forget = predictions.restricted(problem.forget)
        test = predictions.restricted(problem.never_trained)
        self.accuracy = predictions.accuracy(problem.copies("forget"))
        self.loss = forget.loss
        self.membership = membership_accuracy(forget.loss[:attacked], test.loss[:attacked])
        self.extraction = forget.extracted.mean(axis=1)


def _of_predictions(
    unlearned: _Measured, retrained: _Measured, ideal_loss: np.ndarray
) -> Iterator[tuple[str, dict]]:
    """Metric and row of what the predictions tell."""
    yield "accuracy_gap", _gap(unlearned.accuracy, retrained.accuracy)
    yield "mia_accuracy", _row(unlearned.membership, retrained.membership.mean())
    yield "mia_gap", _gap(unlearned.membership, retrained.membership)
    of_ideal = ks_log_p(ideal_loss, retrained.loss).mean()
    yield "ks_log_p", _row(ks_log_p(unlearned.loss, retrained.loss), of_ideal)
    yield "extraction", _row(unlearned.extraction, retrained.extraction.mean())


def _of_weights(
    problem: Problem, method: UnlearnedModels, relearn_epochs: int
) -> Iterator[tuple[str, dict]]:
    """Metric and row of what is noted of the models; the ends may have nothing noted."""
    for metric in OF_WEIGHTS:
        if method.name in ENDS and method.models.empty:
            yield metric, _row(np.empty(0), np.nan)
            continue
        values = method.values(metric, problem.stock)
        values = np.where(np.isinf(values), relearn_epochs + 1, values)
        yield metric, _row(values[~np.isnan(values)], np.nan)


def _row(values: np.ndarray, reference: float) -> dict:
    """Mean and interval of a metric float[models]; null where it is undefined."""
    n_models = len(values)
    mean, lower, upper = student(values)
    return {
        "estimate": mean,
        "lower": lower,
        "upper": upper,
        "reference": reference,
        "n_models": n_models,
    }


def _gap(unlearned: np.ndarray, retrained: np.ndarray) -> dict:
    """How far two means are apart, with the interval of the paired differences, folded at 0."""
    row = _row(unlearned - retrained, 0.0)
    ends = np.abs([row["lower"], row["upper"]])
    crosses = row["lower"] <= 0 <= row["upper"]
    lower = 0.0 if crosses else ends.min()
    return {**row, "estimate": abs(row["estimate"]), "lower": lower, "upper": ends.max()}


def membership_accuracy(forget: np.ndarray, test: np.ndarray) -> np.ndarray:
    """How well a classifier tells, by a model's losses, forget strings from test strings.

    The logistic regression of scikit-learn, with its L2 penalty of weight 1, on one loss,
    standardised over the strings that it is fitted to. Both sets weigh the same, whatever their
    sizes, in the fit and in the accuracy, so that 0.5 is chance. The accuracy is the mean over
    folds of held-out strings: 10, or as many as the smaller set has strings.

    Parameters
    ----------
    forget, test : float[models, strings], losses

    Returns
    -------
    float[models] in [0, 1]; NaN if either set has fewer than 2 strings.

    Source: Are we making progress in unlearning?, section A.11.
    """
    # Imported late: it takes longer than all other imports, and only this needs it.
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    sizes = forget.shape[1], test.shape[1]
    if min(sizes) < 2:
        return np.full(len(forget), np.nan)
    classifier = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
    folds = StratifiedKFold(min(FOLDS, *sizes), shuffle=True, random_state=SEED)
    is_forget = np.arange(sum(sizes)) < sizes[0]
    found = [
        cross_val_score(classifier, loss[:, None], is_forget, cv=folds, scoring="balanced_accuracy")
        for loss in np.concatenate([forget, test], axis=1)
    ]
    return np.mean(found, axis=1)


def ks_log_p(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Log float[models] of the exact p-value of two-sample Kolmogorov-Smirnov tests.

    Each row of `one` float[models, n] is tested against the same row of `other`, two-sided. With
    ties the p-value is an upper bound. A p-value that is too small for a float, as of samples of
    more than 500 that are wholly apart, counts as the smallest normal one, whose log is -708.4.
    """
    with warnings.catch_warnings():
        # Rounding can take a p-value of 1 beyond it; an approximation stands in, 0.99996 at least.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful")
        p = ks_2samp(one, other, axis=1, method="exact").pvalue
    return np.log(np.maximum(p, np.finfo(float).tiny))
