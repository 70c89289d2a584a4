"""Other metrics of forgetting from the literature, in addition to the epsilon of every string."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.statistics import CONFIDENCE, NO_INTERVAL, Interval, student
from palimpsest.unlearning.attacks.kolmogorov import ks_p_value
from palimpsest.unlearning.attacks.membership import auc, membership_accuracy, privleak, zlib_bytes
from palimpsest.unlearning.evaluate.extraction import (
    extracted_from_half,
    extraction_strength,
    leak_at,
)
from palimpsest.unlearning.evaluate.relearning import (
    Relearned,
    logrank_p_value,
    restricted_mean,
    share_not_reached,
    tried,
)
from palimpsest.unlearning.evaluate.samples import Predictions, Problem, UnlearnedModels
from palimpsest.unlearning.run.setups import ENDS, RETRAIN, Members

LEAKS = (1, 100)  # numbers of samples
DISTANCES = ("distance_to_original", "distance_to_retrained")
# Metrics that are the mean of one number per model, from predictions that traces have too
FROM_TRACES = (
    "mia_accuracy",
    "auc_loss",
    "auc_zlib",
    "auc_calibrated",
    *(f"leak_at_{k}" for k in LEAKS),
)
# The same, from scores that only tables of unlearned models have
FROM_TOKENS = ("auc_min_k", "auc_min_k_plus", "extraction", "extraction_strength")
RELEARNING = ("relearn_steps", "relearn_limit")
UNIFORM = -1.0  # mean of log p if all p-values are equally probable
LEVEL = 1 - CONFIDENCE


def metrics(problem: Problem, methods: Iterable[UnlearnedModels]) -> pd.DataFrame:
    """The table `unlearning_metrics`: every metric of every method.

    The models are all distinct models of the set-up that has most of them; each is paired with a
    retrained model. A metric is computed for each model; the estimate is the mean over the models.

    All intervals are of 95 %, over models, for the same forget and test strings: they say what
    other models of the same method would give. They do not say what other strings would give, and
    this matters most for an AUC of few strings. They are Student's unless said otherwise, and null
    for fewer than two models. Under reuse-n-1, the models are unlearnings of one original model,
    which is the only model of `none`.

    The reference of a metric is its value for retrained models, that is, for ideal unlearning: the
    paired retrained models, unless said otherwise. The rows of `retrain` compare other retrained
    models with these, so they show what is found where there is nothing to find. Whether a metric
    differs from its reference is a test at 5 %, which counts the chance of both; a p-value is one
    itself.

    accuracy_gap : distance between the mean accuracy of unlearned models and the mean accuracy of
        retrained models. Accuracy is the share of right tokens of the forget strings, with copies.
    mia_accuracy : `membership_accuracy` on the losses of the distinct forget strings and of the
        test strings that no model was trained on.
    mia_gap : distance between the mean mia_accuracy of unlearned and of retrained models.
    auc_loss, auc_zlib, auc_calibrated, auc_min_k, auc_min_k_plus : `auc` between the same strings,
        of five scores: the loss per token; the nll per byte of the compressed text (of a record,
        with its prompt); the loss minus
        the mean loss of the retrained models (for a retrained model: of the others); Min-K% Prob
        and Min-K%++, both of the 20 % least probable tokens. Calibration: Watson et al. 2022; zlib:
        Carlini et al. 2021, who divide the loss per token by the bytes.
    privleak, privleak_loss : `privleak` of auc_min_k, as in MUSE, and of auc_loss. Negative: too
        little is forgotten. The interval is over the models of both kinds. privleak is null for
        `retrain`, which is its reference.
    ks_log_p : log of `ks_p_value` between these models and all retrained models. No interval. The
        reference is -1, the mean of log p if all p-values are equally probable.
    leak_at_1, leak_at_100 : mean probability over the distinct forget strings that one or more of
        1 or 100 samples of the model is the string.
    extraction : share of the distinct forget strings whose second half is predicted without an
        error after the first half.
    extraction_strength : mean of `extraction_strength` over the distinct forget strings.
    relearn_steps : `restricted_mean` of the optimiser steps of relearning, for the models that were
        trained on the forget set again.
    relearn_not_reached : share of these models that did not relearn within the steps tried, with
        Clopper and Pearson's interval. Where it is above 0, relearn_steps is a lower bound.
    relearn_log_p : log of `logrank_p_value` between these models and those of `retrain`. No
        interval. The reference is -1. Null for `retrain`, and if no model of either relearned.
    distance_to_original, distance_to_retrained : L2 distances of weights.

    For auc_min_k, auc_min_k_plus, extraction, extraction_strength, relearning and distances, the
    reference is the value for the models of `retrain` if they were measured, and otherwise null.
    The first four are null for models without `UnlearnedModels.measured`.

    Parameters
    ----------
    problem : Problem
    methods : iterable of UnlearnedModels, from `Problem.methods` with `with_tokens`

    Raises
    ------
    UserError
        If a model is missing.

    Source: Are we making progress in unlearning?, sections 6 (Q4), A.5 and A.11; the other papers
    are named in the functions.
    """
    paired = of_traces(
        problem,
        problem.retrained.of(problem.stock.retrained),
        calibration=mean_of_others(problem.reference.loss)[problem.stock.retrained],
    )
    measured = {method.name: _measured(problem, method) for method in methods}
    ideal = measured.get(RETRAIN)
    reference = paired | ({name: ideal.values[name] for name in FROM_TOKENS} if ideal else {})
    rows = [
        {**problem.keys, "method": name, "metric": metric, **row}
        for name, one in measured.items()
        for metric, row in (
            *rows_of_predictions(one, reference, name),
            *_of_weights(one, ideal, name),
        )
    ]
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Measured:
    """What is known of a method's models.

    `pairs` int[models] are the places of the models in the stock of the problem. `values` maps a
    metric to float[models], which is empty if the models do not have the metric.
    """

    pairs: np.ndarray
    values: dict[str, np.ndarray]
    ks_log_p: float
    relearned: Relearned


def _measured(problem: Problem, method: UnlearnedModels) -> Measured:
    pairs = _distinct(method, problem.stock)
    members = Members(*(names[pairs] for names in problem.stock))
    predictions, forget = method.of(members), problem.forget
    p = ks_p_value(predictions.loss[:, forget], problem.reference.loss[:, forget])
    values = of_traces(problem, predictions, problem.reference.loss.mean(axis=0))
    values |= of_tokens(problem, method.measured_of(members))
    costs = {name: _cost(method, members, name) for name in (*DISTANCES, *RELEARNING)}
    values |= {name: costs[name][~np.isnan(costs[name])] for name in DISTANCES}
    return Measured(pairs, values, np.log(p), tried(*(costs[name] for name in RELEARNING)))


def _distinct(method: UnlearnedModels, stock: Members) -> np.ndarray:
    """Places int[models] in the stock, one per model of the method.

    Under reuse-n-1, the stock has one original model many times.
    """
    return np.sort(np.unique(np.stack(method.keys(stock)), axis=1, return_index=True)[1])


def _cost(method: UnlearnedModels, members: Members, column: str) -> np.ndarray:
    """A column float[models] of `unlearned_models`; empty for an end without such tables."""
    if method.name in ENDS and method.models.empty:
        return np.empty(0)
    return method.values(column, members)


def of_traces(
    problem: Problem, predictions: Predictions, calibration: np.ndarray
) -> dict[str, np.ndarray]:
    """Metrics float[models] that traces are enough for.

    `calibration` is the loss that retrained models have, float[strings] or float[models, strings].
    """
    forget, loss = problem.forget, predictions.loss
    between = partial(_auc, problem)
    n_bytes = zlib_bytes(problem.strings["text"])
    return {
        "accuracy": predictions.accuracy(problem.copies("forget")),
        "mia_accuracy": membership_accuracy(loss[:, forget], loss[:, problem.never_trained]),
        "auc_loss": between(-loss),
        "auc_zlib": between(-predictions.nll / n_bytes),
        "auc_calibrated": between(calibration - loss),
        **{f"leak_at_{k}": leak_at(k, predictions.nll[:, forget]) for k in LEAKS},
    }


def of_tokens(problem: Problem, predictions: Predictions | None) -> dict[str, np.ndarray]:
    """Metrics float[models] that need every token; empty arrays without predictions."""
    if predictions is None or predictions.tokens is None:
        return dict.fromkeys(FROM_TOKENS, np.empty(0))
    forget = predictions.restricted(problem.forget)
    last, n_tokens = forget.tokens.n_last_correct, forget.n_tokens
    return {
        "auc_min_k": _auc(problem, predictions.tokens.min_k),
        "auc_min_k_plus": _auc(problem, predictions.tokens.min_k_plus),
        "extraction": extracted_from_half(last, n_tokens).mean(axis=1),
        "extraction_strength": extraction_strength(last, n_tokens).mean(axis=1),
    }


def _auc(problem: Problem, score: np.ndarray) -> np.ndarray:
    """AUC float[models] of a score float[models, strings]: forget against never-trained strings."""
    return auc(score[:, problem.forget], score[:, problem.never_trained])


def mean_of_others(loss: np.ndarray) -> np.ndarray:
    """Mean float[models, strings] over all other models; NaN for one model."""
    others = len(loss) - 1
    return (loss.sum(axis=0) - loss) / others if others else np.full_like(loss, np.nan)


def rows_of_predictions(
    one: Measured, reference: dict[str, np.ndarray], name: str
) -> Iterator[tuple[str, dict]]:
    values = one.values
    for metric, of in (("accuracy_gap", "accuracy"), ("mia_gap", "mia_accuracy")):
        yield metric, _gap(values[of], reference[of][one.pairs])
    for metric in (*FROM_TRACES, *FROM_TOKENS):
        compared = student(reference.get(metric, np.empty(0)))
        # Of `retrain`, the reference of these metrics is itself.
        itself = RETRAIN if name == RETRAIN and metric in FROM_TOKENS else ""
        yield metric, _row(student(values[metric]), compared, values[metric], itself)
    for metric, of in (("privleak", "auc_min_k"), ("privleak_loss", "auc_loss")):
        itself = name == RETRAIN and of in FROM_TOKENS
        compared = np.empty(0) if itself else values[of]
        found = privleak(compared, reference.get(of, np.empty(0)))
        yield metric, _row(found, Interval(0.0, np.nan, np.nan), compared)
    yield "ks_log_p", _of_test(one.ks_log_p, values["accuracy"])


def _of_weights(one: Measured, ideal: Measured | None, name: str) -> Iterator[tuple[str, dict]]:
    """Name and row of each metric in the table `unlearned_models`; the ends may have no rows."""
    steps, of_ideal = one.relearned.steps, ideal.relearned if ideal else tried(*np.empty((2, 0)))
    for metric, function in (
        ("relearn_steps", restricted_mean),
        ("relearn_not_reached", share_not_reached),
    ):
        yield metric, _row(function(one.relearned), function(of_ideal), steps, name)
    p = np.nan if name == RETRAIN else logrank_p_value(one.relearned, of_ideal)
    yield "relearn_log_p", _of_test(np.log(p), steps)
    for metric in DISTANCES:
        values = one.values[metric]
        of_ideal = student(ideal.values[metric]) if ideal else NO_INTERVAL
        yield metric, _row(student(values), of_ideal, values, name)


def _row(found: Interval, reference: Interval, models: np.ndarray, name: str = "") -> dict:
    """A row of the table; nothing differs from itself, if the method's `name` is that of `retrain`.

    A reference without an interval is a number that does not depend on chance.
    """
    return {
        **found.columns("estimate"),
        "reference": reference.mean,
        "reference_lower": reference.lower,
        "reference_upper": reference.upper,
        "differs": None if name == RETRAIN else differs(found, reference),
        "n_models": len(models),
    }


def _of_test(log_p: float, models: np.ndarray) -> dict:
    row = _row(Interval(log_p, np.nan, np.nan), Interval(UNIFORM, np.nan, np.nan), models)
    return row | {"differs": None if np.isnan(log_p) else bool(log_p <= np.log(LEVEL))}


def differs(found: Interval, reference: Interval) -> bool | None:
    """Whether 0 is outside the 95 % interval of the difference of two independent estimates.

    None if the first has no interval.

    Source: Zou and Donner, Construction of confidence limits about effect measures (2008): the
    interval of a difference from those of both.
    """
    if np.isnan([found.lower, reference.mean]).any():
        return None
    is_above = found.mean > reference.mean
    own = found.mean - found.lower if is_above else found.upper - found.mean
    other = reference.upper - reference.mean if is_above else reference.mean - reference.lower
    return bool(abs(found.mean - reference.mean) > np.hypot(own, np.nan_to_num(other)))


def _gap(unlearned: np.ndarray, retrained: np.ndarray) -> dict:
    """Distance between two means, and the interval of the paired differences, folded at 0."""
    mean, lower, upper = student(unlearned - retrained)
    ends = np.abs([lower, upper])
    least = 0.0 if lower <= 0 <= upper else ends.min()
    row = _row(Interval(abs(mean), least, ends.max()), Interval(0.0, np.nan, np.nan), unlearned)
    return row | {"differs": None if np.isnan(lower) else bool(least > 0)}
