"""The content of every report: the languages and their rules, and terms that all sections use."""

import numpy as np
import pandas as pd

from palimpsest.languages.notation import read_symbols
from palimpsest.paths import GRAMMAR
from palimpsest.report.part import NOTHING, Chapter, Part
from palimpsest.report.templates import template

SHORT = 16  # non-terminals of the longest grammar that is not folded up
GLOSSARY = {
    "Bayes-optimal loss": "The loss of somebody who knows the language exactly and nothing else.",
    "Entropy": "The average of −log P over the strings of a language, in nats: how "
    "unpredictable they are.",
    "Epoch": "One pass over the training data; epoch 0 is before training.",
    "Loss": "How surprised a model is by a string: the average of −log probability of its "
    "tokens, in nats per token. 0 is certain of every token.",
    "Nat": "The unit of information for natural logarithms; 1 nat is about 1.44 bits.",
    "Rank correlation": "How alike two rankings of the same strings are: 1 if equal, 0 if they "
    "have nothing to do with each other, −1 if reversed; undefined if all strings rank alike.",
    "Seed": "Decides the sample of strings, the model's initial weights and the order of the "
    "data; runs of different seeds are independent repetitions.",
    "Twin": "A model of the same architecture as a pretrained one, shrunk and randomly "
    "initialised.",
}


def part(grammars: pd.DataFrame | None) -> Part:
    """The part that every report has.

    `grammars` has the tables `grammar` of all languages, stacked. If it is empty or None, the rules
    are left out.
    """
    languages = grammar_rows(grammars)
    rules = template(__file__, "grammars.html.j2").module.grammars(languages, GRAMMAR)
    return Part(
        chapters=(
            Chapter(
                "languages",
                "The languages",
                "The models learn formal languages: grammars whose rules have probabilities, so "
                "that the exact probability of every string is known. Entropy says how "
                "unpredictable the strings are. If entropy is high, hardly any string occurs "
                "twice. If entropy is low, a few strings make up most of a sample, as frequent "
                "phrases do in natural language.",
                before=rules if languages else NOTHING,
            ),
        ),
        glossary=GLOSSARY,
    )


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
