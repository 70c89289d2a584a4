"""A lower bound of epsilon from one model: records in pairs, of which a coin chose the member."""

from __future__ import annotations

import numpy as np
import pandas as pd

from palimpsest.allowed import CONFIDENCES, COUNTS, checked_number
from palimpsest.arguments import takes
from palimpsest.audit.membership import ATTACKS
from palimpsest.audit.membership.attack import POPULATION, PREFIXED, RETRAINED
from palimpsest.statistics import CONFIDENCE, upper_bound


@takes(n_right=COUNTS, n_guesses=COUNTS)
def one_run_epsilon(n_right: int, n_guesses: int, confidence: float = CONFIDENCE) -> float:
    """Lower bound of epsilon from guesses about independent fair coins, after one training.

    Under epsilon-differential privacy, a model tells of a coin at most that one side is
    exp(epsilon) times as probable as the other, whatever is known of the others. So the number of
    right guesses is at most binomial with the probability 1 / (1 + exp(-epsilon)), and the bound is
    where this probability is Clopper and Pearson's lower bound. It is above the true epsilon with a
    probability of at most 1 - confidence. A guess may be left out, as long as the coins have no
    part in this.

    A coin that puts a record in or leaves it out tells of the epsilon of adding or removing a
    record, as accountants of DP-SGD give it. A coin that chooses one of two records tells of that
    of replacing one by the other, which is up to twice as large: half of the bound then holds for
    adding or removing.

    Parameters
    ----------
    n_right, n_guesses : right guesses, and all
    confidence : float in (0, 1)

    Returns 0 or more; without an error, n guesses give 2.0 for 24 and 3.0 for 64.

    Raises `ValueError` if the confidence is not in (0, 1), or if there are more right guesses than
    guesses.

    Source: Steinke, Nasr and Jagielski, Privacy Auditing with One (1) Training Run (arXiv
    2305.08846), theorem 3.1.
    """
    checked_number("confidence", confidence, CONFIDENCES)
    if not 0 <= n_right <= n_guesses:
        raise ValueError(f"n_right must be from 0 to n_guesses: {n_right} of {n_guesses}")
    if n_guesses == 0:
        return 0.0
    wrong = float(upper_bound(n_guesses - n_right, n_guesses, 1 - confidence))
    return max(0.0, float(np.log1p(-wrong) - np.log(wrong))) if wrong < 1 else 0.0


def sees_no_coin(detector: str) -> bool:
    """Whether a detector's scores depend on the model and the text alone.

    Others are given records whose side of the coin is known, or models that were trained on such
    records: their guesses depend on each other, and the bound does not hold.
    """
    name, *_ = detector.split("/")
    return name in ATTACKS and not {POPULATION, PREFIXED, RETRAINED} & {*ATTACKS[name].needs}


def guesses(scores: pd.DataFrame) -> pd.DataFrame:
    """The guess about each pair: the record with the higher score is the member.

    A pair is a group of two records of which the target was trained on one; whether a coin chose
    it, the table cannot say. `scores` has the columns `group`, `trained`, `score` and `copies` of
    one detector.

    Returns a row per pair with its `copies`, and `right`: 1, 0, or null for equal scores, which
    give no guess.
    """
    sides = scores.groupby("group")["trained"].agg(["size", "sum"])
    pairs = sides.index[(sides["size"] == 2) & (sides["sum"] == 1)]
    paired = scores[scores["group"].isin(pairs)].sort_values(["group", "trained"])
    apart = paired["score"].to_numpy()[1::2] - paired["score"].to_numpy()[::2]
    right = pd.array(np.where(apart == 0, None, apart > 0), "boolean")
    return pd.DataFrame({"copies": paired["copies"].to_numpy()[1::2], "right": right})
