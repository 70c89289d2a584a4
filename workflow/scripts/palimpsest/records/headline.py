"""The section's rows of the table `headline`."""

from __future__ import annotations

from collections.abc import Iterable

from palimpsest.lazy_import import lazy_import
from palimpsest.making import reads
from palimpsest.records import kinds
from palimpsest.tables.headline import HEADLINE

pd = lazy_import("pandas")

QUESTION = "What share of all records is called memorised?"
KEYS = ["language", "model", "measure", "evidence"]
# By what they rest on: training again, another model, records never trained on, nothing. The first
# that there is is the main one: see docs/records.md, "One measure".
MEASURES = ("contextual", "counterfactual", "reference", "loss attack", "recollection")


def main_measure(measures: Iterable[str]) -> str:
    """The measure by which single records are found, of those that there are."""
    return min(measures, key=MEASURES.index)


@reads(record_shares=kinds.SHARES)
def rows(record_shares: pd.DataFrame) -> pd.DataFrame:
    """The shares of records called memorised, and the interval over groups of their difference.

    All are averaged over the seeds; a single seed without an interval takes it away. Seeds share
    the records, or most of them, so more seeds do not make the interval narrower. It is right if
    all seeds answer alike, and otherwise too wide.
    """
    sides = {"share_trained": "trained", "share_unseen": "unseen"}
    found = record_shares.rename(columns=sides).groupby(KEYS, sort=False)
    table = found[["trained", "unseen", "difference"]].mean()
    ends = found[["lower", "upper"]].agg(lambda values: values.mean(skipna=False))
    table = table.join(ends)
    table = table.assign(n_seeds=found["seed"].nunique()).reset_index()
    table["interval_over"] = table["lower"].notna().map({True: "groups", False: ""})
    table = table.assign(question=QUESTION, size=pd.NA)[HEADLINE.names]
    by_evidence = table["measure"].map(MEASURES.index)
    return table.loc[by_evidence.sort_values(kind="stable").index]
