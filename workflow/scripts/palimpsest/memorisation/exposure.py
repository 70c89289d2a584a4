"""What a model knows of the fields of single strings: inferred, memorised, or neither.

The language gives every field of a text its probability after the text before it. A model that was
not trained on a text can give its field a probability that is 1 / p times as high with a
probability of at most p, because the mean of P(model) / P(language) over the values of the
language is at most 1. So P(language) / P(model) is a p-value, for every single string and without
another training.
"""

import math

import numpy as np
import pandas as pd

from palimpsest import token_losses
from palimpsest.errors import UserError
from palimpsest.languages import Grammar, exposure
from palimpsest.memorisation.fields import REST, fields_of
from palimpsest.memorisation.likelihoods import members_of_groups, read_runs
from palimpsest.token_losses import TokenLosses

MEMORISED, INFERRED, NEITHER = "memorised", "inferred", "neither"
CANNOT_TELL = "cannot tell"
AS_LIKELY_AS_NOT = math.log(2)  # nats: the loss of a value of probability 1/2
OF_FIELD = ["model", "size", "seed", "variant", "string_id", "field", "begin"]


def exposure_table(
    paths: list[str],
    strings: pd.DataFrame,
    learning: pd.DataFrame,
    values: pd.DataFrame,
    grammar: Grammar,
    predict_end: bool,
    false_alarms: float,
) -> pd.DataFrame:
    """The table `exposure` of some runs on one language of text, at their last epochs.

    Parameters
    ----------
    paths : tables `tokens` of the runs
    strings, learning, values : stacked tables `strings`, `learning` and `field_values`
    grammar : the grammar of the language, with fields
    predict_end : whether the end of a string is a predicted token
    false_alarms : a field is memorised if its p-value is at most this number

    Raises `UserError` if a run has no dataset or no learning, or if its dataset was made from
    another grammar.
    """
    characters = grammar.of_characters()
    rows = pd.concat(
        [
            _rows(losses, members, grammar, characters, predict_end).assign(group=group)
            for losses, dataset, _ in read_runs(paths, strings, learning, token_losses.read)
            for group, members in members_of_groups(dataset).items()
            if len(members)
        ],
        ignore_index=True,
    )
    rows["verdict"] = verdicts(rows, false_alarms)
    found = rows.merge(exposures(values), on=OF_FIELD, how="left", validate="one_to_one")
    if found["bits"].notna().sum() < len(values):
        raise UserError(
            "the tables `field_values` have fields that the strings of their runs do not have; "
            "delete them and rerun"
        )
    return found


def _rows(
    losses: TokenLosses,
    strings: pd.DataFrame,
    grammar: Grammar,
    characters: Grammar,
    predict_end: bool,
) -> pd.DataFrame:
    """The fields of one group of strings in one run, without verdicts and exposures."""
    spans, span, optimal = fields_of(losses, strings, grammar, characters, predict_end)
    inside = span != REST

    def by_span(nll: np.ndarray) -> np.ndarray:
        return np.bincount(span[inside], nll[inside], minlength=len(spans))

    loss, least = by_span(losses.of(strings["string_id"])[-1]), by_span(optimal)
    of_string = strings.iloc[spans["string"]]
    found = pd.DataFrame(
        {
            **losses.run,
            "epoch": losses.epochs[-1],
            "string_id": of_string["string_id"].array,
            "count": of_string["count"].array,
            **{name: spans[name].array for name in ("field", "begin", "value", "determined")},
            "loss": loss,
            "optimal": least,
            # Rounding may carry a loss of nearly 0 below the optimal one.
            "p_value": np.exp(np.minimum(loss - least, 0.0)),
        }
    )
    # All letters of a field may be in tokens that belong to another field.
    return found[by_span(np.ones(len(span))) > 0]


def verdicts(fields: pd.DataFrame, false_alarms: float) -> np.ndarray:
    """The verdict on each row, from its columns `determined`, `loss`, `optimal` and `p_value`.

    A loss is at least 0. So if the language gives a value a probability above `false_alarms`, such
    as 1/16, no loss can be so low that it tells.
    """
    determined = fields["determined"].to_numpy()
    memorised = ~determined & (fields["p_value"] <= false_alarms)
    inferred = determined & (fields["loss"] < AS_LIKELY_AS_NOT)
    undecidable = ~determined & (np.exp(-fields["optimal"]) > false_alarms)
    verdicts = [MEMORISED, INFERRED, CANNOT_TELL]
    return np.select([memorised, inferred, undecidable], verdicts, NEITHER).astype(object)


def exposures(values: pd.DataFrame) -> pd.DataFrame:
    """The exposure of every row of a table `field_values`, with its interval, in bits."""
    found = [
        exposure(np.float32(row.nll), row.losses, row.n_values)
        for row in values.itertuples(index=False)
    ]
    bits = np.array(found, dtype=float).reshape(-1, 3)
    names = {"bits": 0, "bits_lower": 1, "bits_upper": 2}
    columns = {name: bits[:, place] for name, place in names.items()}
    return values[[*OF_FIELD, "n_values"]].assign(**columns)
