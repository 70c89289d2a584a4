"""Variants that need only the corpus: base, and two ways to deduplicate it.

Source: Learning Without Memorizing Considered Infeasible, section 4 and appendix G.
"""

from collections import Counter

import pandas as pd

from palimpsest.datasets.build import DatasetRequest, tabulate


def base(request: DatasetRequest) -> pd.DataFrame:
    """Independent strings of the corpus."""
    return tabulate(request, Counter(request.sampler.train(request.size)))


def dedup(request: DatasetRequest) -> pd.DataFrame:
    """Each distinct string of base once."""
    return tabulate(request, Counter(dict.fromkeys(request.sampler.train(request.size), 1)))


def dedup_matched(request: DatasetRequest) -> pd.DataFrame:
    """As many distinct strings as `dedup`, from the high-entropy counterpart (the paper's dedup*).

    Probabilities are those of the counterpart, because a model learns the counterpart from this
    dataset. The test strings are those of base; they are also strings of the counterpart.
    """
    n_distinct = len(set(request.sampler.train(request.size)))
    train = Counter(request.sampler.distinct_of_counterpart(n_distinct))
    return tabulate(request, train, learned=request.sampler.counterpart)
