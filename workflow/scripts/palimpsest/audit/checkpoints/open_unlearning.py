"""Results of each checkpoint by the names of open-unlearning, as its code computes them.

Where this library computes something else, the number here is open-unlearning's: the extraction
strength of an answer whose last token is not predicted is 1 / tokens, and not 0.

Source: github.com/locuslab/open-unlearning, src/evals/metrics and configs/eval/tofu_metrics.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from palimpsest.audit.checkpoints.compared import Compared
from palimpsest.audit.checkpoints.kinds import FORGET, HOLDOUT, RETAIN, RETRAINED
from palimpsest.records.roc_curves import auc
from palimpsest.unlearning.attacks.membership import privleak

# The names of means over the records of a split
OF_SPLITS = {
    (FORGET, "probability"): "forget_Q_A_Prob",
    (FORGET, "rouge_l_recall"): "forget_Q_A_ROUGE",
    (FORGET, "truth_ratio"): "forget_truth_ratio",
    (FORGET, "exact_memorisation"): "exact_memorization",
    (RETAIN, "probability"): "retain_Q_A_Prob",
    (RETAIN, "rouge_l_recall"): "retain_Q_A_ROUGE",
    (RETAIN, "truth_ratio"): "retain_Truth_Ratio",
}
ATTACKS = {
    "mia_loss": ("loss", -1),
    "mia_zlib": ("zlib", 1),
    "mia_min_k": ("min_k", 1),
    "mia_min_k_plus_plus": ("min_k_plus", 1),
}
OF_PRIVLEAK = "mia_min_k"


def results(
    found: Compared, metrics: pd.DataFrame, qualities: pd.DataFrame
) -> dict[str, dict[str, float]]:
    """The results of each checkpoint; forget quality and PrivLeak against a retrained model.

    This is the first retrained model of the set that is not the checkpoint itself.
    """
    made = {name: _of_records(found, name) for name in found.scores}
    for row in metrics.itertuples():
        if name := OF_SPLITS.get((row.split, row.metric)):
            made[row.checkpoint][name] = row.value
    for row in qualities.drop_duplicates("checkpoint").itertuples():
        made[row.checkpoint]["forget_quality"] = row.p_value
    for name, of_model in made.items():
        against = next((one for one in found.of_role(RETRAINED) if one != name), None)
        if against and OF_PRIVLEAK in of_model:
            pair = (np.array([made[one][OF_PRIVLEAK]]) for one in (name, against))
            of_model["privleak"] = 100 * privleak(*pair).mean
    return {name: dict(sorted(of_model.items())) for name, of_model in made.items()}


def _of_records(found: Compared, name: str) -> dict[str, float]:
    scores, forget, holdout = found.scores[name], found.is_of(FORGET), found.is_of(HOLDOUT)
    of_forget = scores[forget]
    least = 1 / np.maximum(of_forget["n_tokens"] - 1, 1)
    strength = np.maximum(of_forget["extraction_strength"], least).mean()
    either = forget | holdout
    attacks = ATTACKS if holdout.any() else {}
    return {
        "extraction_strength": float(strength),
        **{
            attack: auc(sign * scores.loc[either, column].to_numpy(), forget[either])
            for attack, (column, sign) in attacks.items()
        },
    }
