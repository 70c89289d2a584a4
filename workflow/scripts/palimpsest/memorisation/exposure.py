"""What a model knows of the fields of single strings: memorised, known, or neither.

The language gives every field of a text its probability after the text before it. The ratio
P(model) / P(language) of the text, token by token, has a mean of at most 1 over the strings of the
language. So with a probability of at most p, a string that the model was not trained on has a field
to which the model gives 1 / p times the probability that the language does (Ville's inequality):
P(language) / P(model) is a p-value, for every single string and without another training. It is one
over all strings; a field that only few strings have is below p in more of these.
"""

import math
import sys
from bisect import bisect_left

import numpy as np
import pandas as pd

from palimpsest import token_losses
from palimpsest.errors import UserError
from palimpsest.languages import Grammar, exposure
from palimpsest.memorisation.fields import REST, fields_of
from palimpsest.memorisation.likelihoods import members_of_groups, read_runs
from palimpsest.token_losses import TokenLosses

MEMORISED, KNOWN, NEITHER = "memorised", "known", "neither"
CANNOT_TELL = "cannot tell"
LAST_LETTER = chr(sys.maxunicode)
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
            _rows(losses, members, dataset, grammar, characters, predict_end).assign(group=group)
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
    # All letters of a field may be in tokens that belong to another field.
    return found[found["loss"].notna()].reset_index(drop=True)


def _rows(
    losses: TokenLosses,
    strings: pd.DataFrame,
    dataset: pd.DataFrame,
    grammar: Grammar,
    characters: Grammar,
    predict_end: bool,
) -> pd.DataFrame:
    """The fields of one group of strings in one run, without verdicts and exposures.

    A field without a token of its own has no loss.
    """
    spans, span, optimal = fields_of(losses, strings, grammar, characters, predict_end)
    inside = span != REST

    def by_span(nll: np.ndarray) -> np.ndarray:
        return np.bincount(span[inside], nll[inside], minlength=len(spans))

    has_token = by_span(np.ones(len(span))) > 0
    loss = np.where(has_token, by_span(losses.of(strings["string_id"])[-1]), np.nan)
    least = by_span(optimal)
    of_string = strings.iloc[spans["string"]]
    return pd.DataFrame(
        {
            **losses.run,
            "epoch": losses.epochs[-1],
            "string_id": of_string["string_id"].array,
            "count": of_string["count"].array,
            **{name: spans[name].array for name in ("field", "begin", "value", "determined")},
            "loss": loss,
            "optimal": least,
            "recited": recited_losses(spans, of_string, dataset),
            # Rounding may carry a loss of nearly 0 below the optimal one.
            "p_value": np.exp(np.minimum(loss - least, 0.0)),
        }
    )


def recited_losses(spans: pd.DataFrame, of_span: pd.DataFrame, dataset: pd.DataFrame) -> np.ndarray:
    """float[spans]: the loss in nats of a field under a model that recites its training strings.

    It gives a value the share that the value has among the training strings that begin so; a string
    that is not among them counts as one of them. At the beginning of a text, nothing says which
    training string follows, so that even this model does not know the value.

    Parameters
    ----------
    spans : see `field_losses`
    of_span : the row of the field's string in a table `strings`
    dataset : all strings of this table
    """
    trained = dataset[dataset["count"] > 0].sort_values("text")
    texts, n_so_far = trained["text"].tolist(), np.append(0, trained["count"].cumsum())

    def n_begin_with(prefix: str) -> int:
        first, last = (bisect_left(texts, end) for end in (prefix, prefix + LAST_LETTER))
        return n_so_far[last] - n_so_far[first]

    found = []
    rows = zip(of_span["text"], of_span["count"], spans["begin"], spans["end"], strict=True)
    for text, count, begin, end in rows:
        own = int(count == 0)
        n_with_value = n_begin_with(text[:end]) + own
        found.append(-math.log(n_with_value / (n_begin_with(text[:begin]) + own)))
    return np.array(found)


def verdicts(fields: pd.DataFrame, false_alarms: float) -> np.ndarray:
    """The verdict on each row, from `determined`, `loss`, `optimal`, `recited` and `p_value`.

    If even a model that recites its training strings has a p-value above `false_alarms`, then no
    loss can tell: the language gives the value such a probability, or the field is at the beginning
    of a text.
    """
    determined = fields["determined"].to_numpy()
    memorised = ~determined & (fields["p_value"] <= false_alarms)
    known = determined & (fields["loss"] < AS_LIKELY_AS_NOT)
    undecidable = ~determined & (np.exp(fields["recited"] - fields["optimal"]) > false_alarms)
    verdicts = [MEMORISED, KNOWN, CANNOT_TELL]
    return np.select([memorised, known, undecidable], verdicts, NEITHER).astype(object)


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
