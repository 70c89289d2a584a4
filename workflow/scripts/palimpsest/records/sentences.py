"""What the report's first page says of records: how many are found one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from palimpsest.estimates import with_interval
from palimpsest.number_format import percent, the_model
from palimpsest.records import headline, kinds
from palimpsest.records.alike import BLIND_LOOK
from palimpsest.records.found import found
from palimpsest.records.verdicts import FALSE_ALARMS, UNSEEN
from palimpsest.report.part import Sentence
from palimpsest.report.templates import given
from palimpsest.statistics import Interval

DETECTED = ["detected", "detected_lower", "detected_upper"]


def sentences(
    tables: Mapping[str, pd.DataFrame], false_alarms_of_records: float = FALSE_ALARMS
) -> Iterator[Sentence]:
    """A sentence for each corpus and model, by the main measure.

    `false_alarms_of_records` is the p-value, and the false discovery rate, up to which a record is
    found.
    """
    for said, _ in by_model(tables, false_alarms_of_records):
        yield said


def by_model(tables: Mapping[str, pd.DataFrame], level: float) -> Iterator[tuple[Sentence, dict]]:
    """Each sentence with the single records that it is about, see `found`; best evidence first."""
    (shares,) = given(tables, kinds.SHARES)
    if shares.empty:
        return
    singles = {(one["language"], one["model"]): one for one in found(tables, level)}
    main = headline.rows(shares).drop_duplicates(["language", "model"])
    rows = dict(list(shares.groupby(headline.KEYS)))
    for row in main.to_dict("records"):
        single = singles[row["language"], row["model"]]
        yield of_model(row, rows[tuple(row[key] for key in headline.KEYS)], single, level), single


def of_model(row: Mapping, shares: pd.DataFrame, single: Mapping, level: float) -> Sentence:
    """How many records are found, beside the share of those never trained on that looks alike.

    `row` is of the table `headline`; `shares` are the rows of the same corpus, model and measure;
    `single` is what `found` says of them.
    """
    about = f"records of {row['language']} in {the_model(row['model'])}’s training"
    if pd.isna(row["unseen"]):
        return Sentence(
            f"Of the {about}, {percent(row['trained'])} are called memorised, and nothing shows "
            "how many of these calls are wrong.",
            "There is no placebo: records of the same kind, never trained on, would decide.",
        )
    detected = Interval(*shares[DETECTED].mean(skipna=False))
    if pd.isna(detected.mean):
        beyond = with_interval(Interval(row["difference"], row["lower"], row["upper"]))
        return Sentence(
            f"Of the {about}, {beyond} more are called memorised than of others.",
            f"Measure: {row['measure']} ({row['evidence']}). Too few records were never trained on "
            "to tell single records; more would.",
        )
    placebo = percent(shares["detected_unseen"].mean())
    share = f"{row['measure']}: {with_interval(detected, percent)}; placebo {placebo}"
    about = f"{single['n_trained']} {about}"
    look = blind_look(shares)
    if row["evidence"] != UNSEEN:
        return Sentence(standing(about, share, single, level))
    if are_told_apart(look):
        return Sentence(
            f"The losses cannot tell which of {about} are memorised: a blind look at the texts "
            f"tells them from the others with an AUC of {with_interval(look)}, so they differ in "
            "kind.",
            f"{len(single['ids'])} have p ≤ {level:g} ({share}). A reference model, or unseen "
            "records of the same kind, would decide.",
        )
    seen = (
        "which no text shows here"
        if pd.isna(look.mean)
        else f"and a blind look at the texts tells them apart with an AUC of {with_interval(look)}"
    )
    return Sentence(
        f"{standing(about, share, single, level)} Without a reference model, this holds only if "
        f"both kinds of records are alike, {seen}."
    )


def standing(about: str, share: str, single: Mapping, level: float) -> str:
    """How many single records are found after the correction for their number.

    `share` is the share of the records with a p-value of `level` or less, in words.
    """
    n, n_found = single["n_standing"], len(single["ids"])
    begin = f"{n or 'None'} of {about} {'stands' if n <= 1 else 'stand'}"
    have = f"{n_found or 'none'} {'has' if n_found <= 1 else 'have'}"
    p = "p" if single["n_seeds"] == 1 else "median p"
    rate = f"at a false discovery rate of {percent(level)}"
    said = f"{begin} {rate}: {have} {p} ≤ {level:g} ({share})"
    if n >= n_found:
        return f"{said}."
    if n_found <= level * single["n_trained"]:
        return f"{said}, no more than chance gives."
    return f"{said}, which takes {single['needed']:,} unseen records, not {single['n_unseen']:,}."


def blind_look(shares: pd.DataFrame) -> Interval:
    """The AUC by which the texts alone tell records trained on from others, over the seeds."""
    return Interval(*shares[list(BLIND_LOOK)].mean(skipna=False))


def are_told_apart(look: Interval) -> bool:
    """Whether records trained on differ in kind from the others, beyond chance."""
    return bool(look.lower > 0.5)
