"""The statistics of the claims on audits. They are about one target and one reference."""

import pandas as pd

from palimpsest.audit.kinds import AS_WELL, EXPLAINED, MOSTLY_EXPLAINED
from palimpsest.claims import REFERENCE_MODEL, SHARE, Case, statistic
from palimpsest.estimates import Estimate

UNSEEN = "unseen"
WORDS = {
    MOSTLY_EXPLAINED: "share of the recited strings of which a reference gives 90 % of the tokens "
    "or more",
    AS_WELL: "share of the recited strings of which a reference gives as many tokens or more",
}
OVER = "groups of records"


def each_pair(explained: pd.DataFrame) -> list[Case]:
    """One case for every target and reference."""
    pairs = explained.groupby(["language", "model", "reference"], sort=False)
    return [Case(language, 1, (rows,)) for (language, _, _), rows in pairs]


@statistic(
    EXPLAINED.name,
    lambda share: WORDS[share],
    evidence=REFERENCE_MODEL,
    limits=SHARE,
    cases=each_pair,
)
def explained_share(explained: pd.DataFrame, share: str) -> Estimate:
    """A share of what the target recites, and in a remark the same of the placebo.

    The strings are those that the target was trained on, or of which nothing is known. The interval
    is over groups of records: the models stay what they are.
    """
    rows = explained[explained["statistic"] == share]
    first = rows.iloc[0]
    remarks = [f"{first['model']}, reference {first['reference']}"]
    placebo = rows[(rows["side"] == UNSEEN) & (rows["n_recited"] > 0)]
    for row in placebo.itertuples():
        remarks.append(f"of {row.n_recited} recited strings never trained on: {row.value:.2f}")
    known = rows[(rows["side"] != UNSEEN) & (rows["n_recited"] > 0)]
    if known.empty:
        return Estimate(remarks=(*remarks, "no string is recited"))
    row = known.iloc[0]
    remarks.append(f"{row['n_recited']} strings are recited")
    values = (float(row["value"]),)
    return Estimate(values, *row[["value", "lower", "upper"]], OVER, remarks=tuple(remarks))
