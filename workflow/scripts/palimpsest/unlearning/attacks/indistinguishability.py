"""Whether the models of a method can be told from retrained models: tests with known error rates.

The tests use models that share neither an original nor a retrained model (`Problem.stock`), because
others are not independent.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from palimpsest.unlearning.attacks.joint_attacks import joint_attack, joint_p
from palimpsest.unlearning.attacks.lower_bounds import epsilon_lower_bound
from palimpsest.unlearning.attacks.permutation import against_chance, relative_quality
from palimpsest.unlearning.attacks.three_samples import relative_test
from palimpsest.unlearning.evaluate.rules import Rules
from palimpsest.unlearning.evaluate.samples import Problem
from palimpsest.unlearning.run.setups import NONE

# What is undefined where several models come from one original model
OF_METHOD = (
    *("null_quality", "null_lower", "null_upper", "p_value", "excess_epsilon"),
    *("n_told", "n_bounded", "largest_bound", "joint_errors", "joint_models", "joint_p"),
    "relative_p",
)
OF_STRING = ("floor", "excess", "p_value", "q_value", "lower_bound")
FALSE_DISCOVERIES = 0.05  # expected share of false strings among those that are told apart


def tell_apart(
    problem: Problem,
    method: str,
    samples: tuple[np.ndarray, np.ndarray],
    rules: Rules,
    innocent: np.ndarray | None = None,
) -> tuple[dict, pd.DataFrame]:
    """A row of `unlearning_tests`, without `relative_quality`, and rows of
    `unlearning_string_tests`.

    `samples` are the confidences float[models, forget strings] of the method's models and of the
    retrained models. `innocent` holds those of innocent models, if there are any. All
    methods of a problem have the same relabellings.

    Where several models come from one original model, there is no test and no bound: models that
    are not independent cannot be relabelled.
    """
    seed = problem.setups[0].seed
    found = against_chance(*samples, rules.delta, rules.thresholds, rules.bin_width, seed=seed)
    bounds = epsilon_lower_bound(*samples, rules.delta)
    attack = joint_attack(*samples)
    keys = {**problem.keys, "method": method}
    null_lower, null_upper = found.null_band
    row = {
        **keys,
        "n_models": len(samples[0]),
        "n_strings": len(found.epsilon),
        "forgetting_quality": found.quality,
        "null_quality": found.null_mean,
        "null_lower": null_lower,
        "null_upper": null_upper,
        "p_value": found.quality_p,
        "excess_epsilon": found.excess.mean(),
        "n_told": int((found.q <= FALSE_DISCOVERIES).sum()),
        "n_bounded": int((bounds > 0).sum()),
        "largest_bound": bounds.max(),
        "joint_errors": attack.errors,
        "joint_models": attack.models,
        "joint_p": joint_p(*samples, seed=seed),
        "relative_p": np.nan
        if innocent is None
        else relative_test(samples[0], innocent, samples[1], seed=seed).p,
    }
    strings = {
        **keys,
        "string_id": problem.string_ids[problem.forget],
        "epsilon": found.epsilon,
        "floor": found.floor,
        "excess": found.excess,
        "p_value": found.p,
        "q_value": found.q,
        "lower_bound": bounds,
    }
    if not problem.independent:
        row |= dict.fromkeys(OF_METHOD, np.nan)
        strings |= dict.fromkeys(OF_STRING, np.nan)
    return row, pd.DataFrame(strings)


def placed(rows: Iterable[dict]) -> pd.DataFrame:
    """The table `unlearning_tests` of one problem: every method's place between the two ends."""
    frame = pd.DataFrame(list(rows))
    quality_none = frame.loc[frame["method"] == NONE, "forgetting_quality"]
    worst = quality_none.iloc[0] if len(quality_none) else np.nan
    return frame.assign(
        relative_quality=[
            relative_quality(quality, worst, null_mean)
            for quality, null_mean in zip(
                frame["forgetting_quality"], frame["null_quality"], strict=True
            )
        ]
    )
