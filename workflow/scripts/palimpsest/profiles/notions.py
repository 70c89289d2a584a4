"""Other definitions of memorisation and the estimates of one run, on the same macro-batches.

All are about the end of training. The true effect is that of training again without a macro-batch,
in whose place the model sees other strings.

Source: Causal Estimation of Memorisation Profiles, section 5 and appendix B.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from palimpsest import traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.making import makes, reads
from palimpsest.profiles import kinds
from palimpsest.profiles.interventions import replaced_cohort
from palimpsest.profiles.streams import PANEL, VALIDATION
from palimpsest.regimes import intervention_of_replicate
from palimpsest.traces import Trace

NATS, SHARE = "nats", "share of strings"
INFLUENCE_COLUMNS = {kinds.INFLUENCE: "influence", kinds.REMOVAL: "removal"}
CELL = ["seed", "cohort"]


@reads(
    profile=kinds.PROFILE,
    exact_profile=kinds.EXACT_PROFILE,
    datasets=STRINGS,
    replicates=[traces.read],
    continuations=kinds.CONTINUATIONS,
    influences=kinds.INFLUENCES,
)
@makes(kinds.NOTIONS)
def beside_other_notions(
    profile: pd.DataFrame,
    exact_profile: pd.DataFrame,
    datasets: pd.DataFrame,
    replicates: Iterable[Trace],
    continuations: pd.DataFrame,
    influences: pd.DataFrame,
    length: int,
) -> pd.DataFrame:
    """A table `notions`.

    Parameters
    ----------
    profile, exact_profile : tables of these kinds of one model, language and size
    datasets : those of the streams, stacked
    replicates : traces of further trainings of the streams, with and without each macro-batch
    continuations, influences : stacked tables of these kinds
    length : tokens at the end of a string that greedy decoding must give
    """
    measured = datasets[datasets["split"].isin([PANEL, VALIDATION])]
    of_string = measured[["seed", "string_id", "cohort", "split"]]
    found = pd.concat(
        [
            from_one_run(profile),
            architectural(list(replicates), of_string),
            *(by_influence(influences, of_string, notion) for notion in INFLUENCE_COLUMNS),
            extractable(continuations, of_string, length),
        ]
    )
    at_end = exact_profile["time"] == exact_profile["time"].max()
    of_losses = exact_profile["outcome"] == kinds.LOG_LIKELIHOOD
    keys = ["model", "language", "size", "parameters", *CELL, "total", "specific"]
    truth = exact_profile.loc[at_end & of_losses, keys].drop_duplicates(CELL)
    return truth.merge(found.astype({"cohort": int}), on=CELL)[kinds.NOTIONS.names]


def from_one_run(profile: pd.DataFrame) -> pd.DataFrame:
    """Both estimators at the end of training; they already compare with unseen strings."""
    rows = profile[
        (profile["time"] == profile["time"].max())
        & (profile["outcome"] == kinds.LOG_LIKELIHOOD)
        & (profile["string_role"] == kinds.TRAINED)
    ]
    rows = rows.rename(columns={"estimator": "notion"})
    return rows[[*CELL, "notion", "estimate"]].assign(placebo=0.0, unit=NATS)


def architectural(replicates: list[Trace], of_string: pd.DataFrame) -> pd.DataFrame:
    """Mean log-likelihood over models trained with a macro-batch, minus that over models without.

    The models differ in their initial weights and in the order of the strings, so this is about an
    architecture and not about one model.

    Source: Causal Estimation of Memorisation Profiles, definition 4 and eq. 30.
    """
    by_run: dict[tuple, list[Trace]] = {}
    for trace in replicates:
        cohort = replaced_cohort(intervention_of_replicate(trace.run["variant"]))
        by_run.setdefault((trace.run["seed"], cohort), []).append(trace)
    rows = []
    for (seed, cohort), without in by_run.items():
        if cohort is None:
            continue
        own = of_string[of_string["seed"] == seed]
        groups = own["cohort"].eq(cohort).fillna(False), own["split"] == VALIDATION
        effects = [
            mean_log_likelihood(by_run[seed, None], names) - mean_log_likelihood(without, names)
            for names in (own.loc[group.astype(bool), "string_id"] for group in groups)
        ]
        rows.append((seed, cohort, *effects))
    table = pd.DataFrame(rows, columns=[*CELL, "estimate", "placebo"])
    return table.assign(notion=kinds.ARCHITECTURAL, unit=NATS)


def mean_log_likelihood(traces: list[Trace], names: pd.Series) -> float:
    """The mean over models and strings, at the end of training."""
    return -float(np.mean([trace.nll[-1, trace.column_of(names)] for trace in traces]))


def by_influence(
    influences: pd.DataFrame, of_string: pd.DataFrame, notion: str = kinds.INFLUENCE
) -> pd.DataFrame:
    """The mean influence of each macro-batch on its strings, and on validation strings.

    Source: Causal Estimation of Memorisation Profiles, eq. 33.
    """
    column = INFLUENCE_COLUMNS[notion]
    rows = influences.merge(of_string, on=["seed", "string_id"])
    rows = rows.assign(kind=np.where(rows["split"] == VALIDATION, "placebo", "estimate"))
    means = rows.groupby(["seed", "without", "kind"])[column].mean().unstack()
    table = means.reset_index().rename(columns={"without": "cohort"})
    return table.assign(notion=notion, unit=NATS)


def extractable(continuations: pd.DataFrame, of_string: pd.DataFrame, length: int) -> pd.DataFrame:
    """The share of (k, l)-extractable strings, with l = `length` and k all tokens before.

    Raises `UserError` if no token is left before the last l ones of a string.

    Source: Causal Estimation of Memorisation Profiles, eq. 34; Carlini et al., Quantifying
    memorization across neural language models (2023), definition 3.1.
    """
    rows = continuations.merge(of_string, on=["seed", "string_id"])
    if (rows["n_tokens"] <= length).any():
        raise UserError(
            f"profiles/notions/continuation: a string has {rows['n_tokens'].min()} tokens, and "
            f"{length} are to be continued; it must be at most {rows['n_tokens'].min() - 1}"
        )
    rows = rows.assign(right=rows["n_last_right"] >= length)
    unseen = rows[rows["split"] == VALIDATION].groupby("seed")["right"].mean()
    own = rows[rows["split"] == PANEL].groupby(CELL)["right"].mean()
    table = own.rename("estimate").reset_index()
    return table.assign(placebo=table["seed"].map(unseen), notion=kinds.EXTRACTABLE, unit=SHARE)
