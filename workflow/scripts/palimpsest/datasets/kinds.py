"""Kinds of tables of languages and datasets."""

from dataclasses import replace

from palimpsest import paths
from palimpsest.tables.columns import (
    COUNT,
    KNOWN_LOG_PROB,
    LANGUAGE,
    LOG_PROB,
    SEED,
    SIZE,
    STRING_ID,
    VARIANT,
)
from palimpsest.tables.kinds import Column, Document, Kind

DERIVATION = Column(
    "derivation_log_prob", float, "log probability of the derivation that produced it, nats", True
)
TEXT = Column("text", str, "the terminals, separated by spaces")
LANGUAGE_SAMPLE = Kind(
    "language_sample",
    "One row per distinct string of a sample of the language.",
    paths.LANGUAGE_SAMPLE,
    (
        LANGUAGE,
        STRING_ID,
        TEXT,
        Column("length", int, "number of terminals"),
        Column("count", int, "copies of the string in the sample"),
        LOG_PROB,
        DERIVATION,
    ),
)
TARGETS = Kind(
    "targets",
    "One row per target string: the strings that are left out and put back, most frequent first.",
    paths.LANGUAGE_TARGETS,
    (LANGUAGE, Column("role", str, "s0, s1, ..."), STRING_ID, TEXT, LOG_PROB),
)
RULE = Column(
    "rule",
    int,
    "number of the rule, from 0; the rules of the start symbol come first, the others "
    "in the order of the file",
)
PROBABILITY = Column(
    "probability", float, "probability of the rule among the rules of the same left-hand side"
)
GRAMMAR = Kind(
    "grammar",
    "One row per rule of the language's grammar; a rule that stands twice in the file is one rule.",
    paths.GRAMMAR,
    (
        LANGUAGE,
        RULE,
        Column("lhs", str, "left-hand side, a non-terminal"),
        Column("rhs", str, "right-hand side, as in the file: terminals stand in quotes"),
        PROBABILITY,
        Column(
            "expected_uses",
            float,
            "how often the derivation of a string uses the rule on average, exact; 0 for a rule "
            "that no derivation reaches",
        ),
    ),
)
DERIVATION_TREE = Kind(
    "derivation",
    "One row per node of the most probable derivation of one typical string of the language.",
    paths.DERIVATION,
    (
        LANGUAGE,
        STRING_ID,
        LOG_PROB,
        Column("node", int, "number of the node; parents come before their children"),
        Column("parent", int, "node of the parent; null for the root", True),
        Column("depth", int, "distance from the root"),
        Column("symbol", str, "the non-terminal or terminal"),
        Column("begin", int, "first symbol of the string below the node; 0 is the string's first"),
        Column("end", int, "the symbol after the last one below the node"),
        replace(RULE, meaning="rule of the table `grammar`; null for a terminal", nullable=True),
        replace(PROBABILITY, meaning="probability of the rule; null for a terminal", nullable=True),
        Column(
            "surprise",
            float,
            "for a terminal: −log probability given all symbols before it, nats; otherwise null",
            True,
        ),
    ),
)
STRINGS = Kind(
    "strings",
    "One row per distinct string of a dataset.",
    paths.DATASET,
    (
        LANGUAGE,
        SIZE,
        SEED,
        VARIANT,
        STRING_ID,
        TEXT,
        Column("n_tokens", int, "number of predicted tokens"),
        Column(
            "split",
            str,
            "train (count > 0), test, held_out (only measured) or stand_in (set apart from the "
            "training strings by the split `disjoint`, and not in the test set); in original and "
            "retain also forget (to be forgotten) and validation; in a stream also panel (trained "
            "on and measured; the strings of train are not measured)",
        ),
        COUNT,
        Column(
            "test_count",
            int,
            "copies in the test set; a train string with test_count > 0 counts for the test loss, "
            "but never stands in for another string, because it was seen in training",
        ),
        Column(
            "role",
            str,
            "s0, s1, ... for a target string; in leaked-* and without-production-*: leaked, "
            "placebo or never for a test string, paraphrase-1-{string_id}, ... for a paraphrase "
            "of a leaked string, distractor-{string_id} for one of any test string that is never "
            "trained on",
            True,
        ),
        Column(
            "group",
            str,
            "name of the string's group: groups are forgotten as a whole; in leaked-* and "
            "without-production-* the rule with which its derivation begins",
            True,
        ),
        Column(
            "cohort",
            int,
            "in a stream: the macro-batch in which the string is trained on, from 1; otherwise "
            "null",
            True,
        ),
        KNOWN_LOG_PROB,
        DERIVATION,
        Column(
            "optimal_loss",
            float,
            "Bayes-optimal loss under the same language, nats per predicted token; null for a text",
            True,
        ),
    ),
)

LANGUAGE_SUMMARY = Document("language_summary", paths.LANGUAGE_SUMMARY)
KINDS = (
    LANGUAGE_SAMPLE,
    TARGETS,
    GRAMMAR,
    DERIVATION_TREE,
    STRINGS,
)
