"""The content of every report: the languages, and terms that all sections use."""

import numpy as np
import pandas as pd

from palimpsest.number_format import number
from palimpsest.paths import GRAMMAR
from palimpsest.report.part import Part, chapters_of
from palimpsest.report.templates import template


def part(grammars: pd.DataFrame | None) -> Part:
    """The part that every report has.

    `grammars` has the tables `grammar` of all languages, stacked. If it is empty or None, they
    are left out.
    """
    words = template(__file__, "grammars.html.j2").module
    languages = grammar_rows(grammars)
    before = {"languages": words.grammars(languages, GRAMMAR)} if languages else {}
    return Part(chapters=chapters_of(words, before), glossary=words.glossary)


def grammar_rows(grammars: pd.DataFrame | None) -> list[dict]:
    """Each language with the numbers of its rules and non-terminals, and its choices' entropy."""
    if grammars is None or grammars.empty:
        return []
    grammars = grammars.assign(nats=-grammars["expected_uses"] * np.log(grammars["probability"]))
    return [
        {
            "name": name,
            "n_rules": len(rules),
            "n_non_terminals": rules["lhs"].nunique(),
            "nats": number(rules["nats"].sum()),
        }
        for name, rules in grammars.groupby("language", sort=False)
    ]
