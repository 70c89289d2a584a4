"""The claims in the report: the numbers of verdicts, and each claim with its tests."""

from collections import Counter
from collections.abc import Iterable
from string import ascii_lowercase
from typing import NamedTuple

import pandas as pd

from palimpsest.claims import AGREES, CANNOT_TELL, DISAGREES
from palimpsest.number_format import slug
from palimpsest.report.part import Part

VERDICTS = (AGREES, DISAGREES, CANNOT_TELL)
ERROR_RATE = 0.05
SEVERAL = 3  # tests with a note, from which on a letter stands for it


def headline(claims: pd.DataFrame) -> dict:
    """The numbers of tests, of claims and of verdicts.

    A row that the definitions alone decide is not a test, nor is one for which nothing was run;
    they are counted separately.
    """
    n_by_construction = int(claims["by_construction"].sum())
    n_not_run = int((~was_run(claims)).sum())
    claims = tested(claims)
    cannot_tell = claims["verdict"] == CANNOT_TELL
    return {
        "n_by_construction": n_by_construction,
        "n_tests": len(claims),
        "n_claims": claims["claim"].nunique(),
        "n_not_run": n_not_run,
        "n_seeds_known": int(claims["seeds_needed"].notna().sum()),
        "seeds_for_half": claims["seeds_needed"].median(),
        "n_p_values": int(claims["p_holm"].notna().sum()),
        "n_corrected": int(((claims["p_holm"] < ERROR_RATE) & ~cannot_tell).sum()),
        "counts": counts(claims),
    }


def tested(claims: pd.DataFrame) -> pd.DataFrame:
    return claims[~claims["by_construction"].astype(bool) & was_run(claims)]


def was_run(claims: pd.DataFrame) -> pd.Series:
    """Whether a claim has a statistic: what it needs was asked for, and is defined."""
    return claims["n_seeds"] > 0


def counts(claims: pd.DataFrame) -> dict[str, int]:
    verdicts = tested(claims)["verdict"]
    return {verdict: int((verdicts == verdict).sum()) for verdict in VERDICTS}


def part_of_the_rest(claims: pd.DataFrame, parts: Iterable[Part]) -> Part:
    """A part with the questions that claims answer and no section asks."""
    known = {question for part in parts for question in part.questions}
    others = dict.fromkeys(one for one in claims["question"] if one not in known)
    return Part(questions=dict.fromkeys(others, ""))


def of_part(claims: pd.DataFrame, part: Part) -> dict:
    """The claims on the questions of a part, counted and question by question."""
    rows = own_claims(claims, part)
    return {
        "title": part.title,
        "n_claims": tested(rows)["claim"].nunique(),
        "counts": counts(rows),
        "questions": by_question(rows, part.questions),
    }


def own_claims(claims: pd.DataFrame, part: Part) -> pd.DataFrame:
    return claims[claims["question"].isin(list(part.questions))]


def by_question(claims: pd.DataFrame, questions: dict[str, str]) -> list[dict]:
    """The claims of every question, in the order of the questions; some questions have none."""
    return [
        {
            "question": (question[:1].upper() + question[1:]).replace("_", " "),
            "words": words,
            "anchor": f"claims-{slug(question)}",
            **answered(claims[claims["question"] == question]),
        }
        for question, words in questions.items()
    ]


def answered(rows: pd.DataFrame) -> dict:
    """The tests of one question: the numbers of verdicts, and each claim with its languages."""
    rows = tested(rows)
    rows = rows.assign(
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


def choices(claims: Iterable[dict]) -> dict[str, list[str]]:
    """What the claims can be filtered by, each with its values."""
    rows = [(claim, row) for claim in claims for row in claim["tests"]]
    found = {
        "question": [claim["question"] for claim, _ in rows],
        "verdict": [row["verdict"] for _, row in rows],
        "evidence": [claim["evidence"] for claim, _ in rows],
        "model": [model for _, row in rows for model in models_of(row)],
        "language": [row["language"] for _, row in rows],
    }
    in_order = {name: dict.fromkeys(filter(None, values)) for name, values in found.items()}
    return {
        name: list(values) if name == "question" else sorted(values)
        for name, values in in_order.items()
    }


def models_of(row: dict) -> list[str]:
    return row["models"].split(", ") if row["models"] else []


def reasons(row: NamedTuple) -> list[str]:
    """Short notes on what a reader has to know about a row, besides its numbers."""
    covered = f"{100 * row.coverage:.0f} % of the strings have stand-ins"
    return [
        note for note in (*row.note.split("; "), covered if pd.notna(row.coverage) else "") if note
    ]


def shared_notes(claims: Iterable[dict]) -> dict[str, str]:
    """The notes of several tests, each with the letter that stands for it in their rows."""
    found = Counter(note for claim in claims for row in claim["tests"] for note in row["reasons"])
    often = [note for note, n in found.most_common(len(ascii_lowercase)) if n >= SEVERAL]
    return dict(zip(often, ascii_lowercase, strict=False))


def held(row: NamedTuple) -> str:
    """In how many of several models the claim of a row holds, of several families, and in others.

    Written as 5/6 (3/3) agrees: models, families, and the verdict on models like these, where it
    is another than the row's.
    """
    models, families = (
        f"{holds:.0f}/{n:.0f}" if pd.notna(holds) and pd.notna(n) and n > 1 else ""
        for holds, n in (
            (row.n_models_hold, row.n_models),
            (row.n_families_hold, row.n_families),
        )
    )
    others = "" if row.verdict_models == row.verdict else row.verdict_models
    return " ".join(filter(None, (models, families and f"({families})", others)))


def mathematical(region: str) -> str:
    return region.replace(">=", "≥").replace("<=", "≤").replace("-", "−")
