"""The claims for a reader: how many came out how, and each with its tests."""

from collections.abc import Iterable

import pandas as pd

from palimpsest.report.part import Part

VERDICTS = ("agrees", "disagrees", "cannot tell")


def headline(claims: pd.DataFrame) -> dict:
    """How many tests there are, of how many claims, with which verdicts.

    What the definitions alone decide is no test, and is counted by itself.
    """
    n_by_construction = int(claims["by_construction"].sum())
    claims = tested(claims)
    return {
        "n_by_construction": n_by_construction,
        "n_tests": len(claims),
        "n_claims": claims["claim"].nunique(),
        "n_not_run": int((claims["n_seeds"] == 0).sum()),
        "n_one_value": int(((claims["n_seeds"] == 1) & claims["lower"].isna()).sum()),
        "counts": counts(claims),
    }


def tested(claims: pd.DataFrame) -> pd.DataFrame:
    """The rows that could have come out otherwise."""
    return claims[~claims["by_construction"].astype(bool)]


def counts(claims: pd.DataFrame) -> dict[str, int]:
    """The number of tests by verdict."""
    verdicts = tested(claims)["verdict"]
    return {verdict: int((verdicts == verdict).sum()) for verdict in VERDICTS}


def by_section(claims: pd.DataFrame, parts: Iterable[Part]) -> list[dict]:
    """The sections that have questions or claims, in their order, each with its questions.

    Claims on a question that no section asks stand last.
    """
    asking = [part for part in parts if part.questions]
    known = [question for part in asking for question in part.questions]
    asking.append(Part(questions=dict.fromkeys(set_aside(claims["question"], known), "")))
    return [
        {
            "title": part.title,
            "about": part.claims,
            "n_claims": tested(rows)["claim"].nunique(),
            "counts": counts(rows),
            "any": not rows.empty,
            "questions": by_question(rows, part.questions),
        }
        for part in asking
        if part.questions
        for rows in [claims[claims["question"].isin(list(part.questions))]]
    ]


def set_aside(questions: Iterable[str], known: list[str]) -> list[str]:
    """The questions that are not known, each once."""
    return list(dict.fromkeys(question for question in questions if question not in known))


def by_question(claims: pd.DataFrame, questions: dict[str, str]) -> list[dict]:
    """The claims of every question, in the order of the questions; some questions have none."""
    return [
        {
            "question": question[:1].upper() + question[1:],
            "words": words,
            **answered(claims[claims["question"] == question]),
        }
        for question, words in questions.items()
    ]


def answered(rows: pd.DataFrame) -> dict:
    """The tests of one question: how many came out how, and each claim with its languages.

    Shown for what the definitions decide is that they do, not a verdict.
    """
    shown = rows["verdict"].mask(rows["by_construction"].astype(bool), "by construction")
    rows = rows.assign(shown=shown)
    claims = rows.groupby(["claim", "statistic", "agrees_if"], sort=False)
    return {
        "counts": counts(rows),
        "claims": [
            {
                "claim": claim,
                "statistic": statistic,
                "agrees_if": mathematical(region),
                "tests": tests.to_dict("records"),
            }
            for (claim, statistic, region), tests in claims
        ],
    }


def mathematical(region: str) -> str:
    """A region of a statistic with proper signs."""
    return region.replace(">=", "≥").replace("<=", "≤").replace("-", "−")
