"""Kinds of tables of corpora."""

from palimpsest import paths
from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind, kinds_in

CORPUS = Kind(
    "corpus",
    "One row per record of a user's own, as the configuration names them.",
    paths.CORPUS_OF_RECORDS,
    SHARED(
        "id text group trained split copies prompt paraphrased perturbed subject rephrased",
        id="str: name of the record",
        text="str: the text of the record",
        group="str: name of the record's group, such as a person; without groups, the record's own",
        trained="bool?: whether a model was trained on the record; null: the file does not say it",
        split="str?: train, test, holdout, forget or retain; null: the file does not say it",
        prompt="str?: text before the record's own, on which no loss is measured; null: no "
        "record has one",
        paraphrased="str?: JSON list of other texts that say the same; null: no record has any",
        perturbed="str?: JSON list of texts like the record's that are false; null likewise",
        subject="str?: of a question with several choices, '' for none; null: no such questions",
        rephrased="str?: JSON list of prompts that ask the same; null likewise",
        copies="int: how often the record is in the training data, if it is in it",
    ),
)
KINDS = kinds_in(globals())
