"""How well a checkpoint knows the answer of each record, from what it says of every token.

Source of the numbers: Maini et al., TOFU (2024), and open-unlearning's code; Wang et al. (2025) for
exact memorisation and extraction strength.
"""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd

from palimpsest.audit.checkpoints.kinds import ANSWER, ANSWERS, PARAPHRASED, PERTURBED, SCORES
from palimpsest.audit.checkpoints.rouge import rouge_l_recall
from palimpsest.audit.membership.attack import lowest_mean
from palimpsest.making import makes, reads
from palimpsest.unlearning.evaluate.extraction import extraction_strength

SHARE = 0.4  # of the least probable tokens, as MUSE and open-unlearning take for Min-K%
LEAST_DEVIATION = 1e-3  # where the model has no doubt, of a token that it draws itself
LEAST_PROBABILITY = 1e-10  # is added to the probability of a true answer


@reads(answers=ANSWERS)
@makes(SCORES)
def scores(answers: pd.DataFrame) -> pd.DataFrame:
    """The table `checkpoint_scores` of a table `checkpoint_answers`.

    The end token counts for loss and probability, and for nothing else. The truth ratio is the
    probability of the false answers over that of the true one. A probability is exp(-loss), and
    that of several answers is of their mean loss. The true answer is a paraphrase, if the record
    has one, so that what counts is not the wording of the training data.
    """
    own = answers[answers["version"] == ANSWER].reset_index(drop=True)
    n_tokens = own["log_probs"].map(len).to_numpy()
    loss = _losses(own)
    log_probs, means, deviations, ranks = (
        [np.asarray(values[:-1], dtype=float) for values in own[name]]
        for name in ("log_probs", "means", "deviations", "ranks")
    )
    standard = [
        (log_prob - mean) / np.maximum(deviation, LEAST_DEVIATION)
        for log_prob, mean, deviation in zip(log_probs, means, deviations, strict=True)
    ]
    right = [rank == 1 for rank in ranks]
    n_last = np.array([np.append(~row[::-1], True).argmax() for row in right])
    found = own.assign(
        n_tokens=n_tokens,
        loss=loss,
        probability=np.exp(-loss),
        rouge_l_recall=[*map(rouge_l_recall, own["answer"], own["generated"])],
        exact_match=(own["answer"].str.strip() == own["generated"].str.strip()).astype(float),
        exact_memorisation=[_mean(row) for row in right],
        extraction_strength=extraction_strength(n_last, np.maximum(n_tokens - 1, 1)),
        truth_ratio=_truth_ratio(answers, own["id"], loss),
        zlib=-loss / [len(zlib.compress(text.encode())) for text in own["predicted"]],
        min_k=_lowest(log_probs),
        min_k_plus=_lowest(standard),
    )
    return found[SCORES.names]


def _losses(answers: pd.DataFrame) -> np.ndarray:
    """float64[answers]: nats per token, with the end token."""
    return np.array([-np.mean(values, dtype=float) for values in answers["log_probs"]])


def _truth_ratio(answers: pd.DataFrame, ids: pd.Series, loss: np.ndarray) -> np.ndarray:
    """float64[records]; NaN for a record without false answers."""
    losses = answers.assign(loss=_losses(answers))
    means = losses.groupby(["version", "id"])["loss"].mean()

    def of(version: str) -> np.ndarray:
        known = means[version] if version in means.index else pd.Series(dtype=float)
        return known.reindex(ids).to_numpy()

    paraphrased = of(PARAPHRASED)
    true = np.where(np.isnan(paraphrased), loss, paraphrased)
    return np.exp(-of(PERTURBED)) / (np.exp(-true) + LEAST_PROBABILITY)


def _mean(values: np.ndarray) -> float:
    """The mean; 0 for an answer that is an end token alone."""
    return float(values.mean()) if len(values) else 0.0


def _lowest(of_answers: list[np.ndarray]) -> np.ndarray:
    """float64[answers]; 0 for an answer that is an end token alone."""
    return lowest_mean([values if len(values) else np.zeros(1) for values in of_answers], SHARE)
