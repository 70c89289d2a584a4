"""What the erase phases of methods add: every method beside its repair phases alone."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from palimpsest.unlearning.evaluate.gap_tables import gap_tables
from palimpsest.unlearning.evaluate.placebos import CONTROLS, FORGET
from palimpsest.unlearning.evaluate.rules import Rules
from palimpsest.unlearning.evaluate.samples import Problem, UnlearnedModels
from palimpsest.unlearning.evaluate.scores import Evaluation, Retraining
from palimpsest.unlearning.kinds import ABLATION, GAP_SUMMARY
from palimpsest.unlearning.run.setups import ENDS

WHOLE, REPAIR = "whole", "repair"  # the parts of a method that are compared


def ablation_table(
    problem: Problem,
    methods: Iterable[UnlearnedModels],
    rules: Rules,
    cost: Retraining,
    parts: Mapping[str, str],
) -> pd.DataFrame:
    """The table `unlearning_ablation` of one problem.

    `methods` are the methods in `parts`, and their repair phases alone under the names to which
    `parts` maps them. Scores are those of the first repetition of the first set-up, and shares of
    the gap those of `Problem.stock`.
    """
    named = {name: (name, WHOLE) for name in parts}
    named |= {alone: (name, REPAIR) for name, alone in parts.items()}
    own = [each for each in methods if each.name not in ENDS]
    by_role = gap_tables(problem, own)[GAP_SUMMARY.name].pivot(
        index="method", columns="string_role", values="share"
    )
    rows = []
    for each in own:
        method, part = named[each.name]
        _, score = Evaluation(problem, each, rules).repetition(problem.setups[0], 0, cost)
        of_method = by_role.reindex(columns=[FORGET, *CONTROLS]).loc[each.name]
        found = {
            "method": method,
            "part": part,
            "share": of_method[FORGET],
            "control_share": np.fmax(*of_method[list(CONTROLS)]),
        }
        rows.append({**score, **found})
    return pd.DataFrame(rows).sort_values(["method", "part"], kind="stable")[ABLATION.names]
