"""Variants that need only the corpus: base, and two ways to deduplicate it.

Source: Learning Without Memorizing Considered Infeasible, section 4 and appendix G.
"""

from collections import Counter

import pandas as pd

from palimpsest.datasets.build import Asked, tabulate


def base(asked: Asked) -> pd.DataFrame:
    """Independent strings of the corpus."""
    return tabulate(asked, Counter(asked.sampler.train(asked.size)))


def dedup(asked: Asked) -> pd.DataFrame:
    """Each distinct string of base once."""
    return tabulate(asked, Counter(dict.fromkeys(asked.sampler.train(asked.size), 1)))


def dedup_matched(asked: Asked) -> pd.DataFrame:
    """As many distinct strings as `dedup`, from the high-entropy counterpart (the paper's dedup*).

    Probabilities are those of the counterpart, because a model learns the counterpart from this
    dataset. The test strings are those of base; they are also strings of the counterpart.
    """
    n_distinct = len(set(asked.sampler.train(asked.size)))
    train = Counter(asked.sampler.distinct_of_counterpart(n_distinct))
    return tabulate(asked, train, learned=asked.sampler.counterpart)
