"""Are strings with more support by other training strings memorised earlier?

The same question about strings that were never trained on is the placebo: what the measures find
there is learning, or a property of the strings, and no memorisation.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from palimpsest.datasets.choices import candidates
from palimpsest.density.associations import beyond_rank, spearman, spearman_given
from palimpsest.density.kinds import MEMORISED, OF_SETTING, TRAINED, UNSEEN
from palimpsest.density.leakage_tables import Results
from palimpsest.memorisation.runs import epoch_of, measured_unseen
from palimpsest.statistics import rank_association

OF_MEASURE = ["measure", "evidence"]


def memorised_table(run: Results, starts: pd.DataFrame, rule: Sequence) -> pd.DataFrame:
    """The table `memorised` of one run.

    Parameters
    ----------
    run : a run and the densities of its training strings
    starts : the run's rows of a table `starts`
    rule : the last arguments of `palimpsest.memorisation.runs.measured_unseen`: largest gap of
        stand-ins, rule for the start, and both thresholds of recollection
    """
    once = run.strings.loc[run.strings["count"] == 1, "string_id"]
    log_prob = run.strings.set_index("string_id")["log_prob"]
    # A string without a threshold cannot be measured; it is not one that is never memorised.
    trained = starts[starts["string_id"].isin(once) & starts["threshold_at_optimum"].notna()]
    parts = (
        (TRAINED, trained, "log_density_others"),
        (UNSEEN, starts_of_unseen(run, rule), "log_density"),
    )
    rows = []
    for strings, measured, column in parts:
        for (measure, evidence), own in measured.groupby(OF_MEASURE, sort=False):
            # Never is later than any epoch.
            start = own.set_index("string_id")["start"].fillna(np.inf)
            for (embedding, kernel, bandwidth), density in run.density.groupby(OF_SETTING):
                support = density.set_index("string_id")[column].loc[start.index]
                rows.append(
                    {
                        **run.trace.run,
                        "strings": strings,
                        "measure": measure,
                        "evidence": evidence,
                        "embedding": embedding,
                        "kernel": kernel,
                        "bandwidth": bandwidth,
                        "correlation": spearman(support, start),
                        "given_log_prob": spearman_given(support, start, log_prob.loc[start.index]),
                        "association": rank_association(
                            start, beyond_rank(support, log_prob.loc[start.index])
                        ),
                        "never": float(np.isinf(start).mean()),
                        "n_strings": len(start),
                    }
                )
    return pd.DataFrame(rows)[MEMORISED.names]


def starts_of_unseen(run: Results, rule: Sequence) -> pd.DataFrame:
    """When strings that were never trained on cross the threshold of each measure."""
    names = run.strings.loc[candidates(run.strings), "string_id"].to_numpy()
    parts = [
        pd.DataFrame(
            {
                "string_id": names[result.is_known],
                "measure": measure,
                "evidence": evidence,
                "start": epoch_of(result.start[result.is_known], run.trace.epochs),
            }
        )
        for (measure, evidence), result in measured_unseen(run.trace, run.strings, *rule).items()
    ]
    return pd.concat(parts, ignore_index=True)
