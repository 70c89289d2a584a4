"""Propensity: how often a model writes strings unasked, beside the number that is to be expected.

A language with exact probabilities says how often each of its strings comes by chance. A model that
writes strings of its training data more often than that has them by heart; for strings that it was
never trained on, the same count is the placebo.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from palimpsest.arguments import Names, Numbers, Texts, takes
from palimpsest.statistics import clopper_pearson


@takes(
    generated=Texts(),
    strings=Texts("strings"),
    log_probability=Numbers("strings"),
    group=Names("strings"),
)
def propensity(
    generated: Sequence[str],
    strings: Sequence[str],
    log_probability: ArrayLike,
    group: Sequence[str],
) -> pd.DataFrame:
    """How many free generations begin with a string of each group, and how many are expected.

    If the model is the language, the number is binomial with the sum of the strings' probabilities,
    which gives the exact interval of the ratio. Of strings that the language does not have, none is
    expected, and the ratio and its interval are NaN.

    Parameters
    ----------
    generated : str[samples]
    strings : distinct texts, of which none begins with another one of its group
    log_probability : float[strings], nats: that a text of the language begins with the string, see
        `Grammar.log_prefix_probability`
    group : [strings], such as trained and unseen

    Returns a row per group: `n_strings`, `n_samples`, `count`, `expected`, and `ratio` of the two
    with its 95 % interval `lower` to `upper` (Clopper and Pearson).

    Raises `ValueError` if a string begins with another one of its group.
    """
    table = pd.DataFrame({"text": strings, "log_prob": np.asarray(log_probability, float)})
    texts, n = np.sort(np.asarray(generated, dtype=str)), len(generated)
    rows = []
    for name, of_group in table.groupby(np.asarray(group), sort=False):
        ordered = np.sort(of_group["text"].to_numpy(dtype=str))
        _check_apart(ordered)
        # Texts that begin with a string are in a row after it in the order of the alphabet.
        places = np.searchsorted(ordered, texts, side="right") - 1
        count = sum(
            place >= 0 and text.startswith(ordered[place])
            for place, text in zip(places, texts, strict=True)
        )
        chance = float(np.exp(of_group["log_prob"]).sum())
        lower, upper = clopper_pearson(count / n, n)
        by_chance = chance if chance > 0 else math.nan
        rows.append(
            {
                "group": name,
                "n_strings": len(of_group),
                "n_samples": n,
                "count": int(count),
                "expected": n * chance,
                "ratio": count / n / by_chance,
                "lower": lower / by_chance,
                "upper": upper / by_chance,
            }
        )
    return pd.DataFrame(rows)


def _check_apart(ordered: np.ndarray) -> None:
    for first, second in pairwise(ordered.tolist()):
        if second.startswith(first):
            raise ValueError(f"{second!r} begins with {first!r}; count one of the two")
