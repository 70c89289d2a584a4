"""Both estimators against the truth: the same run trained again without a cohort.

Two things change without a cohort. The cohort's strings are not trained on. And the model as a
whole changes, because other strings take the cohort's place: the model predicts all strings a
little better or worse. The total effect on the cohort's strings has both, and is what equation 2 of
the paper defines. An estimate from one run compares strings within this run, so it cannot see what
all strings have in common. What it can see is the specific effect: that on the cohort's strings
minus that on validation strings, which are trained on in neither run.

The truth is that of the measured strings of the cohort. A band also allows for the choice of these
strings among all that might have been in the cohort, so it holds the specific effect more often
than it says.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from palimpsest import traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.making import makes, reads
from palimpsest.profiles import kinds
from palimpsest.profiles.interventions import replaced_cohort
from palimpsest.profiles.measured import OUTCOMES, cohorts_in
from palimpsest.profiles.panel import NEVER
from palimpsest.profiles.summaries import with_side
from palimpsest.traces import Trace

CELL = ["seed", "outcome", "cohort", "time"]


@reads(profile=kinds.PROFILE, traces=[traces.read], datasets=STRINGS, without=[traces.read])
@makes(kinds.EXACT_PROFILE, kinds.ESTIMATOR_ERRORS)
def compared_with_retraining(
    profile: pd.DataFrame, traces: Iterable[Trace], datasets: pd.DataFrame, without: Iterable[Trace]
) -> dict[str, pd.DataFrame]:
    compared = beside_truth(profile, traces, datasets, without)
    return {kinds.EXACT_PROFILE.name: compared, kinds.ESTIMATOR_ERRORS.name: errors(compared)}


def beside_truth(
    profile: pd.DataFrame, streams: Iterable[Trace], strings: pd.DataFrame, without: Iterable[Trace]
) -> pd.DataFrame:
    """A table `exact_profile`.

    Parameters
    ----------
    profile : table `profile` of one model, language and size; more seeds than those of `streams`
        are allowed
    streams : traces of the streams
    strings : stacked datasets of the streams
    without : traces of the streams without each cohort
    """
    by_seed = {trace.run["seed"]: trace for trace in streams}
    cohorts = {
        seed: cohorts_in(trace, strings[strings["seed"] == seed]) for seed, trace in by_seed.items()
    }
    found = [
        effects(by_seed[trace.run["seed"]], cohorts[trace.run["seed"]], trace) for trace in without
    ]
    trained = profile[profile["string_role"] == kinds.TRAINED]
    compared = trained.merge(pd.concat(found), on=CELL, validate="many_to_one")
    return compared[kinds.EXACT_PROFILE.names]


def effects(stream: Trace, cohorts: np.ndarray, without: Trace) -> pd.DataFrame:
    """The true effect of training on one cohort at every time: on its strings, and on all."""
    cohort = replaced_cohort(without.run["variant"])
    own, others = (stream.string_ids[cohorts == number] for number in (cohort, NEVER))
    parts = [changes(names, stream, without) for names in (own, others)]
    variances = [
        sum(part[outcome].var(axis=1, ddof=1) / part[outcome].shape[1] for part in parts)
        for outcome in OUTCOMES
    ]
    found = effects_on(own, others, stream, without)
    return found.assign(
        specific_std_error=np.sqrt(np.concatenate(variances)),
        seed=stream.run["seed"],
        cohort=cohort,
    )


def effects_on(
    own: np.ndarray, untreated: np.ndarray, stream: Trace, without: Trace
) -> pd.DataFrame:
    """By outcome and time: the effect on some strings of the training strings that `without` lacks.

    `own` str[n] names the strings. `untreated` str[m] names strings that neither run is trained on.
    """
    of_own, of_untreated = (changes(names, stream, without) for names in (own, untreated))
    total, general = (
        np.concatenate([change.mean(axis=1) for change in part.values()])
        for part in (of_own, of_untreated)
    )
    return pd.DataFrame(
        {
            "outcome": np.repeat(list(OUTCOMES), len(stream.epochs)),
            "time": np.tile(stream.epochs, len(OUTCOMES)),
            "total": total,
            "general": general,
            "specific": total - general,
        }
    )


def changes(names: np.ndarray, stream: Trace, without: Trace) -> dict[str, np.ndarray]:
    """By outcome: values of named strings in one run minus the other, float[times, strings]."""
    places, others = stream.column_of(names), without.column_of(names)
    return {
        outcome: values(stream)[:, places] - values(without)[:, others]
        for outcome, values in OUTCOMES.items()
    }


def errors(compared: pd.DataFrame) -> pd.DataFrame:
    tested = with_side(compared)
    both = [against(tested, truth) for truth in (kinds.TOTAL, kinds.SPECIFIC)]
    return pd.concat(both, ignore_index=True)[kinds.ESTIMATOR_ERRORS.names]


def against(tested: pd.DataFrame, truth: str) -> pd.DataFrame:
    error = tested["estimate"] - tested[truth]
    covered = tested[truth].between(tested["lower"], tested["upper"])
    keys = ["model", "language", "size", "seed", "parameters", "estimator", "outcome", "cells"]
    found = tested.assign(error=error, square=error**2, covered=covered).groupby(
        keys, as_index=False
    )
    table = found.agg(
        n_cells=("error", "size"),
        effect=(truth, "mean"),
        bias=("error", "mean"),
        mean_square=("square", "mean"),
        coverage=("covered", "mean"),
        all_covered=("covered", "all"),
    )
    rmse = np.sqrt(table["mean_square"])
    std = np.sqrt(np.maximum(table["mean_square"] - table["bias"] ** 2, 0))
    return table.assign(truth=truth, rmse=rmse, std=std)
