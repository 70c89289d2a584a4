"""The rules of a language's grammar, and the derivation of one of its strings, as tables."""

import math

import numpy as np
import pandas as pd

from palimpsest.corpora import String
from palimpsest.corpora.files import read_grammar
from palimpsest.datasets.kinds import (
    DERIVATION_TREE,
    GRAMMAR,
    LANGUAGE_SAMPLE,
    LANGUAGE_SUMMARY,
    TARGETS,
)
from palimpsest.datasets.strings import (
    distinct_sample,
    in_exact_symbols,
    string_id,
    summarise,
    target_strings,
    text_in,
)
from palimpsest.languages import Grammar
from palimpsest.languages.structure import Rule
from palimpsest.making import makes, reads

SEED = 0  # of a language's sample; runs have their own seeds


@reads(corpus=read_grammar)
@makes(GRAMMAR, DERIVATION_TREE, LANGUAGE_SAMPLE, TARGETS, LANGUAGE_SUMMARY)
def language_tables(corpus: Grammar, language: str, *, sample: int, targets: int) -> dict:
    """A language's rules, a derivation, a sample, its target strings and a summary of it.

    `sample` is the number of strings that are sampled, and `targets` that of target strings.
    """
    sampled = distinct_sample(corpus, language, sample, SEED)
    return {
        GRAMMAR.name: grammar_table(corpus, language),
        DERIVATION_TREE.name: derivation_table(corpus, language, typical_string(sampled)),
        LANGUAGE_SAMPLE.name: sampled.drop(columns="string"),
        TARGETS.name: target_strings(sampled, targets),
        LANGUAGE_SUMMARY.name: summarise(corpus, language, sampled),
    }


def numbered_rules(grammar: Grammar) -> dict[Rule, int]:
    """The number of every rule: those of the start symbol first, then in the order of the file."""
    ordered = sorted(grammar.rules, key=lambda rule: rule.lhs != grammar.start)
    return {rule: number for number, rule in enumerate(ordered)}


def grammar_table(grammar: Grammar, language: str) -> pd.DataFrame:
    uses = dict(zip(grammar.rules, grammar.expected_uses(), strict=True))
    rules = numbered_rules(grammar)
    return pd.DataFrame(
        {
            "language": language,
            "rule": list(rules.values()),
            "lhs": [rule.lhs for rule in rules],
            "rhs": [" ".join(map(str, rule.rhs)) for rule in rules],
            "probability": [rule.probability for rule in rules],
            "expected_uses": [uses[rule] for rule in rules],
        }
    )


def typical_string(sample: pd.DataFrame) -> String:
    """The string of a sample whose log probability is nearest to the mean (minus the entropy).

    If several are equally near, the shortest is taken, and of these the first by `string_id`.
    """
    ranked = sample.sort_values(["length", "string_id"])
    mean = np.average(sample["log_prob"], weights=sample["count"])
    distance = (ranked["log_prob"] - mean).abs()
    # Rounding must not decide between strings of equal probability.
    return ranked.loc[distance[distance <= distance.min() + 1e-9].index[0], "string"]


def derivation_table(grammar: Grammar, language: str, string: String) -> pd.DataFrame:
    """The most probable derivation of a string, as a table of kind `derivation`."""
    nodes, numbers = grammar.derivation(string), numbered_rules(grammar)
    beginnings = [string[:length] for length in range(len(string) + 1)]
    exact, prefixes = in_exact_symbols(grammar, beginnings)
    surprise = -np.diff(exact.log_prefix_probability(prefixes))
    return pd.DataFrame(
        {
            "language": language,
            "string_id": string_id((text_in(grammar, string),)),
            "log_prob": exact.log_probability(prefixes[-1:])[0],
            "node": range(len(nodes)),
            "parent": pd.array([node.parent for node in nodes], dtype="Int64"),
            "depth": [node.depth for node in nodes],
            "symbol": [node.symbol.name for node in nodes],
            "begin": [node.begin for node in nodes],
            "end": [node.end for node in nodes],
            "rule": pd.array([numbers.get(node.rule) for node in nodes], dtype="Int64"),
            "probability": [math.nan if n.rule is None else n.rule.probability for n in nodes],
            "surprise": [surprise[n.begin] if n.rule is None else math.nan for n in nodes],
        }
    )
