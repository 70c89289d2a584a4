"""Evaluations of unlearning methods: the tables of a problem, from the files of its models.

The files of the models are large, and are not read at once. In all functions, `unlearned` and
`models` are files of every method, see `Problem.methods`. `problem` are arguments of `problem_of`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from palimpsest.making import makes
from palimpsest.unlearning.evaluate.ablation import ablation_table
from palimpsest.unlearning.evaluate.analyses import agreement, hardness
from palimpsest.unlearning.evaluate.confidence_samples import confidence_samples
from palimpsest.unlearning.evaluate.equality import refuse_equal
from palimpsest.unlearning.evaluate.gap_tables import gap_tables
from palimpsest.unlearning.evaluate.memorised import memorisation
from palimpsest.unlearning.evaluate.metrics import metrics
from palimpsest.unlearning.evaluate.placebos import measured_strings
from palimpsest.unlearning.evaluate.rules import Rules
from palimpsest.unlearning.evaluate.samples import problem_of, read_trained
from palimpsest.unlearning.evaluate.scores import evaluate, retraining
from palimpsest.unlearning.evaluate.variance import variance_table
from palimpsest.unlearning.interventions import RETAIN
from palimpsest.unlearning.kinds import (
    ABLATION,
    AGREEMENT,
    CONFIDENCES,
    EPSILONS,
    HARDNESS,
    MEMORISATION,
    METRICS,
    VARIANCE,
)
from palimpsest.unlearning.run.jobs import RESIDUAL, SCORED

Tables = dict[str, pd.DataFrame]


@makes(*SCORED)
def forgetting(
    unlearned: Sequence[str],
    models: Sequence[str],
    manifests: Sequence[str],
    seed: int,
    *,
    confidence: str,
    thresholds: str,
    delta: float,
    bin_width: float,
    cutoff: float,
    epochs: int,
    batch_size: int,
    **problem,
) -> Tables:
    """Forgetting quality, utility and cost of every method, and effects of the evaluation.

    `manifests` are those of the retrained models. For the parameters, see `Rules` and `retraining`.
    """
    problem = problem_of(seed=seed, **problem)
    rules = Rules(confidence, thresholds, delta, bin_width, cutoff)
    cost = retraining(problem, manifests, epochs, batch_size)
    methods = problem.methods(unlearned, models)
    found = evaluate(problem, refuse_equal(problem, methods), rules, cost)
    found[HARDNESS.name] = hardness(problem, found[EPSILONS.name])
    found[AGREEMENT.name] = agreement(problem, found[EPSILONS.name])
    methods = problem.methods(unlearned, models)
    found[CONFIDENCES.name] = confidence_samples(problem, methods, rules, found[HARDNESS.name])
    return found


@makes(ABLATION)
def ablation(
    unlearned: Sequence[str],
    models: Sequence[str],
    manifests: Sequence[str],
    seed: int,
    *,
    confidence: str,
    thresholds: str,
    delta: float,
    bin_width: float,
    cutoff: float,
    epochs: int,
    batch_size: int,
    parts: Mapping[str, str],
    **problem,
) -> pd.DataFrame:
    """What the erase phases of methods add; `parts` maps methods to their repair phases alone."""
    problem = problem_of(seed=seed, **problem)
    rules = Rules(confidence, thresholds, delta, bin_width, cutoff)
    cost = retraining(problem, manifests, epochs, batch_size)
    return ablation_table(problem, problem.methods(unlearned, models), rules, cost, parts)


@makes(METRICS)
def other_metrics(
    unlearned: Sequence[str], models: Sequence[str], seed: int, **problem
) -> pd.DataFrame:
    """Other measures of forgetting: membership inference, relearning, distances and more."""
    problem = problem_of(seed=seed, **problem)
    methods = problem.methods(unlearned, models, with_tokens=True)
    return metrics(problem, refuse_equal(problem, methods))


@makes(*RESIDUAL)
def residual_tables(
    unlearned: Sequence[str],
    models: Sequence[str],
    retrained: Sequence[str],
    seed: int,
    *,
    loss_threshold: float,
    accuracy_threshold: float,
    **problem,
) -> Tables:
    """What remains memorised: memorisation, the gap that is closed, and its variance.

    For the thresholds, see `palimpsest.unlearning.evaluate.memorised.memorisation`.
    """
    problem = problem_of(retrained=retrained, seed=seed, **problem)
    places = np.unique(np.concatenate([places for _, places in measured_strings(problem)]))
    curves = read_trained(retrained, RETAIN, problem.string_ids[places], "all")
    return {
        **gap_tables(problem, problem.methods(unlearned, models)),
        MEMORISATION.name: memorisation(
            problem,
            problem.methods(unlearned, models),
            curves,
            loss_threshold,
            accuracy_threshold,
        ),
        VARIANCE.name: variance_table(problem, problem.methods(unlearned, models)),
    }
