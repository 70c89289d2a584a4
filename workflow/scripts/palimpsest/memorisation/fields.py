"""Losses of the fields of texts under models, beside what the language itself leaves open.

A field that the text before it determines can be inferred: strings never trained on have a low loss
in it, too. A field that nothing determines, such as a telephone number, can only be memorised.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from palimpsest import token_losses
from palimpsest.languages import Grammar, field_losses
from palimpsest.memorisation.bits import memorised_bits
from palimpsest.memorisation.likelihoods import (
    ROUNDING,
    check_optimal_losses,
    members_of_groups,
    read_runs,
)
from palimpsest.token_losses import TokenLosses

REST = -1  # of a token: it has no letter of a field


def fields_table(
    paths: list[str],
    strings: pd.DataFrame,
    learning: pd.DataFrame,
    grammar: Grammar,
    predict_end: bool,
    margin: float,
) -> pd.DataFrame:
    """The table `fields` of some runs on one language of text.

    Parameters
    ----------
    paths : tables `tokens` of the runs
    strings, learning : stacked tables of these kinds
    grammar : the grammar of the language, with fields
    predict_end : whether the end of a string is a predicted token
    margin : nats by which a loss must be below the Bayes-optimal one to count as `below`

    Raises `UserError` if a run has no dataset or no learning, or if its dataset was made from
    another grammar.
    """
    characters = grammar.of_characters()
    return pd.concat(
        [
            _rows(losses, members, grammar, characters, predict_end, margin).assign(
                optimal_epoch=optimum, group=group
            )
            for losses, dataset, optimum in read_runs(paths, strings, learning, token_losses.read)
            for group, members in members_of_groups(dataset).items()
            if len(members)
        ],
        ignore_index=True,
    )


def _rows(
    losses: TokenLosses,
    strings: pd.DataFrame,
    grammar: Grammar,
    characters: Grammar,
    predict_end: bool,
    margin: float,
) -> pd.DataFrame:
    """The table `fields` of one group of strings in one run, without the name of the group."""
    texts = strings["text"].tolist()
    spans, span, optimal = fields_of(losses, strings, grammar, characters, predict_end)
    parts, part = _parts(spans, span)
    string = np.repeat(np.arange(len(texts)), strings["n_tokens"])
    n_epochs, shape = len(losses.epochs), (len(texts), len(parts))

    def by_part(nll: np.ndarray) -> np.ndarray:
        cells = np.bincount(string * len(parts) + part, nll, minlength=np.prod(shape))
        return cells.reshape(shape)

    is_there = by_part(np.ones(len(part))) > 0
    of_language = by_part(optimal)
    of_model = np.stack([by_part(nll) for nll in losses.of(strings["string_id"])])
    tables = [pd.DataFrame()]
    for place, (field, determined) in enumerate(parts):
        here = is_there[:, place]
        loss, least = of_model[:, here, place], of_language[here, place]
        tables.append(
            pd.DataFrame(
                {
                    **losses.run,
                    "epoch": losses.epochs,
                    "field": np.full(n_epochs, field, dtype=object),
                    "determined": determined,
                    "n_strings": here.sum(),
                    "loss": loss.mean(axis=1),
                    "optimal": least.mean(),
                    "bits": memorised_bits(loss, least).mean(axis=1),
                    "share_below": (loss < least - margin).mean(axis=1),
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def fields_of(
    losses: TokenLosses,
    strings: pd.DataFrame,
    grammar: Grammar,
    characters: Grammar,
    predict_end: bool,
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """The fields of some strings of a run, and the field and the optimal loss of every token.

    Returns
    -------
    spans : as `field_losses`, and `determined`: whether the text before leaves one value
    span : int[tokens], the row in `spans` that the token belongs to, or `REST`
    optimal : float[tokens], Bayes-optimal loss of the token's letters, nats

    Raises `UserError` if the dataset was made from another grammar.
    """
    texts = strings["text"].tolist()
    cut = np.split(losses.ends_of(strings["string_id"]), np.cumsum(strings["n_tokens"])[:-1])
    optimal = optimal_losses(characters, texts, cut, predict_end)
    check_optimal_losses(losses, strings, optimal)
    spans = field_losses(grammar, texts)
    spans["determined"] = spans["optimal_nll"] < ROUNDING
    return spans, tokens_of_fields(spans, texts, cut), optimal


def _parts(spans: pd.DataFrame, span: np.ndarray) -> tuple[list[tuple], np.ndarray]:
    """The parts of texts, and the part int[tokens] of each token, given its span.

    A part is a field and whether the text before determines it; the last part is the rest.
    """
    number = pd.MultiIndex.from_frame(spans[["field", "determined"]])
    kinds = number.unique().sort_values()
    codes = np.append(kinds.get_indexer(number), len(kinds))  # the last one is that of `REST`
    return [*kinds, (None, False)], codes[span]


def tokens_of_fields(
    spans: pd.DataFrame, texts: Sequence[str], cut: Sequence[np.ndarray]
) -> np.ndarray:
    """The field int[tokens] of each token: its row in `spans`, or `REST`.

    A token with letters of a field belongs to the field as a whole, however many other letters it
    has: a blank before a number is in one token with its first digits, and costs nothing. If a
    token has letters of two fields, it belongs to the one with more of them, or else to the first.
    Of a field within another one, the inner field has the letters.

    Parameters
    ----------
    spans : table with the columns string, begin and end, in letters
    cut : the letters up to the end of each token of each text, float[tokens of the text]
    """
    found = []
    of_texts = dict(list(spans.groupby("string")))
    for number, (text, ends) in enumerate(zip(texts, cut, strict=True)):
        owner = np.full(len(text), REST)
        inside = of_texts.get(number, spans.head(0))
        length = inside["end"] - inside["begin"]
        for row in length.sort_values(ascending=False, kind="stable").index:
            owner[inside.at[row, "begin"] : inside.at[row, "end"]] = row
        begins = np.append(0, ends[:-1])
        found += [_owner(owner, *letters) for letters in zip(begins, ends, strict=True)]
    return np.array(found, dtype=int)


def _owner(owner: np.ndarray, begin: float, end: float) -> int:
    """The field of a token between two ends. A token may have no letter of its own: a letter of
    several bytes is that of all its tokens, and the end of a string has none (NaN).
    """
    if np.isnan(end):
        return REST
    letters = owner[int(min(begin, end - 1)) : int(end)]
    letters = letters[letters != REST]
    if not len(letters):
        return REST
    rows, first, counts = np.unique(letters, return_index=True, return_counts=True)
    return int(rows[np.lexsort((first, -counts))[0]])


def optimal_losses(
    characters: Grammar, texts: Sequence[str], cut: Sequence[np.ndarray], predict_end: bool
) -> np.ndarray:
    """Bayes-optimal loss float[tokens] in nats of the letters of each token, exact.

    -log P(text up to the end of the token | text up to its beginning), under the language. The sum
    over a text is the Bayes-optimal loss of the text, however it is cut. A model's loss of a token
    is that of this cut: its sum over a text is -log P(text cut so), and no less than -log P(text),
    the sum over all cuts. So a model seems to know a little less of a text than it does.

    Parameters
    ----------
    characters : the grammar of the texts, with a symbol for each letter
    cut : as in `tokens_of_fields`
    predict_end : whether the last token of each text is its end
    """
    prefixes = [
        tuple(text[: int(end)])
        for text, ends in zip(texts, cut, strict=True)
        for end in (ends[:-1] if predict_end else ends)
    ]
    log_prefix = iter(characters.log_prefix_probability(prefixes))
    log_whole = characters.log_probability([*map(tuple, texts)]) if predict_end else None
    found = [np.zeros(0)]
    for number, ends in enumerate(cut):
        log_so_far = [next(log_prefix) for _ in range(len(ends) - predict_end)]
        if predict_end:
            log_so_far.append(log_whole[number])
        found.append(-np.diff(log_so_far, prepend=0.0))
    # Rounding may carry the loss of what is certain below 0.
    return np.maximum(np.concatenate(found), 0.0)
