"""The kind of the table with the answers of all sections: shares beyond false alarms."""

from palimpsest import paths
from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind

columns = SHARED.extended("""
question str: the question, in words
trained float?: share of what the model was trained on that the measure calls memorised; null: the
    measure applies to none of it
unseen float?: the same share of what the model was never trained on: the false alarms; null: the
    measure applies to none of it, or there is none
difference float?: trained − unseen: the share beyond false alarms
lower float?: lower end of the 95 % interval of the difference; null: none, because there is one
    seed, a seed without a difference, or the same difference in all seeds
upper float?: its upper end; null likewise
interval_over str: what varies in the interval: seeds, or groups (of records); empty: no interval
n_seeds int: number of seeds that are averaged; 0: the model was only asked
""")
HEADLINE = Kind(
    "headline",
    "One row per question, model, language (or name of records), measure and evidence: the share "
    "memorised, beyond false alarms. Of the rows of a question, model and language, the first has "
    "the strongest evidence.",
    paths.HEADLINE,
    columns(
        """
        question model language size measure evidence trained unseen difference lower upper
        interval_over n_seeds
        """,
        size="int?: number of training strings asked for, with copies; null for records",
        language="str: name of the language, of the records, or of the table of losses",
        evidence="str: what the threshold rests on: retraining (without the string or record), "
        "same-frequency (strings never trained on stand in), language (exact probabilities), "
        "reference model, unseen (records, in the loss attack) or constant (the loss alone)",
    ),
)
