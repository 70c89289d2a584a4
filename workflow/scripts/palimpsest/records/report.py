"""The part of the report on records."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
from markupsafe import Markup

from palimpsest.estimates import with_interval
from palimpsest.number_format import number, percent
from palimpsest.records import headline, kinds
from palimpsest.records.intervals import fewest_unseen
from palimpsest.records.sentences import are_told_apart, blind_look, by_model
from palimpsest.records.verdicts import FALSE_ALARMS
from palimpsest.report.part import NOTHING, Part, chapters_of, with_words
from palimpsest.report.templates import given, groups, shown, template
from palimpsest.statistics import Interval

MOST = 8  # records of a model in the table of the surest ones
MOST_NAMED = 60  # records of a model that are named
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
    (bounds,) = given(tables, kinds.CONFORMAL)
    needed = fewest_unseen(false_alarms_of_records)
    few = html.too_few(too_few(shares, needed), needed, f"{false_alarms_of_records:g}")
    words = few + shown(html.shares, share_rows, shares) + html.differing(differing(shares))
    words += shown(html.bounds, bound_rows, bounds)
    opening = answer(html, tables, false_alarms_of_records)
    return replace(with_words(html, {}, {"records": words}), opening=opening)


def too_few(shares: pd.DataFrame, needed: int) -> list[str]:
    """The corpora with fewer records never trained on than are needed, and how many they have."""
    fewest = shares.groupby("language", sort=False)["n_unseen"].min()
    return [f"{name} ({n})" for name, n in fewest.items() if n < needed]


def differing(shares: pd.DataFrame) -> list[dict]:
    """The corpora whose records trained on differ in kind from the others, as far as texts show."""
    looks = {name: blind_look(rows) for name, rows in shares.groupby("language", sort=False)}
    return [
        {"language": name, "auc": with_interval(look)}
        for name, look in looks.items()
        if are_told_apart(look)
    ]


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


def surest_rows(single: Mapping) -> list[dict]:
    """The surest records of a model, at most `MOST`, from what `found` says of it."""
    return [
        {
            **{name: single[name] for name in ("language", "model", "measure")},
            "record": one.Index,
            "p": number(one.p),
            "corrected": number(one.corrected),
            "score": number(one.score),
            "memorised": f"{one.n} of {one.of}",
        }
        for one in single["records"].head(MOST).itertuples()
    ]


def answer(html, tables: Mapping[str, pd.DataFrame], level: float) -> Markup:
    """What opens the section's page: a sentence on each model, and which records are found."""
    singles = [*by_model(tables, level)]
    said = [
        {
            "text": sentence.text,
            "note": sentence.note,
            "ids": single["ids"][:MOST_NAMED],
            "n_more": max(0, len(single["ids"]) - MOST_NAMED),
        }
        for sentence, single in singles
    ]
    rows = [row for _, single in singles for row in surest_rows(single)]
    return html.answer(said, f"{level:g}", kinds.AS_CSV) + (
        html.surest(rows, MOST) if rows else NOTHING
    )


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
