"""Corpora of records, from a few texts."""

import numpy as np

from palimpsest.corpora.records import Records
from palimpsest.corpora.records_corpus import RecordsCorpus


def corpus(texts, groups=None, **columns) -> RecordsCorpus:
    """The corpus `mine`, whose records are r0, r1, ...; `columns` are other fields of `Records`."""
    ids = np.array([f"r{n}" for n in range(len(texts))], dtype=object)
    groups = ids if groups is None else np.array(groups, dtype=object)
    arrays = {name: np.array(values) for name, values in columns.items()}
    trained = arrays.pop("trained", None)
    return RecordsCorpus("mine", Records(ids, np.array(texts, object), trained, groups, **arrays))
