"""The part of the report on records."""

from collections.abc import Mapping

import pandas as pd

from palimpsest.estimates import with_interval
from palimpsest.number_format import number, percent
from palimpsest.records import headline, kinds
from palimpsest.records.intervals import fewest_unseen
from palimpsest.records.verdicts import FALSE_ALARMS
from palimpsest.report.part import Part, chapters_of, with_words
from palimpsest.report.templates import given, groups, shown, template
from palimpsest.statistics import Interval

MOST = 8  # records of a model that are listed
VERDICTS = {
    "memorised": kinds.MEMORISED,
    "not": kinds.NOT_MEMORISED,
    "undecided": kinds.UNDECIDED,
    "outside": kinds.OUTSIDE,
}


def part(tables: Mapping[str, pd.DataFrame], false_alarms_of_records: float = FALSE_ALARMS) -> Part:
    """The section's part of the report, from the section's reported kinds, stacked.

    Without a table `record_shares`, the part has no words. `false_alarms_of_records` is the p-value
    up to which a record is detected.
    """
    html = template(__file__, "report.html.j2").module
    (shares,) = given(tables, kinds.SHARES)
    if shares.empty:
        return Part(chapters=chapters_of(html))
    bounds, answers = given(tables, kinds.CONFORMAL, kinds.ANSWERS)
    needed = fewest_unseen(false_alarms_of_records)
    few = html.too_few(too_few(shares, needed), needed, f"{false_alarms_of_records:g}")
    words = few + shown(html.shares, share_rows, shares) + shown(html.surest, surest_rows, answers)
    words += shown(html.bounds, bound_rows, bounds)
    return with_words(html, {}, {"records": words})


def too_few(shares: pd.DataFrame, needed: int) -> list[str]:
    """The corpora with fewer records never trained on than are needed, and how many they have."""
    fewest = shares.groupby("language", sort=False)["n_unseen"].min()
    return [f"{name} ({n})" for name, n in fewest.items() if n < needed]


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


def surest_rows(answers: pd.DataFrame) -> list[dict]:
    """Per corpus and model, the records trained on with the smallest p-values, at most `MOST`.

    The measure is the one that rests on most. A p-value is the median over the seeds; among equal
    ones, the higher score comes first.
    """
    rows = []
    for row, found in groups(answers, ["language", "model"]):
        measure = min(found["measure"].unique(), key=headline.MEASURES.index)
        own = found[(found["measure"] == measure) & found["trained"].astype("boolean").fillna(True)]
        by_record = own.groupby("id", sort=False).agg(
            p=("p_value", "median"),
            score=("score", "mean"),
            n=("memorised", "sum"),
            of=("id", "size"),
        )
        surest = by_record.dropna(subset="p").sort_values(["p", "score"], ascending=[True, False])
        rows += [
            {
                **row,
                "measure": measure,
                "record": one.Index,
                "p": number(one.p),
                "score": number(one.score),
                "memorised": f"{one.n} of {one.of}",
            }
            for one in surest.head(MOST).itertuples()
        ]
    return rows


def bound_rows(bounds: pd.DataFrame) -> list[dict]:
    """Per corpus, model and seed: the verdicts on trained records, and those on the placebo."""
    rows = []
    for row, found in groups(bounds, ["language", "model", "seed"], dropna=False):
        first, trained = found.iloc[0], found["trained"].astype(bool)
        asked, unseen = found["verdict"][trained], found["verdict"][~trained]
        is_wrong = unseen == kinds.MEMORISED
        rows.append(
            {
                **row,
                "seed": "–" if pd.isna(row["seed"]) else f"{row['seed']}",
                "known": f"{first['n_known']:,} / {first['n_known_unseen']:,}",
                "asked": f"{len(asked):,} / {len(unseen):,}",
                "level": percent(first["level"]),
                "width": number((found["upper"] - found["lower"])[trained].median()),
                **{name: percent((asked == verdict).mean()) for name, verdict in VERDICTS.items()},
                "placebo": percent(is_wrong.mean()) if len(unseen) else "unknown",
                "shift": "–" if pd.isna(first["shift"]) else f"{first['shift']:.2f}",
            }
        )
    return rows


def _share(values: pd.Series) -> str:
    return percent(values.mean()) if values.notna().all() else "–"


def detected(found: pd.DataFrame) -> str:
    """The share of trained records that are detected, averaged as the difference is."""
    columns = found[["detected", "detected_lower", "detected_upper"]]
    return with_interval(Interval(*columns.mean(skipna=False)), percent)
