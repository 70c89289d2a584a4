"""Estimates of density against the language's exact probabilities.

The exact probability of a string is its density under the distribution that the training strings
are a sample of. So an estimator that sees density orders strings as their probabilities do, also
strings that were never trained on. An estimator that sees only copies orders trained strings, whose
number of copies follows the probability, and no others.
"""

from collections.abc import Iterator, Sequence

import pandas as pd

from palimpsest.datasets.choices import candidates
from palimpsest.density.associations import spearman, spearman_given
from palimpsest.density.kinds import LENGTH, TRAINED, TRUTH, UNSEEN
from palimpsest.density.leakage_tables import RESULTS, Results, results_of, supports
from palimpsest.making import makes, reads


@reads(**RESULTS)
@makes(TRUTH)
def truth(**results: Sequence) -> pd.DataFrame:
    """How well each estimate of density orders strings as the exact probabilities do.

    `results` are those of all seeds, see `results_of`.
    """
    return pd.concat(map(truth_table, results_of(**results)), ignore_index=True)


def truth_table(run: Results) -> pd.DataFrame:
    strings = run.strings.set_index("string_id")
    length = strings["text"].str.split().str.len()
    rows = []
    for kind, some in ((TRAINED, strings["count"] > 0), (UNSEEN, candidates(strings))):
        names = strings.index[some]
        log_prob = strings.loc[names, "log_prob"]
        for about, support in every_estimator(run, length):
            found = support.loc[names]
            is_length = about["estimator"] == LENGTH
            rows.append(
                {
                    **run.trace.run,
                    "string_role": kind,
                    **about,
                    "correlation": spearman(found, log_prob),
                    "given_length": float("nan")
                    if is_length
                    else spearman_given(found, log_prob, length.loc[names]),
                    "n_strings": len(names),
                }
            )
    return pd.DataFrame(rows)[TRUTH.names]


def every_estimator(run: Results, length: pd.Series) -> Iterator[tuple[dict, pd.Series]]:
    """Every setting of every estimator with its values by string; the last is minus the length."""
    yield from supports(run)
    yield {"embedding": None, "estimator": LENGTH, "bandwidth_or_k": None}, -length
