"""Are strings with more support by other training strings memorised earlier?

The same question about strings that were never trained on is the placebo: what the measures find
in these strings is learning, or a property of the strings, and no memorisation.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from palimpsest.datasets.choices import candidates
from palimpsest.density.associations import beyond_rank, spearman, spearman_given
from palimpsest.density.kinds import MEMORISED, OF_SETTING, TRAINED, UNSEEN
from palimpsest.density.leakage_tables import RESULTS, Results, results_of
from palimpsest.making import makes, reads
from palimpsest.memorisation.all_measures import Thresholds
from palimpsest.memorisation.kinds import STARTS
from palimpsest.memorisation.runs import epoch_of, measured_unseen
from palimpsest.statistics import rank_association
from palimpsest.traces import Trace

OF_MEASURE = ["measure", "evidence"]


@reads(**RESULTS, starts=STARTS)
@makes(MEMORISED)
def memorised(
    datasets: Sequence[pd.DataFrame],
    traces: Sequence[Trace],
    density: Sequence[pd.DataFrame],
    neighbours: Sequence[pd.DataFrame],
    starts: pd.DataFrame,
    **thresholds,
) -> pd.DataFrame:
    """The table `memorised` of all seeds; `thresholds` are the values of `Thresholds` by name."""
    of_seeds = dict(list(starts.groupby("seed")))
    runs = results_of(datasets, traces, density, neighbours)
    chosen = Thresholds(**thresholds)
    parts = [memorised_table(run, of_seeds[run.seed], chosen) for run in runs]
    return pd.concat(parts, ignore_index=True)


def memorised_table(run: Results, starts: pd.DataFrame, thresholds: Thresholds) -> pd.DataFrame:
    """The table `memorised` of one run; `starts` are the run's rows of a table `starts`."""
    once = run.strings.loc[run.strings["count"] == 1, "string_id"]
    log_prob = run.strings.set_index("string_id")["log_prob"]
    # A string without a threshold is unknown, which differs from never memorised.
    trained = starts[starts["string_id"].isin(once) & starts["threshold_at_optimum"].notna()]
    found = {TRAINED: by_measure(trained), UNSEEN: by_measure(starts_of_unseen(run, thresholds))}
    columns = {TRAINED: "log_density_others", UNSEEN: "log_density"}
    rows = []
    for strings, column in columns.items():
        others = found[UNSEEN if strings == TRAINED else TRAINED]
        for (measure, evidence), start in found[strings].items():
            other = others.get((measure, evidence))
            late = start if other is None else cut_late(start, np.isinf(other).mean())
            for (embedding, kernel, bandwidth), density in run.density.groupby(OF_SETTING):
                support = density.set_index("string_id")[column].loc[start.index]
                beyond = beyond_rank(support, log_prob.loc[start.index])
                rows.append(
                    {
                        **run.trace.run,
                        "string_role": strings,
                        "measure": measure,
                        "evidence": evidence,
                        "embedding": embedding,
                        "kernel": kernel,
                        "bandwidth": bandwidth,
                        "correlation": spearman(support, start),
                        "given_log_prob": spearman_given(support, start, log_prob.loc[start.index]),
                        "association": rank_association(start, beyond),
                        "association_censored": np.nan
                        if other is None
                        else rank_association(late, beyond),
                        "share_never_memorised": float(np.isinf(start).mean()),
                        "share_censored": float(np.isinf(late).mean()),
                        "n_strings": len(start),
                    }
                )
    return pd.DataFrame(rows)[MEMORISED.names]


def by_measure(starts: pd.DataFrame) -> dict[tuple[str, str], pd.Series]:
    """The start of every string (index) by measure and evidence; never is later than any epoch."""
    return {
        keys: own.set_index("string_id")["start"].fillna(np.inf)
        for keys, own in starts.groupby(OF_MEASURE, sort=False)
    }


def cut_late(start: pd.Series, never: float) -> pd.Series:
    """The starts, with the latest ones as never, so that about this share of all is never.

    Equal starts stay equal, so the share is the nearest possible one. It is not lowered.
    """
    cuts = np.append(np.unique(start[np.isfinite(start)]), np.inf)
    shares = np.array([(start >= cut).mean() for cut in cuts])
    cut = cuts[np.abs(shares - max(never, shares[-1])).argmin()]
    return start.mask(start >= cut, np.inf)


def starts_of_unseen(run: Results, thresholds: Thresholds) -> pd.DataFrame:
    names = run.strings.loc[candidates(run.strings), "string_id"].to_numpy()
    measured = measured_unseen(run.trace, run.strings, thresholds)
    parts = [
        pd.DataFrame(
            {
                "string_id": names[result.is_known],
                "measure": measure,
                "evidence": evidence,
                "start": epoch_of(result.start[result.is_known], run.trace.epochs),
            }
        )
        for (measure, evidence), result in measured.items()
    ]
    return pd.concat(parts, ignore_index=True)
