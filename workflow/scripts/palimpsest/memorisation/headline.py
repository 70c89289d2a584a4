"""The section's rows of the table `headline`."""

from __future__ import annotations

from palimpsest.lazy_import import lazy_import
from palimpsest.making import reads
from palimpsest.memorisation import kinds
from palimpsest.memorisation.studies.tradeoff import KIND as TRADEOFF
from palimpsest.tables.headline import HEADLINE

np = lazy_import("numpy")
pd = lazy_import("pandas")
claims = lazy_import("palimpsest.claims")
estimates = lazy_import("palimpsest.estimates")
statistics = lazy_import("palimpsest.statistics")

QUESTION = "What share of the training strings is memorised at optimal learning?"
KEYS = ["model", "language", "size", "measure", "evidence"]
# In the order of a language's rows that rest on equal evidence
MEASURES = ("contextual", "counterfactual", "bayes", "recollection", "recollection_accuracy")


@reads(tradeoff=TRADEOFF, leave_one_out=kinds.LEAVE_ONE_OUT)
def rows(tradeoff: pd.DataFrame, leave_one_out: pd.DataFrame) -> pd.DataFrame:
    """The shares of strings below the threshold at the epoch of optimal learning.

    A string counts at this epoch, whatever happens to it later; see `below_distinct` of the study
    `tradeoff`, and `below_at_optimum` of retraining. Intervals are over the seeds.
    """
    shares = pd.concat([by_retraining(leave_one_out), of_whole_sets(tradeoff)])
    found = [
        {"question": QUESTION, **dict(zip(KEYS, values, strict=True)), **answer(seeds)}
        for values, seeds in shares.groupby(KEYS, sort=False)
    ]
    table = pd.DataFrame(found, columns=HEADLINE.names)
    return table.sort_values(["language", "model", "evidence", "measure"], key=_place)


def _place(values: pd.Series) -> pd.Series:
    """What the rows are sorted by: the places of measures and evidence, or the values themselves.

    Measures that are not named come last.
    """
    evidence = claims.RETRAINING, claims.STAND_INS, claims.LANGUAGE, claims.CONSTANT
    order = {"evidence": evidence, "measure": MEASURES}.get(values.name)
    return values if order is None else values.map({name: n for n, name in enumerate(order)})


def answer(seeds: pd.DataFrame) -> dict:
    """What the columns `trained` and `unseen` of some seeds say together."""
    difference = statistics.beyond_false_alarms(seeds["trained"], seeds["unseen"])
    by_seed = difference.set_axis(seeds["seed"])
    found = estimates.over_seeds(by_seed, decimals=statistics.DECIMALS)
    counted = seeds[difference.notna()] if found.values else seeds
    # Equal ends only say that all seeds are alike, for example at 0.
    ends = (found.lower, found.upper) if found.lower < found.upper else (np.nan, np.nan)
    lower, upper = np.clip(ends, *claims.DIFFERENCE)
    return {
        **counted[["trained", "unseen"]].mean(),
        "difference": found.mean,
        "lower": lower,
        "upper": upper,
        "interval_over": "" if np.isnan(lower) else estimates.SEEDS,
        "n_seeds": len(counted),
    }


def of_whole_sets(tradeoff: pd.DataFrame) -> pd.DataFrame:
    """The shares by the thresholds that need no retraining, for each seed."""
    optimum = tradeoff[tradeoff["epoch"] == tradeoff["optimal_epoch"]]
    renamed = optimum.rename(columns={"below_distinct": "trained", "below_unseen": "unseen"})
    return renamed[[*KEYS, "seed", "trained", "unseen"]]


def by_retraining(leave_one_out: pd.DataFrame) -> pd.DataFrame:
    """The shares of the strings that were left out and of their placebos, for each seed.

    A string counts by the number of training strings that it represents.
    """
    strings = leave_one_out[leave_one_out["evidence"] == claims.RETRAINING]
    sides = {"trained": "below_at_optimum", "unseen": "placebo_below_at_optimum"}
    found = [
        (*values, *(np.average(own[column], weights=own["weight"]) for column in sides.values()))
        for values, own in strings.groupby([*KEYS, "seed"], sort=False)
    ]
    return pd.DataFrame(found, columns=[*KEYS, "seed", *sides])
