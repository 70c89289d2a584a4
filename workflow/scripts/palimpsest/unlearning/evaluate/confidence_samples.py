"""The confidences of single models in some forget strings, for histograms."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from palimpsest.unlearning.attacks.confidence import logit_scaled_confidence
from palimpsest.unlearning.evaluate.rules import Rules
from palimpsest.unlearning.evaluate.samples import Predictions, Problem, UnlearnedModels
from palimpsest.unlearning.kinds import CONFIDENCES
from palimpsest.unlearning.run.setups import RETRAINED


def confidence_samples(
    problem: Problem, methods: Iterable[UnlearnedModels], rules: Rules, hardness: pd.DataFrame
) -> pd.DataFrame:
    """The table `unlearning_confidences`: every model's confidence in three forget strings.

    The models of a method are the distinct models of the evaluation (`Problem.stock`).

    Parameters
    ----------
    problem : Problem
    methods : iterable of UnlearnedModels, from `Problem.methods`
    rules : Rules, for the confidence
    hardness : the table `unlearning_hardness` of the problem; see `chosen_strings`

    Source: Are we making progress in unlearning?, sections A.12 and A.15, figures 18 and 22.
    """
    chosen = chosen_strings(hardness)
    places = pd.Index(problem.string_ids).get_indexer(chosen)
    stock = problem.stock
    each = np.arange(problem.n_reference)
    known = [(RETRAINED, problem.reference, each, np.zeros_like(each))]
    known += [(one.name, one.of(stock), *one.keys(stock)) for one in methods]
    parts = [
        pd.DataFrame(
            {
                **problem.keys,
                "method": name,
                "origin": np.repeat(origins, len(chosen)),
                "unlearning_replicate": np.repeat(unlearning_replicates, len(chosen)),
                "string_id": np.tile(np.asarray(chosen, dtype=object), len(origins)),
                "confidence": confidences(models, places, rules).ravel(),
            }
        )
        for name, models, origins, unlearning_replicates in known
    ]
    return pd.concat(parts, ignore_index=True)[CONFIDENCES.names]


def chosen_strings(hardness: pd.DataFrame) -> list[str]:
    """The forget strings with the largest, the median and the smallest sum of epsilon.

    If there are fewer than three forget strings, all are chosen, none of them twice.
    """
    ranked = hardness.sort_values("epsilon_sum", ascending=False, kind="stable")
    last = len(ranked) - 1
    return list(dict.fromkeys(ranked["string_id"].iloc[[0, last // 2, last]]))


def confidences(models: Predictions, places: np.ndarray, rules: Rules) -> np.ndarray:
    """Logit-scaled confidences float64[models, strings]."""
    of_strings = models.restricted(places)
    return logit_scaled_confidence(of_strings.nll, of_strings.n_tokens, rules.confidence)
