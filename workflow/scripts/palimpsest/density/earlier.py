"""The statistic of the claims on memorisation: is what has dense support memorised earlier?"""

import pandas as pd

from palimpsest.claims import NO_THRESHOLD, statistic
from palimpsest.density.kinds import MEMORISED, NGRAMS, TRAINED, UNSEEN
from palimpsest.estimates import Estimate, interval_note, over_seeds
from palimpsest.number_format import number
from palimpsest.statistics import Interval, student, student_p_value

# "Later" needs both to be above 0.
OF_BOTH = "seeds, of the difference and of trained strings alone"
# A seed in which fewer strings of a kind start says nothing about when they do.
FEWEST_STARTS = 5
MEASURES = {
    "recollection": "recollection",
    "recollection_accuracy": "recollection by accuracy",
    "counterfactual": "the counterfactual measure",
    "contextual": "the contextual measure",
    "bayes": "the Bayes measure",
}


@statistic(
    MEMORISED.name,
    "rank association of support by other training strings and start of memorisation at equal "
    "probability, minus that of unseen strings",
    limits=(-2, 2),
    evidence=NO_THRESHOLD,
)
def earlier(memorised: pd.DataFrame, measure: str) -> Estimate:
    """Rank association of support and start at equal probability, trained minus unseen strings.

    By n-grams, because hidden states are those of the model that memorised the strings. The
    associations of both kinds of strings are in the remarks.
    """
    rows = memorised[(memorised["measure"] == measure) & (memorised["embedding"] == NGRAMS)]
    parts = associations(rows)
    found, both = over_seeds(parts[TRAINED] - parts[UNSEEN]), compared(parts)
    if both.lower < found.lower:
        alone = parts[TRAINED].dropna()
        p_values = [student_p_value(own, 0) for own in (found.values, alone)]
        p_value = max(p_values) if alone.mean() > 0 else 1.0
        found = found._replace(lower=both.lower, over=OF_BOTH, p_value=p_value)
    remarks = [interval_note(name, student(own.dropna())) for name, own in parts.items()]
    never = rows.groupby("string_role")["share_never_memorised"].mean().reindex([TRAINED, UNSEEN])
    remarks += [f"never memorised: {name} {number(share)}" for name, share in never.items()]
    return found._replace(remarks=tuple(remarks))


def associations(memorised: pd.DataFrame) -> dict[str, pd.Series]:
    """Association of support and start of trained and of unseen strings, by seed.

    The mean over all kernels and bandwidths. In both kinds of strings, equal shares count as never
    memorised: the latest starts of one kind do, too. Otherwise a difference would say which kind
    starts more often. A seed in which few strings of a kind start has no value.
    """
    started = memorised["n_strings"] * (1 - memorised["share_censored"])
    rows = memorised[started.round() >= FEWEST_STARTS]
    by_seed = rows.groupby(["string_role", "seed"])["association_censored"].mean()
    return {name: by_seed.get(name, pd.Series(dtype=float)) for name in (TRAINED, UNSEEN)}


def compared(parts: dict[str, pd.Series]) -> Interval:
    """The association of trained strings minus that of unseen ones, with an interval over seeds.

    A weaker association of trained strings may only say that their starts vary more. So the
    interval is above 0 only if that of trained strings alone is above 0, too.
    """
    found = student((parts[TRAINED] - parts[UNSEEN]).dropna())
    alone = student(parts[TRAINED].dropna())
    return found._replace(lower=min(found.lower, alone.lower)) if found.lower > 0 else found
