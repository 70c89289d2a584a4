"""The part of the report on records."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from palimpsest.estimates import with_interval
from palimpsest.number_format import percent
from palimpsest.records import kinds
from palimpsest.records.tables import ITS_MODEL
from palimpsest.report.part import Part, chapters_of, with_words
from palimpsest.report.templates import given, groups, shown, template
from palimpsest.statistics import Interval

# Measures by what they rest on: training again, another model, records never trained on, nothing
BY_EVIDENCE = ("contextual", "counterfactual", "reference", "loss attack", "recollection")


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report, from the stacked tables of the kind `record_shares`.

    Without such a table, the part has no words.
    """
    html = template(__file__, "report.html.j2").module
    (shares,) = given(tables, kinds.SHARES)
    if shares.empty:
        return Part(chapters=chapters_of(html))
    part = with_words(html, {}, {"records": shown(html.shares, share_rows, shares)})
    return replace(part, headline=html.headline(answers(shares)))


def answers(shares: pd.DataFrame) -> list[dict]:
    """The row of each corpus and model whose measure rests on the best evidence."""
    by_evidence = {measure: place for place, measure in enumerate(BY_EVIDENCE)}
    rows = sorted(share_rows(shares), key=lambda row: by_evidence[row["measure"]])
    best = {}
    for row in rows:
        model = "the model" if row["model"] == ITS_MODEL else row["model"]
        best.setdefault((row["language"], row["model"]), {**row, "model": model})
    return list(best.values())


def share_rows(shares: pd.DataFrame) -> list[dict]:
    """Per corpus, model and measure: the shares of both sides, and their difference."""
    rows = []
    for row, found in groups(shares, ["language", "model", "measure", "evidence"]):
        first = found.iloc[0]
        has_placebo = found["share_unseen"].notna().all()
        rows.append(
            {
                **row,
                "was": "was" if found["seed"].notna().all() else "is said to have been",
                "n": f"{first['n_trained']:,} / {first['n_unseen']:,}",
                "trained": percent(found["share_trained"].mean()),
                "unseen": percent(found["share_unseen"].mean()) if has_placebo else "unknown",
                "difference": difference(found) if has_placebo else "–",
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


def difference(found: pd.DataFrame) -> str:
    """The difference of the shares, with its interval; both are averaged over the seeds.

    Seeds see the same records, so more seeds do not make the interval narrower. It is right if all
    seeds answer alike, and otherwise too wide.
    """
    return with_interval(Interval(*found[["difference", "lower", "upper"]].mean()))
