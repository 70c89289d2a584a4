"""The claims in the report: the numbers of verdicts, and each claim with its tests."""

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from palimpsest.claims import AGREES, CANNOT_TELL, DISAGREES
from palimpsest.report.part import Part

VERDICTS = (AGREES, DISAGREES, CANNOT_TELL)
ERROR_RATE = 0.05


def headline(claims: pd.DataFrame) -> dict:
    """The numbers of tests, of claims and of verdicts.

    A row that the definitions alone decide is not a test, and is counted separately.
    """
    n_by_construction = int(claims["by_construction"].sum())
    claims = tested(claims)
    cannot_tell = claims["verdict"] == CANNOT_TELL
    return {
        "n_by_construction": n_by_construction,
        "n_tests": len(claims),
        "n_claims": claims["claim"].nunique(),
        "n_not_run": int((claims["n_seeds"] == 0).sum()),
        "n_one_value": int(((claims["n_seeds"] == 1) & claims["lower"].isna()).sum()),
        "n_alike": int((cannot_tell & (claims["lower"] == claims["upper"])).sum()),
        "n_seeds_known": int(claims["seeds_needed"].notna().sum()),
        "seeds_for_half": claims["seeds_needed"].median(),
        "n_p_values": int(claims["p_holm"].notna().sum()),
        "n_corrected": int(((claims["p_holm"] < ERROR_RATE) & ~cannot_tell).sum()),
        "counts": counts(claims),
    }


def tested(claims: pd.DataFrame) -> pd.DataFrame:
    return claims[~claims["by_construction"].astype(bool)]


def counts(claims: pd.DataFrame) -> dict[str, int]:
    verdicts = tested(claims)["verdict"]
    return {verdict: int((verdicts == verdict).sum()) for verdict in VERDICTS}


def by_section(claims: pd.DataFrame, parts: Iterable[Part]) -> list[dict]:
    """The sections that have questions or claims, in their order, each with its questions.

    Claims on a question of no section come last.
    """
    asking = [part for part in parts if part.questions]
    known = [question for part in asking for question in part.questions]
    asking.append(Part(questions=dict.fromkeys(set_aside(claims["question"], known), "")))
    return [of_part(claims, part) for part in asking if part.questions]


def of_part(claims: pd.DataFrame, part: Part) -> dict:
    """The claims on the questions of a part, counted and question by question."""
    rows = own_claims(claims, part)
    return {
        "title": part.title,
        "about": part.claims,
        "n_claims": tested(rows)["claim"].nunique(),
        "counts": counts(rows),
        "any": not rows.empty,
        "questions": by_question(rows, part.questions),
    }


def own_claims(claims: pd.DataFrame, part: Part) -> pd.DataFrame:
    return claims[claims["question"].isin(list(part.questions))]


def set_aside(questions: Iterable[str], known: list[str]) -> list[str]:
    return list(dict.fromkeys(question for question in questions if question not in known))


def by_question(claims: pd.DataFrame, questions: dict[str, str]) -> list[dict]:
    """The claims of every question, in the order of the questions; some questions have none."""
    return [
        {
            "question": (question[:1].upper() + question[1:]).replace("_", " "),
            "words": words,
            **answered(claims[claims["question"] == question]),
        }
        for question, words in questions.items()
    ]


def answered(rows: pd.DataFrame) -> dict:
    """The tests of one question: the numbers of verdicts, and each claim with its languages.

    If the definitions alone decide a verdict, "by construction" is shown instead.
    """
    forced = rows["by_construction"].astype(bool)
    rows = rows.assign(
        shown=rows["verdict"].mask(forced, "by construction"),
        reasons=[reasons(row) for row in rows.itertuples()],
        held=[held(row) for row in rows.itertuples()],
    )
    claims = rows.groupby(["claim", "statistic", "agrees_if", "evidence"], sort=False)
    return {
        "counts": counts(rows),
        "claims": [
            {
                "claim": claim,
                "statistic": statistic,
                "agrees_if": mathematical(region),
                "evidence": evidence,
                "tests": tests.to_dict("records"),
            }
            for (claim, statistic, region, evidence), tests in claims
        ],
    }


def reasons(row: NamedTuple) -> list[str]:
    """Short notes on what a reader has to know about a row, besides its numbers."""
    notes = [] if row.by_construction else row.note.split("; ")
    covered = f"{100 * row.coverage:.0f} % of the strings have stand-ins"
    return [note for note in (*notes, covered if pd.notna(row.coverage) else "") if note]


def held(row: NamedTuple) -> list[str]:
    """In how many of the models, and of their families, the claim of a row holds."""
    counted = (
        (row.n_models_hold, row.n_models, "model", "models"),
        (row.n_families_hold, row.n_families, "family", "families"),
    )
    held = [
        f"{holds:.0f} of {n:.0f} {one if n == 1 else many}"
        for holds, n, one, many in counted
        if pd.notna(holds) and pd.notna(n)
    ]
    of_models = f"in models like these: {row.verdict_models}" if row.verdict_models else ""
    return [*held, of_models] if of_models else held


def mathematical(region: str) -> str:
    return region.replace(">=", "≥").replace("<=", "≤").replace("-", "−")
