"""The statistics of the claims on audits. They are about one target and one reference."""

import pandas as pd

from palimpsest.audit.kinds import (
    AS_WELL,
    EXPLAINED,
    MOSTLY_EXPLAINED,
    OF_ALL,
    OF_RECITED,
    PRIVATE,
    UNSEEN,
)
from palimpsest.claims import CONSTANT, REFERENCE_MODEL, SHARE, Case, statistic
from palimpsest.estimates import Estimate

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
    return _of_recited(rows, f"{first['model']}, reference {first['reference']}")


def each_target(shares: pd.DataFrame) -> list[Case]:
    """One case for every target."""
    targets = shares.groupby(["language", "model"], sort=False)
    return [Case(language, 1, (rows,)) for (language, _), rows in targets]


@statistic(
    PRIVATE.name,
    "share of the recited strings that hold private information with a form of its own (e-mail "
    "addresses, telephone, card, account and social security numbers, IP addresses)",
    evidence=CONSTANT,
    limits=SHARE,
    cases=each_target,
)
def private_share(shares: pd.DataFrame) -> Estimate:
    """The share of what the target recites that is private, and the same of all and of the placebo.

    Strings and interval are as of `explained_share`.
    """
    of_all = shares[(shares["statistic"] == OF_ALL) & (shares["side"] != UNSEEN)]
    rows = shares[shares["statistic"] == OF_RECITED]
    remarks = [f"of all {row.n_records} strings: {row.value:.2f}" for row in of_all.itertuples()]
    return _of_recited(rows, rows["model"].iloc[0], *remarks)


def _of_recited(rows: pd.DataFrame, *remarks: str) -> Estimate:
    """The estimate of a share of what a target recites, from its rows, one for each side."""
    remarks = list(remarks)
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
