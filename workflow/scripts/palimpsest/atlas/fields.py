"""What single fields of a text lose without the text, by exact retraining."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from palimpsest import token_losses
from palimpsest.atlas import kinds
from palimpsest.atlas.truth import RUN, rows_of_run
from palimpsest.corpora.files import read_grammar
from palimpsest.datasets.choices import placebos_of
from palimpsest.datasets.kinds import STRINGS
from palimpsest.languages import Grammar
from palimpsest.making import makes, reads
from palimpsest.memorisation.fields import REST, fields_of
from palimpsest.memorisation.runs import of_run
from palimpsest.token_losses import TokenLosses

# A field of a string: its name and its number among those of this name
Field = tuple[str | None, int]


@reads(tokens=[token_losses.read], datasets=[STRINGS], removed_tokens=kinds.REMOVED_TOKENS)
@makes(kinds.FIELDS)
def field_table(
    tokens: Sequence[TokenLosses],
    datasets: Sequence[pd.DataFrame],
    removed_tokens: pd.DataFrame,
    corpus: str,
    predict_end: bool,
) -> pd.DataFrame:
    """What each field of each training string loses without the string, for every run.

    Parameters
    ----------
    tokens : losses of single tokens of the runs on all strings, for where tokens end
    datasets : of the same runs, in their order
    removed_tokens : of all the runs
    corpus : path of the grammar of the language, with fields
    predict_end : whether the end of a string is a predicted token

    Raises `UserError` if a dataset was made from another grammar.
    """
    grammar = read_grammar(corpus)
    characters = grammar.of_characters()
    parts = []
    for losses, dataset in zip(tokens, datasets, strict=True):
        about = {name: losses.run[name] for name in RUN}
        rows = rows_of_run(removed_tokens, about)
        found = _rows(losses, dataset, rows, grammar, characters, predict_end)
        parts.append(pd.DataFrame(found).assign(**about))
    return pd.concat(parts, ignore_index=True).astype({"begin": "Int64"})[kinds.FIELDS.names]


def _rows(
    losses: TokenLosses,
    strings: pd.DataFrame,
    rows: pd.DataFrame,
    grammar: Grammar,
    characters: Grammar,
    predict_end: bool,
) -> Iterator[dict]:
    """The rows of the table of one run, without the columns of the run.

    `strings` is the dataset as it was made: by its losses per token, placebos were chosen.
    """
    in_tokens = of_run(losses, strings)
    measured = in_tokens[in_tokens["string_id"].isin(rows["string_id"])]
    spans, span, optimal = fields_of(losses, measured, grammar, characters, predict_end)
    ends = np.cumsum(measured["n_tokens"])[:-1]
    of_tokens = dict(zip(measured["string_id"], np.split(span, ends), strict=True))
    of_optimal = dict(zip(measured["string_id"], np.split(optimal, ends), strict=True))
    spans["number"] = spans.groupby(["string", "field"]).cumcount()
    known = {
        (again, None if pd.isna(removed) else removed, name): -np.asarray(log_probs, dtype=float)
        for again, removed, name, log_probs in zip(
            *(rows[name] for name in ("again", "removed", "string_id", "log_probs")), strict=True
        )
    }

    def by_field(values: np.ndarray, name: str) -> dict[Field, float]:
        """Sums of values of tokens of a string by its fields, with the rest if there is one."""
        own = of_tokens[name]
        return {
            (None, 0) if row == REST else (spans.at[row, "field"], spans.at[row, "number"]): float(
                values[own == row].sum()
            )
            for row in np.unique(own)
        }

    def rise(again: bool, removed: str, name: str | None) -> Mapping[Field, float]:
        if name is None:
            return {}
        with_it, without = (by_field(known[again, of, name], name) for of in (None, removed))
        return {field: without[field] - with_it[field] for field in with_it}

    trained = [name for again, name, _ in known if name is not None and not again]
    trained = list(dict.fromkeys(trained))
    for name, placebo in zip(trained, placebos_of(strings, trained), strict=True):
        rises = [rise(again, name, name) for again in (False, True)]
        of_placebo = rise(False, name, placebo)
        loss, without = (by_field(known[False, of, name], name) for of in (None, name))
        least = by_field(of_optimal[name], name)
        of_string = spans.loc[np.unique(of_tokens[name][of_tokens[name] != REST])]
        about = of_string.set_index(["field", "number"])
        for field in loss:
            is_rest = field == (None, 0)
            yield {
                "string_id": name,
                "field": field[0],
                "begin": pd.NA if is_rest else int(about.at[field, "begin"]),
                "determined": False if is_rest else bool(about.at[field, "determined"]),
                "optimal": least[field],
                "loss": loss[field],
                "loss_without": without[field],
                "field_influence": rises[0][field],
                "field_influence_again": rises[1][field],
                "placebo_field_influence": of_placebo.get(field, np.nan),
            }
