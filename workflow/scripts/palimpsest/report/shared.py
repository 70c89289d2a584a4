"""The content of every report: the languages and their rules, and terms that all sections use."""

import numpy as np
import pandas as pd

from palimpsest.languages.notation import read_symbols
from palimpsest.paths import GRAMMAR
from palimpsest.report.part import Part, chapters_of
from palimpsest.report.templates import template

SHORT = 16  # non-terminals of the longest grammar that is not folded up


def part(grammars: pd.DataFrame | None) -> Part:
    """The part that every report has.

    `grammars` has the tables `grammar` of all languages, stacked. If it is empty or None, the rules
    are left out.
    """
    words = template(__file__, "grammars.html.j2").module
    languages = grammar_rows(grammars)
    before = {"languages": words.grammars(languages, GRAMMAR)} if languages else {}
    return Part(chapters=chapters_of(words, before), glossary=words.glossary)


def grammar_rows(grammars: pd.DataFrame | None) -> list[dict]:
    """Each language with a row for each non-terminal: its rules, its uses, and its choices."""
    if grammars is None or grammars.empty:
        return []
    grammars = grammars.assign(nats=-grammars["expected_uses"] * np.log(grammars["probability"]))
    languages = []
    for name, rules in grammars.groupby("language", sort=False):
        rows = [
            {
                "lhs": lhs,
                "rules": [
                    {"rhs": read_symbols(rule.rhs), "probability": f"{rule.probability:.4g}"}
                    for rule in group.itertuples()
                ],
                "uses": group["expected_uses"].sum(),
                "nats": group["nats"].sum(),
            }
            for lhs, group in rules.groupby("lhs", sort=False)
        ]
        languages.append(
            {
                "name": name,
                "rows": rows,
                "n_rules": len(rules),
                "nats": rules["nats"].sum(),
                "short": len(rows) <= SHORT,
            }
        )
    return languages
