"""Datasets of strings that are repeated in every epoch, and of fresh strings that never are."""

from collections import Counter

import numpy as np
import pandas as pd

from palimpsest.datasets.build import DatasetRequest, tabulate
from palimpsest.datasets.strings import string_id
from palimpsest.information.interventions import FRESH


def repeated_or_fresh(request: DatasetRequest) -> pd.DataFrame:
    """Distinct training strings, and distinct strings that are never trained on.

    All strings of a seed are drawn together and then shuffled, because frequent strings are drawn
    early. Both variants have the same strings that are never trained on, and the repeated strings
    are the fresh ones of the first epoch. The epoch of a fresh string is its `cohort`.

    Options: `size`, the number of training strings in an epoch; `epochs`; `tests`, the number of
    strings that are never trained on.
    """
    size, epochs, tests = (request.options[name] for name in ("size", "epochs", "tests"))
    lower = "information/finetuned/size or information/finetuned/tests"
    drawn = request.sampler.validation(tests + size * epochs, set(), lower)
    order = np.random.default_rng(request.sampler.seed).permutation(len(drawn))
    shuffled = [drawn[place] for place in order]
    never, training = Counter(shuffled[:tests]), shuffled[tests:]
    if request.variant != FRESH:
        return tabulate(request, Counter(training[:size]), never)
    epoch_of = {string_id(string): place // size + 1 for place, string in enumerate(training)}
    table = tabulate(request, Counter(training), never)
    return table.assign(cohort=table["string_id"].map(epoch_of).astype("Int64"))
