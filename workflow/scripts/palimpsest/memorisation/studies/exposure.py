"""The study `exposure`: which fields of single strings a model memorised, and which it inferred."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from palimpsest.configuration.settings import Settings
from palimpsest.corpora.files import read_grammar
from palimpsest.datasets.kinds import STRINGS
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.kinds import FIELD_VALUES, LEARNING, OF_FIELD, OF_RUN, columns
from palimpsest.memorisation.study import SIZE_KEY, StudyOfFields, kind_of_study
from palimpsest.requests import WEIGHTS, Runs, Unfinished
from palimpsest.section import queries_of

pd = lazy_import("pandas")
exposures = lazy_import("palimpsest.memorisation.exposure")

QUERY = "palimpsest.memorisation.field_values:field_values"
MANIFEST = f"{OF_RUN}/manifest.json"
KIND = kind_of_study(
    "exposure",
    "One row per model, size, seed, string and field of the string, at the last epoch: whether the "
    "model memorised the field, inferred it, or neither.",
    columns(
        """
        model language size seed variant epoch group string_id count field begin value determined
        loss optimal recited p_value verdict n_values bits bits_lower bits_upper
        """,
        **OF_FIELD,
        n_values="int?: number of values that the field can have; null: the field was not ranked",
        group="str: train (distinct training strings) or unseen (distinct strings that were never "
        "trained on: the placebo)",
        value="str: the text of the field",
        determined="bool: whether the text before the field leaves one value for it, so that it "
        "can be inferred",
        loss="float: the model's loss of the field's tokens, nats",
        optimal="float: Bayes-optimal loss of the letters of these tokens, nats",
        recited="float: loss of the field under a model that recites its training strings, nats; a "
        "string never trained on counts as one of them",
        p_value="float: exp(loss - optimal), at most 1; of the strings that the model was not "
        "trained on, a share of p at most has a field with a value of p or less",
        verdict="str: memorised (the field is open, and its p-value is at most the study's "
        "false_alarms), known (it is determined, and the model gives it a probability above 1/2: "
        "inferred or memorised), cannot tell (it is open, and even the loss `recited` has a "
        "p-value above false_alarms) or neither",
        bits="float?: exposure, log2 of n_values minus log2 of the value's rank by loss among "
        "them, bits; null: the field was not ranked",
        bits_lower="float?: lower end of the 95 % interval of the exposure; equal to it if all "
        "values were ranked",
        bits_upper="float?: upper end of this interval",
    ),
)


@reads(strings=STRINGS, learning=LEARNING, values=FIELD_VALUES)
@makes(KIND)
def table(
    *,
    strings: pd.DataFrame,
    learning: pd.DataFrame,
    values: pd.DataFrame,
    tokens: list[str],
    corpus: list[str],
    predict_end: bool,
    false_alarms: float,
) -> pd.DataFrame:
    """Verdicts on the fields of single strings, and exposures of some of them, for every run.

    Parameters
    ----------
    tokens : paths of the tables `tokens` of the runs
    corpus : path of the grammar of the language, in a list
    predict_end : whether the end of a string is a predicted token
    false_alarms : the largest p-value of a memorised field

    Source of the exposure: Carlini et al. 2019, The Secret Sharer. The verdicts, which need exact
    probabilities, are Palimpsest's own.
    """
    (path,) = corpus
    grammar = read_grammar(path)
    return exposures.exposure_table(
        tokens, strings, learning, values, grammar, predict_end, false_alarms
    )


class Exposure(StudyOfFields):
    name = "exposure"
    order = 98
    title = "Of which string, which field is memorised"
    description = (
        "A verdict on every field of single strings, and the exposure of its value among all "
        "values; its runs keep token losses and weights."
    )
    text = (
        "The e-mail of a person may be inferred and the telephone number memorised. A model "
        "that never saw a string can give an open field a probability far above the "
        "language’s only as often as the p-value says. Exposure: one bit more halves the "
        "number of values that must be tried before the right one."
    )
    makes = (FIELD_VALUES,)
    keys: ClassVar = {
        "size": SIZE_KEY,
        "false_alarms": {
            "description": "An open field is memorised if a model that was not trained on the "
            "string predicts the field as well with at most this probability.",
            "type": "number",
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 1,
        },
        "strings": {
            "description": "The most training strings, and the most unseen strings, of a run whose "
            "open fields are ranked among other values.",
            "type": "integer",
            "minimum": 1,
        },
        "values": {
            "description": "The most other values among which a value is ranked; a random sample "
            "if the field has more, and then the exposure has an interval.",
            "type": "integer",
            "minimum": 1,
        },
    }

    def runs(self, settings: Settings, language: str) -> list[Runs]:
        """The runs on a language; each keeps its weights, too."""
        runs = super().runs(settings, language)
        return [replace(one, keeps=one.keeps | {WEIGHTS}) for one in runs]

    def queries(self, settings: Settings) -> Iterator[Unfinished]:
        return queries_of(settings, self._all_runs(settings), QUERY, self.values(settings))

    def values(self, settings: Settings) -> dict[str, int]:
        """The values of the query."""
        block = self.block(settings)
        return {key: block[key] for key in ("strings", "values")}

    def parameters(self, settings: Settings, language: str) -> dict:
        given = super().parameters(settings, language)
        return {**given, "false_alarms": self.block(settings)["false_alarms"]}


STUDY = Exposure()
