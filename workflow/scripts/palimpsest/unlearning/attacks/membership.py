"""Membership inference: whether a model's predictions tell forget strings from other strings."""

import zlib
from collections.abc import Iterable

import numpy as np
from scipy.special import expit, stdtrit
from scipy.stats import rankdata

from palimpsest.statistics import (
    CONFIDENCE,
    FEWEST_TERMS,
    Interval,
    is_constant,
    rounding_error,
    with_exact_ties,
)

FOLDS = 10
SEED = 0  # assigns strings to folds; the same for all models, methods and problems
# Newton's method takes about 5 steps. After a step of 1e-4, the error is about the square of it.
MOST_STEPS = 100
CONVERGED, ROUNDING = 1e-4, 1e-9


def auc(members: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Area under the ROC curve of a score of membership, for each model; ties count half.

    This is the Mann-Whitney statistic divided by the number of pairs: the probability that a member
    has a higher score than another string. 0.5 is chance. It is exact for these strings, and no
    attack is fitted.

    Parameters
    ----------
    members, others : float[models, strings]
        A higher score means that the string was more probably trained on.

    Returns
    -------
    float[models] in [0, 1]; NaN if either set is empty.

    Source: Hanley and McNeil, The meaning and use of the area under a ROC curve (1982).
    """
    n, m = members.shape[1], others.shape[1]
    if not n or not m:
        return np.full(len(members), np.nan)
    ranks = rankdata(with_exact_ties(np.concatenate([members, others], axis=1).T), axis=0).T
    return (ranks[:, :n].sum(axis=1) - n * (n + 1) / 2) / (n * m)


def zlib_bytes(texts: Iterable[str]) -> np.ndarray:
    """Number of bytes int[strings] of each text in UTF-8, compressed by zlib."""
    return np.array([len(zlib.compress(text.encode())) for text in texts])


def privleak(unlearned: np.ndarray, retrained: np.ndarray) -> Interval:
    """PrivLeak: relative difference of the mean AUC of unlearned and of retrained models.

    MUSE's AUC is the probability that a forget string looks *less* like a training string than a
    test string does: 1 minus `auc`. So PrivLeak is below 0 if too little is forgotten, 0 if the
    forget strings look as to retrained models, and above 0 if they look less trained on than that.

    The interval is over models of both kinds, for the same strings: Student's, of the difference
    of the logs of the two means (delta method), with the degrees of freedom of the smaller sample.

    Parameters
    ----------
    unlearned, retrained : float[models] in [0, 1]
        `auc` of each model, where a higher score means membership.

    Returns
    -------
    Interval; its ends are NaN for fewer than 2 models of a kind or for an AUC of 0, and all is NaN
    if the retrained models' AUC (by MUSE's sign) is 0. MUSE reports this number in per cent.

    Source: Shi et al., MUSE (2024), the metric PrivLeak. MUSE uses Min-K% with K = 40.
    """
    samples = [1 - np.asarray(values, dtype=float) for values in (unlearned, retrained)]
    means = [values.mean() if len(values) else np.nan for values in samples]
    # 1 minus an AUC of 1 that was rounded is not 0.
    rounding = rounding_error(1.0, FEWEST_TERMS)
    if not means[1] > rounding:
        return Interval(np.nan, np.nan, np.nan)
    ratio = means[0] / means[1]
    n = min(len(values) for values in samples)
    if n < 2 or not means[0] > rounding:
        return Interval(ratio - 1, np.nan, np.nan)
    errors = [
        values.var(ddof=1) / len(values) / mean**2
        for values, mean in zip(samples, means, strict=True)
    ]
    reach = stdtrit(n - 1, (1 + CONFIDENCE) / 2) * np.sqrt(sum(errors))
    return Interval(ratio - 1, ratio * np.exp(-reach) - 1, ratio * np.exp(reach) - 1)


def membership_accuracy(forget: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Accuracy of a classifier that separates forget from test strings by a model's losses.

    The classifier is a logistic regression with an L2 penalty of weight 1, as in scikit-learn. Its
    only feature is the loss, standardised over the strings of the fit. Both sets have the same
    weight in the fit and in the accuracy, whatever their sizes. The accuracy is the mean over folds
    of held-out strings. There are 10 folds, or fewer if the smaller set has fewer strings.

    With few strings, models that do not tell the sets apart have an accuracy somewhat *below* 0.5:
    a string that is held out moves the mean of its set in the fit away from itself. So compare with
    the accuracy of retrained models, or use `auc`, which has no folds.

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
    loss = np.concatenate([forget, test], axis=1)
    is_forget = np.arange(sum(sizes)) < sizes[0]
    fold = folds(*sizes)
    fit = np.zeros((len(loss), 2))
    accuracies = []
    for one in range(fold.max() + 1):
        fitted, held = loss[:, fold != one], loss[:, fold == one]
        centre, scale = fitted.mean(axis=1, keepdims=True), fitted.std(axis=1, keepdims=True)
        # Without any spread, all are equal: no string is on either side of the centre.
        scale[is_constant(fitted.T)] = np.inf
        # Folds differ little, so the fit of one is a good start for the next.
        fit = logistic_regressions((fitted - centre) / scale, is_forget[fold != one], fit)
        says_forget = fit[:, :1] * (held - centre) / scale + fit[:, 1:] > 0
        right = says_forget == is_forget[fold == one]
        kinds = [right[:, is_forget[fold == one] == kind].mean(axis=1) for kind in (True, False)]
        accuracies.append(np.mean(kinds, axis=0))
    return np.mean(accuracies, axis=0)


def folds(n_forget: int, n_test: int) -> np.ndarray:
    """Fold int[n_forget + n_test] of each string, at random; each fold has strings of both sets."""
    chance = np.random.default_rng(SEED)
    n_folds = min(FOLDS, n_forget, n_test)
    return np.concatenate([chance.permutation(n) % n_folds for n in (n_forget, n_test)])


def logistic_regressions(
    x: np.ndarray, is_member: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """Slope and intercept, float[models, 2], of one balanced logistic regression per model.

    The regression minimises slope^2 / 2 plus the log losses of the strings, by Newton's method for
    all models together. Each set has half of the weight of all strings.

    Parameters
    ----------
    x : float[models, strings], the feature of each string
    is_member : bool[strings]
    start : float[models, 2], where to start; the fit does not depend on it
    """
    weight = np.where(is_member, 0.5 / is_member.mean(), 0.5 / (1 - is_member.mean()))
    sign = np.where(is_member, 1.0, -1.0)

    def objective(fit: np.ndarray) -> np.ndarray:
        margin = sign * (fit[:, :1] * x + fit[:, 1:])
        return fit[:, 0] ** 2 / 2 + np.logaddexp(0, -margin) @ weight

    fit = np.zeros((len(x), 2)) if start is None else start
    lowest = objective(fit)
    for _ in range(MOST_STEPS):
        step = _newton_step(x, is_member, weight, fit)
        if np.abs(step).max() < CONVERGED:
            return fit - step
        # A full step can go too far; then it is halved.
        while (worse := (found := objective(fit - step)) > lowest + ROUNDING).any():
            step[worse] /= 2
        fit, lowest = fit - step, found
    return fit


def _newton_step(
    x: np.ndarray, is_member: np.ndarray, weight: np.ndarray, fit: np.ndarray
) -> np.ndarray:
    """Inverse Hessian times gradient of the objective, float[models, 2]."""
    p = expit(fit[:, :1] * x + fit[:, 1:])
    residual, curvature = weight * (p - is_member), weight * p * (1 - p)
    gradient = np.stack([fit[:, 0] + (residual * x).sum(1), residual.sum(1)], axis=1)
    mixed = (curvature * x).sum(1)
    hessian = np.array([[1 + (curvature * x**2).sum(1), mixed], [mixed, curvature.sum(1)]])
    return np.linalg.solve(hessian.transpose(2, 0, 1), gradient[..., None])[..., 0]
