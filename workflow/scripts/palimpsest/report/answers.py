"""The answers at the top of the report: shares beyond false alarms, from the table `headline`."""

import pandas as pd

from palimpsest.estimates import with_interval
from palimpsest.number_format import number
from palimpsest.report.templates import groups
from palimpsest.statistics import Interval


def by_question(headline: pd.DataFrame) -> list[dict]:
    """Each question with a row for each model and language, by the strongest evidence.

    Evidence with an interval comes before any without. `over` is what the intervals are over; empty
    if there is none.
    """
    in_order = headline["lower"].isna().sort_values(kind="stable").index
    first = headline.loc[in_order].drop_duplicates(["question", "model", "language"]).sort_index()
    return [
        {
            **question,
            "over": " or ".join(filter(None, rows["interval_over"].unique())),
            "rows": [shown(row) for row in rows.to_dict("records")],
        }
        for question, rows in groups(first, ["question"])
    ]


def shown(row: dict) -> dict:
    """A row in words and numbers."""
    beyond = Interval(row["difference"], row["lower"], row["upper"])
    return {
        **row,
        "trained": number(row["trained"]),
        "unseen": "unknown" if pd.isna(row["unseen"]) else number(row["unseen"]),
        "beyond": with_interval(beyond),
        "seeds": row["n_seeds"] or "only asked",
    }
