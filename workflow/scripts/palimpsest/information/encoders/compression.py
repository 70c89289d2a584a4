"""How well a linear probe compresses labels: the length of an online code.

Source: Voita and Titov, Information-theoretic probing with minimum description length (2020),
sections 2.2 and 4; the paper on information measures of neurons, appendix C.3.
"""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.errors import UserError

# Ends of the parts in which labels are sent, as shares of all of them: those of the source
ENDS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
MOST_STEPS = 100  # of the probe's optimiser: a probe that is not quite trained is a code, too


def compression(values: ArrayLike, labels: ArrayLike, seed: int = 0) -> float:
    """The bits of an even code for labels, divided by those of an online code.

    The labels are sent part after part. Each part is coded by a probe (logistic regression on
    activations that are divided by their standard deviations) that is trained on the parts before
    it; the first part is coded evenly. Labels that activations do not tell have a compression of
    about 1, or a little below.

    Parameters
    ----------
    values : float[n, neurons], activations
    labels : [n], what is to be told
    seed : of the order in which labels are sent

    Raises `UserError` if there are not two labels or more, or fewer activations than labels.

    Source: Voita and Titov (2020), equations 2 and 3.
    """
    values = np.asarray(values, dtype=np.float64)
    names, codes = np.unique(np.asarray(labels), return_inverse=True)
    if len(names) < 2 or len(values) != len(codes):
        raise UserError(
            f"compression: {len(values)} activations and {len(codes)} labels, {len(names)} of them "
            "distinct; give one label for each, and two labels or more"
        )
    order = np.random.default_rng(seed).permutation(len(codes))
    values, codes = values[order], codes[order]
    ends = np.unique(np.ceil(np.array(ENDS) * len(codes)).astype(int))
    bits = ends[0] * np.log2(len(names))
    for begin, end in pairwise(ends):
        told = _probabilities(values[:begin], codes[:begin], values[begin:end], len(names))
        bits -= np.log2(told[np.arange(end - begin), codes[begin:end]]).sum()
    return float(len(codes) * np.log2(len(names)) / bits)


def _probabilities(known: np.ndarray, codes: np.ndarray, asked: np.ndarray, k: int) -> np.ndarray:
    """Probabilities float[asked, k] of labels by a probe that is trained on known ones.

    They are mixed with an even distribution, which counts as one more known label: a label that is
    not known yet has a probability above 0.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    found = np.full((len(asked), k), 1 / k)
    present = np.unique(codes)
    if len(present) > 1:
        middle, spread = known.mean(axis=0), known.std(axis=0)
        varies = spread > 1e-6 * np.maximum(np.abs(middle), 1e-12)
        probe = LogisticRegression(max_iter=MOST_STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            probe.fit(_scaled(known, middle, spread, varies), codes)
        told = np.zeros_like(found)
        told[:, present] = probe.predict_proba(_scaled(asked, middle, spread, varies))
        found = (len(known) * told + found) / (len(known) + 1)
    return found


def _scaled(values, middle, spread, varies) -> np.ndarray:
    """Activations that vary, divided by standard deviations; a constant if none does."""
    if not varies.any():
        return np.zeros((len(values), 1))
    # Activations far outside of what is known would make the probe too sure.
    return np.clip((values[:, varies] - middle[varies]) / spread[varies], -5, 5)
