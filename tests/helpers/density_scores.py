"""Tables of the section density from given scores, one value for each seed."""

import itertools

import numpy as np
import pandas as pd

from palimpsest.density import kinds
from palimpsest.density.interventions import LEAK_CONDITIONS
from palimpsest.density.kinds import GAUSSIAN, HIDDEN, NGRAMS, TRAINED, UNSEEN

SEEDS = range(5)
STUDY = {"model": "opt-1.3b-twin", "language": "L3", "size": 72}


def by_seed(values, **columns) -> pd.DataFrame:
    """A table with a row for each seed; `values` are columns by name, of one value per seed."""
    return pd.DataFrame(
        {**STUDY, "seed": range(len(next(iter(values.values())))), **values}
    ).assign(**columns)


def separation(
    auc=lambda seed, setting, exact, paraphrases, embedding: 0.5, placebo=0.5, kernels=None
):
    """A table `separation`; `auc` gives the area under the curve."""
    kernels = kernels or {GAUSSIAN: (0.1, 1.0), "exponential": (0.01,), kinds.TOP_K: (5.0,)}
    settings = [(kernel, setting) for kernel, some in kernels.items() for setting in some]
    rows = [
        {
            **STUDY,
            "seed": seed,
            "n_copies": leak.n_copies,
            "paraphrases": leak.paraphrases,
            "embedding": embedding,
            "estimator": kernel,
            "bandwidth_or_k": setting,
            "auc": auc(seed, setting, *leak, embedding) if kernel == next(iter(kernels)) else 0.0,
            "placebo": placebo,
            "n_strings": 20,
        }
        for seed, leak, embedding, (kernel, setting) in itertools.product(
            SEEDS, LEAK_CONDITIONS, (HIDDEN, NGRAMS), settings
        )
    ]
    return pd.DataFrame(rows)[kinds.SEPARATION.names]


def retrieval(hidden, ngrams) -> pd.DataFrame:
    """A table `retrieval`; recall at five is always 0."""
    parts = [
        by_seed({"recall": values}, embedding=name, k=10, ndcg=0.9, chance=0.14, n_strings=9)
        for name, values in ((HIDDEN, hidden), (NGRAMS, ngrams))
    ]
    at_five = [each.assign(k=5, recall=0.0, chance=0.07) for each in parts]
    return pd.concat([*parts, *at_five], ignore_index=True)[kinds.RETRIEVAL.names]


def truth(values: dict[float, list[float]], strings=UNSEEN) -> pd.DataFrame:
    """A table `truth`: correlations of every seed, by bandwidth."""
    return pd.concat(
        by_seed(
            {"given_length": own},
            embedding=NGRAMS,
            estimator=GAUSSIAN,
            bandwidth_or_k=bandwidth,
            string_role=strings,
            correlation=0.0,
            n_strings=40,
            variant="base",
        )
        for bandwidth, own in values.items()
    )[kinds.TRUTH.names]


def memorised(trained, unseen, measure="contextual") -> pd.DataFrame:
    """A table `memorised` by n-grams with two bandwidths, and other values by hidden states."""
    parts = [
        by_seed(
            {"association": np.array(values) + shift},
            embedding=embedding,
            string_role=strings,
            bandwidth=bandwidth,
            variant="base",
            measure=measure,
            evidence="same-frequency",
            kernel=GAUSSIAN,
            correlation=0.0,
            given_log_prob=0.0,
            share_never_memorised=0.25 if strings == TRAINED else 0.75,
            share_censored=0.75,
            n_strings=24,
        )
        for strings, values in ((TRAINED, trained), (UNSEEN, unseen))
        for embedding in (HIDDEN, NGRAMS)
        for bandwidth, shift in ((0.1, 0.05), (0.5, -0.05))
    ]
    table = pd.concat(parts, ignore_index=True)
    lifted = np.where(table["embedding"] == HIDDEN, 0.9, table["association"])
    return table.assign(association=0.4, association_censored=lifted)[kinds.MEMORISED.names]
