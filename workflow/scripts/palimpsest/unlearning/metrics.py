"""Other measures of forgetting from the literature, beside the epsilon of every string."""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from scipy.special import expit, gammaln

from palimpsest.unlearning.samples import Method, Predictions, Problem
from palimpsest.unlearning.scores import student
from palimpsest.unlearning.setups import ENDS, RETRAIN

FOLDS = 10
SEED = 0  # of which strings are in which fold: the same for all models, methods and problems
OF_WEIGHTS = ("relearn_epochs", "distance_to_original", "distance_to_retrained")
# Of Newton's method: steps at most, the longest step in either parameter, the step it ends at.
STEPS, LONGEST, CONVERGED = 200, 1.0, 1e-9


def metrics(problem: Problem, methods: Iterable[Method], relearn_epochs: int) -> pd.DataFrame:
    """The table `unlearning_metrics`: every metric of every model, then its mean over the models.

    The models are all the distinct ones of the set-up that has most of them, each with the
    retrained model beside it. Intervals are Student's over the models, null of fewer than two.

    accuracy_gap : how far the means, of unlearned and of retrained models, of the share of right
        tokens of the forget strings (copies counted) are apart.
    mia_accuracy : `membership_accuracy` on the losses of the distinct forget strings and of the
        test strings that were never trained on.
    mia_gap : how far its means, of unlearned and of retrained models, are apart.
    relearn_epochs : epochs of relearning, of the models with which it was tried; models that did
        not relearn within `relearn_epochs` count as one epoch more than that, so a mean that
        comes near that is a lower bound.
    distance_to_original, distance_to_retrained : L2 distances of weights.
    ks_log_p : log of the p-value of the Kolmogorov-Smirnov test between the losses of the forget
        strings in a model and in the retrained model beside it.
    extraction : share of the distinct forget strings that are predicted without an error.

    The reference of a gap is 0; that of ks_log_p is what the ideal has, other retrained models;
    that of relearning and distances what the ideal has if its models were measured, else null.

    Parameters
    ----------
    problem : Problem
    methods : iterable of Method, as `Problem.methods` gives them
    relearn_epochs : int, the most that were tried

    Raises
    ------
    UserError
        If a model is missing.

    Source: Are we making progress in unlearning?, sections 6 (Q4), A.5 and A.11. ks_log_p is the
    "forget quality" of TOFU (Maini et al. 2024, section 3.2) with losses in the place of truth
    ratios, for which there are no wrong answers to compare with.
    """
    retrained = _Measured(problem, problem.retrained.of(problem.stock.retrained))
    ideal = _Measured(problem, problem.retrained.of(problem.n_reference + problem.stock.retrained))
    rows = [
        {**problem.keys, "method": method.name, "metric": metric, **row}
        for method in methods
        for metric, row in (
            *_of_predictions(_Measured(problem, method.of(problem.stock)), retrained, ideal),
            *_of_weights(problem, method, relearn_epochs),
        )
    ]
    ends = {row["metric"]: row["estimate"] for row in rows if row["method"] == RETRAIN}
    for row in rows:
        if row["metric"] in OF_WEIGHTS:
            row["reference"] = ends.get(row["metric"], np.nan)
    return pd.DataFrame(rows)


class _Measured:
    """What the metrics want to know of some models' predictions, float[models] or [.., strings]."""

    def __init__(self, problem: Problem, predictions: Predictions):
        forget = predictions.restricted(problem.forget)
        test = predictions.restricted(problem.never_trained)
        self.accuracy = predictions.accuracy(problem.copies("forget"))
        self.loss = forget.loss
        self.membership = membership_accuracy(forget.loss, test.loss)
        self.extraction = forget.extracted.mean(axis=1)


def _of_predictions(
    unlearned: _Measured, retrained: _Measured, ideal: _Measured
) -> Iterator[tuple[str, dict]]:
    """Metric and row of what the predictions tell."""
    yield "accuracy_gap", _gap(unlearned.accuracy, retrained.accuracy)
    yield "mia_accuracy", _row(unlearned.membership, retrained.membership.mean())
    yield "mia_gap", _gap(unlearned.membership, retrained.membership)
    of_ideal = ks_log_p(ideal.loss, retrained.loss).mean()
    yield "ks_log_p", _row(ks_log_p(unlearned.loss, retrained.loss), of_ideal)
    yield "extraction", _row(unlearned.extraction, retrained.extraction.mean())


