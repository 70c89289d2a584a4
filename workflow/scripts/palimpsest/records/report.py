"""The part of the report on records."""

from collections.abc import Mapping

import pandas as pd

from palimpsest.estimates import with_interval
from palimpsest.number_format import percent
from palimpsest.records import headline, kinds
from palimpsest.report.part import Part, chapters_of, with_words
from palimpsest.report.templates import given, groups, shown, template
from palimpsest.statistics import Interval


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report, from the stacked tables of the kind `record_shares`.

    Without such a table, the part has no words.
    """
    html = template(__file__, "report.html.j2").module
    (shares,) = given(tables, kinds.SHARES)
    if shares.empty:
        return Part(chapters=chapters_of(html))
    return with_words(html, {}, {"records": shown(html.shares, share_rows, shares)})


def share_rows(shares: pd.DataFrame) -> list[dict]:
    """Per corpus, model and measure: the shares of both sides, and their difference."""
    averages = headline.rows(shares).set_index(headline.KEYS)
    rows = []
    for row, found in groups(shares, headline.KEYS):
        first, average = found.iloc[0], averages.loc[tuple(row.values())]
        has_placebo = pd.notna(average["unseen"])
        rows.append(
            {
                **row,
                "n": f"{first['n_trained']:,} / {first['n_unseen']:,}",
                "trained": percent(average["trained"]),
                "unseen": percent(average["unseen"]) if has_placebo else "unknown",
                "difference": with_interval(Interval(*average[["difference", "lower", "upper"]])),
                "detected": detected(found),
                "false_alarms": _share(found["detected_unseen"]),
            }
        )
    return rows


def _share(values: pd.Series) -> str:
    return percent(values.mean()) if values.notna().all() else "–"


def detected(found: pd.DataFrame) -> str:
    """The share of trained records that are detected, averaged as the difference is."""
    columns = found[["detected", "detected_lower", "detected_upper"]]
    return with_interval(Interval(*columns.mean(skipna=False)), percent)
