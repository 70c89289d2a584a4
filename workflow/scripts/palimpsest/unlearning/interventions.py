"""Interventions of unlearning: training sets with and without the strings to forget."""

from palimpsest.interventions import Intervention

ORIGINAL = "original"  # the whole training set; some of its strings are to be forgotten
RETAIN = "retain"  # the training set without the strings to be forgotten
TRACED = "traced"  # the training set with every eighth of the strings to be forgotten
UNLEARNED = "unlearned"  # no dataset: models that were trained on original and forgot
FORGET = "forget"  # the split, in a file of records, of those to be forgotten
DRAWN = "drawn"  # the strings to forget are drawn at random, and not read from a file

INTERVENTIONS = (
    Intervention(ORIGINAL, "palimpsest.unlearning.forgetting_data:original"),
    Intervention(RETAIN, "palimpsest.unlearning.forgetting_data:retain"),
    Intervention(TRACED, "palimpsest.unlearning.forgetting_data:traced"),
)