def _of_weights(
    problem: Problem, method: Method, relearn_epochs: int
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
    mean, lower, upper = student(values) if n_models else (np.nan,) * 3
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

    A logistic regression on one loss, with the weight (not the intercept) under an L2 penalty of
    1/2 and losses standardised over the strings that it is fitted to. Both sets weigh the same,
    whatever their sizes, in the fit and in the accuracy, so that 0.5 is chance. The accuracy
    is the mean over folds of held-out strings: 10, or as many as the smaller set has strings.

    Parameters
    ----------
    forget, test : float[models, strings], losses

    Returns
    -------
    float[models] in [0, 1]; NaN if either set has fewer than 2 strings.

    Source: Are we making progress in unlearning?, section A.11.
    """
    sizes = forget.shape[1], test.shape[1]
    if min(sizes) < 2:
        return np.full(len(forget), np.nan)
    n_folds = min(FOLDS, *sizes)
    generator = np.random.default_rng(SEED)
    fold = np.concatenate([generator.permutation(size) % n_folds for size in sizes])
    losses = np.concatenate([forget, test], axis=1)
    is_forget = np.arange(sum(sizes)) < sizes[0]
    found = [_held_out_accuracy(losses, is_forget, fold == held) for held in range(n_folds)]
    return np.mean(found, axis=0)


def _held_out_accuracy(losses: np.ndarray, is_forget: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Balanced accuracy float[models] on the strings `held` of a fit to the others."""
    fitted = losses[:, ~held]
    spread = fitted.std(axis=1, keepdims=True)
    centre, scale = fitted.mean(axis=1, keepdims=True), np.where(spread > 0, spread, 1)
    weight, intercept = logistic_regression((fitted - centre) / scale, is_forget[~held])
    decision = weight[:, None] * (losses[:, held] - centre) / scale + intercept[:, None]
    says_forget = decision > 0
    of_forget = says_forget[:, is_forget[held]].mean(axis=1)
    of_test = 1 - says_forget[:, ~is_forget[held]].mean(axis=1)
    return (of_forget + of_test) / 2


def logistic_regression(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weight and intercept, float[models] each, of logistic regressions on one feature.

    x : float[models, n]
    y : bool[n], of which neither kind is absent; both kinds weigh the same in sum

    The penalty is half the square of the weight, against a summed loss in which the mean weight
    of an observation is 1.
    """
    each = np.where(y, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    weight, intercept = np.zeros(len(x)), np.zeros(len(x))
    for _ in range(STEPS):
        p = expit(weight[:, None] * x + intercept[:, None])
        wrong, curvature = each * (p - y), each * p * (1 - p)
        slope = (wrong * x).sum(axis=1) + weight, wrong.sum(axis=1)
        a, b = (curvature * x * x).sum(axis=1) + 1, (curvature * x).sum(axis=1)
        c = curvature.sum(axis=1)
        determinant = a * c - b * b
        steps = np.clip(
            [
                (c * slope[0] - b * slope[1]) / determinant,
                (a * slope[1] - b * slope[0]) / determinant,
            ],
            -LONGEST,
            LONGEST,
        )
        weight, intercept = weight - steps[0], intercept - steps[1]
        if np.abs(steps).max() < CONVERGED:
            break
    return weight, intercept


def ks_log_p(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Log float[models] of the exact p-value of two-sample Kolmogorov-Smirnov tests.

    Each row of `one` float[models, n] is tested against the same row of `other`, two-sided. Of two
    samples of n, the largest difference of their distributions is h / n, and the p-value
    2 (C(2n, n - h) - C(2n, n - 2h) + C(2n, n - 3h) - ...) / C(2n, n). With ties it is an upper
    bound.

    Source: Gnedenko and Korolyuk 1951.
    """
    n = one.shape[1]
    both = np.concatenate([one, other], axis=1)
    order = both.argsort(axis=1, kind="stable")
    ahead = np.where(order < n, 1, -1).cumsum(axis=1)
    ranked = np.take_along_axis(both, order, axis=1)
    ends_tie = np.diff(ranked, axis=1, append=np.inf) > 0
    largest = np.abs(ahead * ends_tie).max(axis=1)
    distinct, place = np.unique(largest, return_inverse=True)
    return np.array([_log_p(int(h), n) for h in distinct])[place]


def _log_p(h: int, n: int) -> float:
    """Log of the probability that samples of n differ by h / n or more."""
    if h == 0:
        return 0.0
    terms = np.arange(1, n // h + 1)
    logs = 2 * gammaln(n + 1) - gammaln(n - terms * h + 1) - gammaln(n + terms * h + 1)
    return min(
        0.0, float(np.log(2 * ((-1.0) ** (terms + 1) * np.exp(logs - logs[0])).sum()) + logs[0])
    )
