"""The part of the report on training-data density."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from palimpsest.claims import DIFFERENCE
from palimpsest.density import kinds
from palimpsest.density.claims import QUESTIONS
from palimpsest.density.claims.claim_statistics import beyond_never
from palimpsest.density.earlier import MEASURES, associations, compared
from palimpsest.estimates import clipped, with_interval
from palimpsest.number_format import number, percent
from palimpsest.report.part import Part, with_words
from palimpsest.report.templates import given, groups, mean_over_seeds, shown, template
from palimpsest.statistics import Interval, student

EMBEDDINGS = {kinds.HIDDEN: "hidden states", kinds.NGRAMS: "n-grams"}
STRINGS = {kinds.LEAKED: "leaked strings", kinds.PLACEBO: "placebos"}


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report.

    `tables` maps the section's reported kinds to stacked tables. Without any, the part only has its
    chapters' headings.
    """
    html = template(__file__, "report.html.j2").module
    leakage, retrieval, memorised, of_texts = given(
        tables,
        kinds.LEAKAGE,
        kinds.RETRIEVAL,
        kinds.MEMORISED,
        kinds.TEXT_REGRESSIONS,
    )
    before = {
        "leakage": shown(html.leakage, leakage_rows, leakage),
        "density_memorisation": shown(html.memorised, memorised_rows, memorised),
        "own_texts": shown(html.texts, text_rows, of_texts),
    }
    if not leakage.empty:
        before["leakage"] += html.retrieval(retrieval_rows(retrieval))
    (of_queries,) = given(tables, kinds.TEXT_DENSITY)
    what = {
        "known": of_queries.empty or not (leakage.empty and memorised.empty),
        "texts": not of_queries.empty,
    }
    part = with_words(html, QUESTIONS, before)
    return replace(part, introduction=html.introduction(what))


def leakage_rows(leakage: pd.DataFrame) -> list[dict]:
    """Per model, language and condition: values of leaked strings beyond strings never leaked."""
    rows = []
    for study, table in groups(leakage.astype({"answer_right": float}), ["language", "model"]):
        by_embedding = dict(list(table.groupby("embedding")))
        first = next(iter(by_embedding.values()))
        found = {
            (name, role): beyond_never(own, column, role)
            for role in STRINGS
            for name, column, own in (
                ("loss", "loss", first),
                ("answers", "answer_right", first),
                *((name, "log_density", own) for name, own in by_embedding.items()),
            )
        }
        for n_copies, paraphrases in found["loss", kinds.LEAKED].columns:
            of_condition = {
                f"{name}_{role}": mean_over_seeds(values[n_copies, paraphrases])
                for (name, role), values in found.items()
            }
            rows.append({**study, "n_copies": n_copies, "paraphrases": paraphrases, **of_condition})
    return rows


def retrieval_rows(retrieval: pd.DataFrame) -> list[dict]:
    """Per model, language, embedding and k: recall and NDCG."""
    return [
        {
            **row,
            "embedding": EMBEDDINGS[row["embedding"]],
            "recall": mean_over_seeds(own["recall"]),
            "ndcg": mean_over_seeds(own["ndcg"]),
            "chance": number(own["chance"].mean()),
        }
        for row, own in groups(retrieval, ["language", "model", "embedding", "k"])
    ]


def probability(p_value: float) -> str:
    if pd.isna(p_value):
        return "–"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def memorised_rows(memorised: pd.DataFrame) -> list[dict]:
    """Per model, language, embedding and measure: support and start, trained and unseen strings.

    Measures by which trained and unseen strings cannot be compared are left out.
    """
    rows = []
    for row, table in groups(memorised, ["language", "model", "embedding"]):
        for measure, name in MEASURES.items():
            own = table[table["measure"] == measure]
            parts = associations(own)
            difference = compared(parts)
            if pd.isna(difference.mean):
                continue
            never = own.groupby("string_role")["share_never_memorised"].mean()
            rows.append(
                {
                    **row,
                    "embedding": EMBEDDINGS[row["embedding"]],
                    "measure": name,
                    **{
                        role: with_interval(clipped(student(own.dropna()), DIFFERENCE))
                        for role, own in parts.items()
                    },
                    "difference": with_interval(clipped(difference, (-2, 2))),
                    "reading": earlier_or_later(difference),
                    **{
                        f"never_{role}": percent(never[role]) if role in never else "–"
                        for role in (kinds.TRAINED, kinds.UNSEEN)
                    },
                }
            )
    return rows


def earlier_or_later(difference: Interval) -> str:
    if difference.upper < 0:
        return "earlier"
    if difference.lower > 0:
        return "later"
    return "cannot tell"


def text_rows(regressions: pd.DataFrame) -> list[dict]:
    found = regressions[regressions["term"] != "intercept"]
    rows = []
    for row in found.to_dict("records"):
        known = not pd.isna(row["estimate"])
        row |= {
            "estimate": number(row["estimate"]) if known else "–",
            "p_value": probability(row["p_value"]),
        }
        if pd.isna(row["predictor"]):
            row |= dict.fromkeys(("predictor", "kernel", "bandwidth"), "")
        rows.append(row)
    return rows
