"""Kinds of tables of languages and datasets."""

from palimpsest import paths
from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Document, Kind, kinds_in

columns = SHARED.extended("""
text str: the terminals, separated by spaces
length int: number of terminals
derivation_log_prob float?: log probability of the derivation that produced it, nats
role str?: s0, s1, ... for a target string; in leaked-* and without-production-*: leaked, placebo or
    never for a test string, paraphrase-1-{string_id}, ... for a paraphrase of a leaked string,
    choice-{string_id} for a test string with a wrong answer instead of the right one
rule int: number of the rule, from 0; the rules of the start symbol come first, the others in the
    order of the file
lhs str: left-hand side, a non-terminal
rhs str: right-hand side, as in the file: terminals stand in quotes
probability float: probability of the rule among the rules of the same left-hand side
expected_uses float: how often the derivation of a string uses the rule on average, exact; 0 for a
    rule that no derivation reaches
node int: number of the node; parents come before their children
parent int?: node of the parent; null for the root
depth int: distance from the root
symbol str: the non-terminal or terminal
begin int: first symbol of the string below the node; 0 is the string's first
end int: the symbol after the last one below the node
surprise float?: for a terminal: −log probability given all symbols before it, nats; otherwise null
split str: train (count > 0), test, held_out (only measured) or stand_in (set apart from the
    training strings by the split `disjoint`, and not in the test set); in original and retain also
    forget (to be forgotten) and validation; in a stream also panel (trained on and measured; the
    strings of train are not measured)
test_count int: copies in the test set; a train string with test_count > 0 counts for the test loss,
    but never stands in for another string, because it was seen in training
group str?: name of the string's group: groups are forgotten as a whole; in leaked-* and
    without-production-* the rule with which its derivation begins
cohort int?: in a stream: the macro-batch in which the string is trained on, from 1; otherwise null
optimal_loss float?: Bayes-optimal loss under the same language, nats per predicted token, or per
    byte of a text that a tokenizer cuts; null for a user's own text or records
""")
LANGUAGE_SAMPLE = Kind(
    "language_sample",
    "One row per distinct string of a sample of the language.",
    paths.LANGUAGE_SAMPLE,
    columns(
        "language string_id text length count log_prob derivation_log_prob",
        count="int: copies of the string in the sample",
    ),
)
TARGETS = Kind(
    "targets",
    "One row per target string: the strings that are left out and put back, most frequent first.",
    paths.LANGUAGE_TARGETS,
    columns("language role string_id text log_prob", role="str: s0, s1, ..."),
)
GRAMMAR = Kind(
    "grammar",
    "One row per rule of the language's grammar; a rule that stands twice in the file is one rule.",
    paths.GRAMMAR,
    columns("language rule lhs rhs probability expected_uses"),
)
DERIVATION_TREE = Kind(
    "derivation",
    "One row per node of the most probable derivation of one typical string of the language.",
    paths.DERIVATION,
    columns(
        """
        language string_id log_prob node parent depth symbol begin end rule probability surprise
        """,
        rule="int?: rule of the table `grammar`; null for a terminal",
        probability="float?: probability of the rule; null for a terminal",
    ),
)
STRINGS = Kind(
    "strings",
    "One row per distinct string of a dataset.",
    paths.DATASET,
    columns("""
        language size seed variant string_id text n_tokens split count test_count role group cohort
        log_prob? derivation_log_prob optimal_loss
    """),
)

LANGUAGE_SUMMARY = Document("language_summary", paths.LANGUAGE_SUMMARY)
KINDS = kinds_in(globals())
