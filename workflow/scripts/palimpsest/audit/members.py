"""The dataset of a target that is trained here."""

from collections import Counter

import numpy as np
import pandas as pd

from palimpsest.datasets.build import DatasetRequest, tabulate
from palimpsest.errors import UserError


def members(request: DatasetRequest) -> pd.DataFrame:
    """All records that are said to be trained on, with their copies; the others are its test set.

    Raises `UserError` if nothing says which records these are.
    """
    corpus = request.sampler.corpus
    if corpus.is_trained is None or corpus.is_trained.all():
        raise UserError(
            f"{corpus.name}: no record is said to be no member, so an audit of a model that is "
            "trained on it cannot be checked; give some records a split such as holdout, or false "
            "in the column trained"
        )
    train, test = Counter(), Counter()
    for place in np.flatnonzero(corpus.is_trained):
        train[corpus.strings[place]] += int(corpus.copies[place])
    for place in np.flatnonzero(~corpus.is_trained):
        test[corpus.strings[place]] = 1
    return tabulate(request, train=train, test=test)
