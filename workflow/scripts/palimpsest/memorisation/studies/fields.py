"""The study `fields`: which fields of a text were memorised, and which were inferred."""

from __future__ import annotations

from typing import ClassVar

from palimpsest.configuration.settings import Settings
from palimpsest.corpora.files import read_grammar
from palimpsest.datasets.kinds import STRINGS
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.kinds import LEARNING, columns
from palimpsest.memorisation.study import SIZE_KEY, StudyOfFields, kind_of_study

pd = lazy_import("pandas")
fields = lazy_import("palimpsest.memorisation.fields")

KIND = kind_of_study(
    "fields",
    "One row per model, size, seed, epoch, group of strings and field: the loss of the field under "
    "the model and under the language. The sum of loss times n_strings over all rows of a run, "
    "epoch and group is the nll of its strings in the trace.",
    columns(
        """
        model language size seed variant epoch optimal_epoch group field determined n_strings loss
        optimal bits share_below
        """,
        group="str: train (distinct training strings) or unseen (distinct strings that were never "
        "trained on: the placebo)",
        field="str?: name of the field in the grammar; null: tokens without a letter of a field",
        determined="bool: whether the text before the field leaves one value for it, so that it "
        "can be inferred: its Bayes-optimal loss is 0; false without a field",
        n_strings="int: strings of the group that have such a field",
        loss="float: the model's loss of the field's tokens, nats, mean over these strings",
        optimal="float: Bayes-optimal loss of the letters of these tokens, nats, mean over these "
        "strings",
        bits="float: optimal minus loss, bits, mean over these strings",
        share_below="float: share of these strings whose loss is below the optimal one by more "
        "than the study's margin",
    ),
)


@reads(strings=STRINGS, learning=LEARNING)
@makes(KIND)
def table(
    *,
    strings: pd.DataFrame,
    learning: pd.DataFrame,
    tokens: list[str],
    corpus: list[str],
    predict_end: bool,
    margin: float,
) -> pd.DataFrame:
    """Losses of fields of training strings and unseen strings, for every run and epoch.

    Parameters
    ----------
    tokens : paths of the tables `tokens` of the runs
    corpus : path of the grammar of the language, in a list
    predict_end : whether the end of a string is a predicted token
    margin : nats below the Bayes-optimal loss, for `share_below`
    """
    (path,) = corpus
    return fields.fields_table(tokens, strings, learning, read_grammar(path), predict_end, margin)


class Fields(StudyOfFields):
    name = "fields"
    order = 97
    title = "Which fields are memorised, and which inferred"
    description = (
        "Losses of the fields of texts beside their Bayes-optimal losses; its runs keep token "
        "losses."
    )
    text = (
        "The grammar of a language of text may name fields, such as an e-mail or a telephone "
        "number. A field is determined where the text before leaves one value for it: somebody "
        "who knows the language infers the value, and has no loss. Elsewhere the field is open, "
        "and nobody can go below its Bayes-optimal loss without having seen the string. Strings "
        "never trained on tell the two apart: for them, too, the loss of an inferred field falls, "
        "and that of a memorised field does not. An open field at the beginning of a text can only "
        "be memorised in part, because nothing before it says which training string follows."
    )
    keys: ClassVar = {
        "size": SIZE_KEY,
        "margin": {
            "description": "Nats by which the loss of a field must be below its Bayes-optimal loss "
            "to count as below.",
            "type": "number",
            "minimum": 0,
        },
    }

    def parameters(self, settings: Settings, language: str) -> dict:
        return {**super().parameters(settings, language), "margin": self.block(settings)["margin"]}


STUDY = Fields()
