"""Kinds of tables of languages and datasets."""

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
            "retain also forget (to be forgotten) and validation",
        ),
        COUNT,
        Column(
            "test_count",
            int,
            "copies in the test set; a train string with test_count > 0 counts for the test loss, "
            "but never stands in for another string, because it was seen in training",
        ),
        Column("role", str, "s0, s1, ... for a target string", True),
        Column("group", str, "name of the string's group; groups are forgotten as a whole", True),
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
    STRINGS,
)
