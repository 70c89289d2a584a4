"""What the report's first page says of records: how many are detected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from palimpsest.estimates import with_interval
from palimpsest.number_format import percent
from palimpsest.records import headline, kinds
from palimpsest.report.part import Sentence
from palimpsest.report.templates import given
from palimpsest.statistics import Interval

DETECTED = ["detected", "detected_lower", "detected_upper"]


def sentences(tables: Mapping[str, pd.DataFrame]) -> Iterator[Sentence]:
    """A sentence for each corpus and model, by the measure with the strongest evidence."""
    (shares,) = given(tables, kinds.SHARES)
    if shares.empty:
        return
    strongest = headline.rows(shares).drop_duplicates(["language", "model"])
    rows = dict(list(shares.groupby(headline.KEYS)))
    for row in strongest.to_dict("records"):
        yield of_model(row, rows[tuple(row[key] for key in headline.KEYS)])


def of_model(row: Mapping, shares: pd.DataFrame) -> Sentence:
    """The share of the records trained on that is detected, beside that of the others.

    `row` is of the table `headline`; `shares` are the rows of the same corpus, model and measure.
    """
    about = f"records in {row['language']} that the model {row['model']} was trained on"
    if pd.isna(row["unseen"]):
        return Sentence(
            f"Of the {about}, {percent(row['trained'])} are called memorised, and nothing shows "
            "how many of these calls are wrong.",
            "There is no placebo: records of the same kind, never trained on, would decide.",
        )
    found = Interval(*shares[DETECTED].mean(skipna=False))
    by = f"Measure: {row['measure']} ({row['evidence']})"
    if pd.isna(found.mean):
        beyond = with_interval(Interval(row["difference"], row["lower"], row["upper"]))
        return Sentence(
            f"Of the {about}, {beyond} more are called memorised than of others.",
            f"{by}. Too few records were never trained on to tell single records; more would.",
        )
    return Sentence(
        f"{with_interval(found, percent)} of the {about} are detected.",
        f"{by}; interval over groups. Placebo: {percent(shares['detected_unseen'].mean())} of the "
        "others.",
    )
