"""The part of the report on training-data density."""

from collections.abc import Mapping

import pandas as pd

from palimpsest.claims import DIFFERENCE
from palimpsest.density import kinds
from palimpsest.density.claims import QUESTIONS
from palimpsest.density.claims.claim_statistics import beyond_never
from palimpsest.density.earlier import MEASURES, associations, compared
from palimpsest.density.kinds import (
    ACCURACY,
    HIDDEN,
    LEAK_CONDITION,
    LEAKED,
    NGRAMS,
    ON_BOTH,
    ON_DENSITY,
    PERPLEXITY,
    PLACEBO,
    TRAINED,
    UNSEEN,
)
from palimpsest.estimates import clipped, with_interval
from palimpsest.number_format import number, percent
from palimpsest.report.part import Part, chapters_of, with_words
from palimpsest.report.templates import template
from palimpsest.statistics import Interval, student

EMBEDDINGS = {HIDDEN: "hidden states", NGRAMS: "n-grams"}
STRINGS = {LEAKED: "leaked strings", PLACEBO: "placebos"}
OUTCOMES = {PERPLEXITY: "perplexity", ACCURACY: "accuracy (log odds)"}
REGRESSIONS = {
    LEAK_CONDITION: "leak condition",
    ON_DENSITY: "density",
    ON_BOTH: "density and distance",
}


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report.

    `tables` maps the section's reported kinds to stacked tables. Without any, the part only has its
    chapters' headings.
    """
    html = template(__file__, "report.html.j2").module
    given = {kind.name: tables.get(kind.name, pd.DataFrame()) for kind in kinds.KINDS}
    leakage, regressions, memorised, of_texts = (
        given[kind.name]
        for kind in (kinds.LEAKAGE, kinds.REGRESSIONS, kinds.MEMORISED, kinds.TEXT_REGRESSIONS)
    )
    before = {}
    if not leakage.empty:
        retrieval = retrieval_rows(given[kinds.RETRIEVAL.name])
        before["leakage"] = html.leakage(leakage_rows(leakage)) + html.retrieval(retrieval)
    if not regressions.empty:
        before["regressions"] = html.regressions(regression_rows(regressions))
    if not memorised.empty:
        before["density_memorisation"] = html.memorised(memorised_rows(memorised))
    if not of_texts.empty:
        before["own_texts"] = html.texts(text_rows(of_texts))
    return with_words(html, QUESTIONS, chapters_of(html, before))


def leakage_rows(leakage: pd.DataFrame) -> list[dict]:
    """Per model, language and condition: values of leaked strings beyond strings never leaked."""
    rows = []
    of_study = ["language", "model"]
    for keys, table in leakage.astype({"answer_right": float}).groupby(of_study, sort=False):
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
        for exact, paraphrases in found["loss", LEAKED].columns:
            of_condition = {
                f"{name}_{role}": with_interval(student(values[exact, paraphrases]))
                for (name, role), values in found.items()
            }
            about = dict(zip(of_study, keys, strict=True))
            rows.append({**about, "exact": exact, "paraphrases": paraphrases, **of_condition})
    return rows


def retrieval_rows(retrieval: pd.DataFrame) -> list[dict]:
    """Per model, language, embedding and k: recall and NDCG."""
    return [
        {
            "language": language,
            "model": model,
            "embedding": EMBEDDINGS[embedding],
            "k": k,
            "recall": with_interval(student(own["recall"])),
            "ndcg": with_interval(student(own["ndcg"])),
            "chance": number(own["chance"].mean()),
        }
        for (language, model, embedding, k), own in retrieval.groupby(
            ["language", "model", "embedding", "k"], sort=False
        )
    ]


def regression_rows(regressions: pd.DataFrame) -> list[dict]:
    found = regressions[regressions["term"] != "intercept"]
    about = ["language", "model", "regression", "outcome", "predictor", "embedding", "term"]
    rows = []
    for keys, own in found.groupby(about, sort=False, dropna=False):
        row = dict(zip(about, keys, strict=True))
        row["regression"] = REGRESSIONS[row["regression"]]
        row["outcome"] = OUTCOMES[row["outcome"]]
        row["predictor"] = "" if pd.isna(row["predictor"]) else row["predictor"]
        row["embedding"] = EMBEDDINGS.get(row["embedding"], "")
        rows.append({**row, **estimates(own.set_index("strings"))})
    return rows


def estimates(rows: pd.DataFrame) -> dict[str, str]:
    found = {}
    for role in STRINGS:
        own = rows.loc[role]
        effect = Interval(*own[["effect", "lower", "upper"]])
        found[f"effect_{role}"] = with_interval(effect)
        found[f"p_{role}"] = probability(own["p_value"])
        found[f"model_p_{role}"] = probability(own["model_p_value"])
    return found


def probability(p_value: float) -> str:
    if pd.isna(p_value):
        return "–"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def memorised_rows(memorised: pd.DataFrame) -> list[dict]:
    """Per model, language, embedding and measure: support and start, trained and unseen strings."""
    rows = []
    about = ["language", "model", "embedding"]
    for keys, table in memorised.groupby(about, sort=False):
        for measure, name in MEASURES.items():
            own = table[table["measure"] == measure]
            parts = associations(own)
            difference = compared(parts)
            never = own.groupby("strings")["never"].mean()
            row = dict(zip(about, keys, strict=True))
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
                        for role in (TRAINED, UNSEEN)
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
            "predictor": "" if pd.isna(row["predictor"]) else row["predictor"],
        }
        rows.append(row)
    return rows
