"""Other metrics of forgetting from the literature, in addition to the epsilon of every string."""

import warnings
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

from palimpsest.statistics import student
from palimpsest.unlearning.samples import Predictions, Problem, UnlearnedModels
from palimpsest.unlearning.setups import ENDS, RETRAIN

FOLDS = 10
SEED = 0  # assigns strings to folds; the same for all models, methods and problems
# Number of a method's models for membership inference, which takes tens of milliseconds per model.
ATTACKED = 8
OF_WEIGHTS = ("relearn_epochs", "distance_to_original", "distance_to_retrained")


def metrics(
    problem: Problem,
    methods: Iterable[UnlearnedModels],
    relearn_epochs: int,
    attacked: int = ATTACKED,
) -> pd.DataFrame:
    """The table `unlearning_metrics`: every metric of every model, then its mean over the models.

    The models are all distinct models of the set-up that has most of them; each is paired with a
    retrained model. Intervals are Student's over the models, and null for fewer than two models.

    accuracy_gap : distance between the mean accuracy of unlearned models and the mean accuracy of
        retrained models. Accuracy is the share of right tokens of the forget strings, with copies.
    mia_accuracy : `membership_accuracy` on the losses of the distinct forget strings and of the
        test strings that no model was trained on. Only the first `attacked` models are used (see
        the column `n_models`), because this metric is by far the slowest.
    mia_gap : distance between the mean mia_accuracy of unlearned and of retrained models; uses the
        same models as mia_accuracy.
    relearn_epochs : epochs of relearning, for the models that were trained on the forget set again.
        A model that did not relearn within `relearn_epochs` counts as `relearn_epochs + 1`; so a
        mean near that number is a lower bound.
    distance_to_original, distance_to_retrained : L2 distances of weights.
    ks_log_p : log of the p-value of the Kolmogorov-Smirnov test between the losses of the forget
        strings in a model and in its paired retrained model; at least -708.4 (see `ks_log_p`).
    extraction : share of the distinct forget strings that are predicted without an error.

    The reference of a gap is 0. For ks_log_p, the reference is the value for the ideal, that is,
    for other retrained models. For relearning and distances, it is the value for the ideal if its
    models were measured, and otherwise null.

    Parameters
    ----------
    problem : Problem
    methods : iterable of UnlearnedModels, from `Problem.methods`
    relearn_epochs : int, the largest number of epochs that was tried
    attacked : int, the largest number of a method's models used for membership inference

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
    """Values that the metrics need from some models' predictions, float[models] or [.., strings].

    `membership` is float[attacked]: only the first models are used.
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
    """Name and row of each metric that is computed from predictions."""
    yield "accuracy_gap", _gap(unlearned.accuracy, retrained.accuracy)
    yield "mia_accuracy", _row(unlearned.membership, retrained.membership.mean())
    yield "mia_gap", _gap(unlearned.membership, retrained.membership)
    of_ideal = ks_log_p(ideal_loss, retrained.loss).mean()
    yield "ks_log_p", _row(ks_log_p(unlearned.loss, retrained.loss), of_ideal)
    yield "extraction", _row(unlearned.extraction, retrained.extraction.mean())


def _of_weights(
    problem: Problem, method: UnlearnedModels, relearn_epochs: int
) -> Iterator[tuple[str, dict]]:
    """Name and row of each metric in the table `unlearned_models`; the ends may have no rows."""
    for metric in OF_WEIGHTS:
        if method.name in ENDS and method.models.empty:
            yield metric, _row(np.empty(0), np.nan)
            continue
        values = method.values(metric, problem.stock)
        values = np.where(np.isinf(values), relearn_epochs + 1, values)
        yield metric, _row(values[~np.isnan(values)], np.nan)


def _row(values: np.ndarray, reference: float) -> dict:
    """Mean and interval of a metric float[models]; null if undefined."""
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
    """Distance between two means, and the interval of the paired differences, folded at 0."""
    row = _row(unlearned - retrained, 0.0)
    ends = np.abs([row["lower"], row["upper"]])
    crosses = row["lower"] <= 0 <= row["upper"]
    lower = 0.0 if crosses else ends.min()
    return {**row, "estimate": abs(row["estimate"]), "lower": lower, "upper": ends.max()}


def membership_accuracy(forget: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Accuracy of a classifier that separates forget from test strings by a model's losses.

    The classifier is scikit-learn's logistic regression with an L2 penalty of weight 1. Its only
    feature is the loss, standardised over the strings of the fit. Both sets have the same weight in
    the fit and in the accuracy, whatever their sizes, so that 0.5 is chance. The accuracy is the
    mean over folds of held-out strings. There are 10 folds, or fewer if the smaller set has fewer
    strings.

    Parameters
    ----------
    forget, test : float[models, strings], losses

    Returns
    -------
    float[models] in [0, 1]; NaN if either set has fewer than 2 strings.

    Source: Are we making progress in unlearning?, section A.11.
    """
    # Imported here, because scikit-learn loads slowly, and only this function needs it.
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
    ties, the p-value is an upper bound. A p-value that is too small for a float counts as the
    smallest normal float, whose log is -708.4. For example, this happens if two samples of more
    than 500 values do not overlap.
    """
    with warnings.catch_warnings():
        # A rounding error can raise a p-value of 1 above 1. Then scipy warns and uses an
        # approximation, which is at least 0.99996.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful")
        p = ks_2samp(one, other, axis=1, method="exact").pvalue
    return np.log(np.maximum(p, np.finfo(float).tiny))
