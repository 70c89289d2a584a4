"""What changed since the last report of a folder: verdicts, and numbers of the headline.

A small file beside the report holds the verdicts and numbers of the last one. It is no output of a
rule, because Snakemake deletes the outputs of a rule before the rule runs again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from palimpsest import tables
from palimpsest.report import answers
from palimpsest.report.claims import was_run

OF_TESTS = ("question", "claim", "statistic", "language")
OF_ANSWERS = ("question", "model", "language", "size", "measure", "evidence")
LAST = ".last.json"  # in the place of the report's ".html"


def snapshot(claims: pd.DataFrame, headline: pd.DataFrame) -> dict[str, list]:
    """The verdict of each test that was run, and each answer in numbers, with what it is about.

    Tests that nothing else tells apart are numbered.
    """
    claims = claims.loc[was_run(claims), [*OF_TESTS, "verdict"]]
    tests = claims.assign(number=claims.groupby([*OF_TESTS]).cumcount())
    shown = [answers.shown(row) for row in headline.to_dict("records")]
    return {
        "tests": [
            [[*(str(row[key]) for key in (*OF_TESTS, "number"))], row["verdict"]]
            for row in tests.to_dict("records")
        ],
        "answers": [[[in_key(row[key]) for key in OF_ANSWERS], words(row)] for row in shown],
    }


def in_key(value: object) -> str:
    """A size is a number with a fraction where another row has none."""
    return "" if pd.isna(value) else f"{value:g}" if isinstance(value, float) else str(value)


def words(answer: Mapping) -> str:
    return f"{answer['trained']} against {answer['unseen']}: {answer['beyond']}"


def place_of(report: str | Path) -> Path:
    return Path(report).with_suffix(LAST)


def since_last(report: str | Path, now: Mapping[str, list]) -> dict | None:
    """What differs from the last report in the folder of this one; None if there was none.

    A last report that cannot be read counts as none.
    """
    try:
        last = json.loads(place_of(report).read_text(encoding="utf-8"))
        before = {part: {tuple(key): value for key, value in last[part]} for part in now}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    changed, n_new, n_gone = [], 0, 0
    for part, rows in now.items():
        current = {tuple(key): value for key, value in rows}
        changed += [
            {"about": about(part, key), "before": before[part][key], "now": value}
            for key, value in current.items()
            if before[part].get(key, value) != value
        ]
        n_new += len(current.keys() - before[part].keys())
        n_gone += len(before[part].keys() - current.keys())
    return {"rows": changed, "n_new": n_new, "n_gone": n_gone}


def about(part: str, key: tuple[str, ...]) -> str:
    """What a row is about, in words."""
    if part == "tests":
        _, claim, _, language, _ = key
        return f"{claim} ({language})" if language else claim
    question, model, language, size, *_ = key
    return f"{question} {model}, {language}{f', {size} strings' if size else ''}"


def keep(report: str | Path, now: Mapping[str, list]) -> None:
    with tables.replacing(place_of(report)) as temporary:
        Path(temporary).write_text(json.dumps(now, ensure_ascii=False), encoding="utf-8")
