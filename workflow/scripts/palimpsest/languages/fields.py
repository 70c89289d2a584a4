"""Fields of a text, such as a telephone number: where they stand, and how hard they are to predict.

The Bayes-optimal loss of a field that follows from the text before it is 0 nats: a model that
predicts the field may have inferred it. A model that predicts a field better than its optimal loss
did not infer all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from palimpsest.arguments import Texts, takes
from palimpsest.languages.derivation import Node
from palimpsest.languages.errors import GrammarError
from palimpsest.languages.grammar import GRAMMAR, Grammar
from palimpsest.languages.structure import is_of_field

if TYPE_CHECKING:  # pandas loads slowly
    import pandas as pd

SHOWN = 60  # characters of a text in a message


class Span(NamedTuple):
    """The part of the text with the place `string` from `begin` up to but not including `end`."""

    string: int
    field: str
    begin: int
    end: int


@takes(grammar=GRAMMAR, texts=Texts(such_as='["".join(string)] for a sampled string'))
def field_losses(grammar: Grammar, texts: Sequence[str]) -> pd.DataFrame:
    """The fields of texts of the grammar, in order, with the loss that no model can go below.

    Returns
    -------
    A table with a row for every field of every text:
        string : place of the text in `texts`
        field, value : name of the field, and its text
        begin, end : in characters; they are those of the text's most probable derivation
        optimal_nll : nats, exact
            -log P(value | the text before it), under the language: minus the log probability of
            all texts that begin so up to the end of the field, plus that of all texts that begin
            so up to its beginning. That the field ends is no part of it.

    Raises `GrammarError` if the grammar has no fields, or if a text is not in the language, and
    `TypeError` if `texts` is one text, or has a tuple of symbols.
    """
    import pandas as pd

    if not grammar.fields:
        raise GrammarError(f"{grammar.name}: has no fields; name some in a line %field EMAIL PHONE")
    spans = [span for number, text in enumerate(texts) for span in _spans(grammar, number, text)]
    before = [texts[span.string][: span.begin] for span in spans]
    to_end = [texts[span.string][: span.end] for span in spans]
    log_prefix = grammar.of_characters().log_prefix_probability([*map(tuple, before + to_end)])
    log_before, log_to_end = np.split(log_prefix, 2)
    table = pd.DataFrame(spans, columns=list(Span._fields))
    values = [texts[span.string][span.begin : span.end] for span in spans]
    table.insert(2, "value", np.array(values, dtype=object))
    # Rounding may carry the loss of what is certain below 0.
    return table.assign(optimal_nll=np.maximum(log_before - log_to_end, 0.0))


def _spans(grammar: Grammar, number: int, text: str) -> list[Span]:
    try:
        nodes = grammar.derivation(text)
    except ValueError:
        raise GrammarError(
            f"{grammar.name}: text {number} is not in the language: {text[:SHOWN]!r}; "
            "only texts of the grammar have fields"
        ) from None
    spans = [
        Span(number, field, node.begin, node.end)
        for field in grammar.fields
        for node in _outermost(nodes, field)
    ]
    return sorted(spans, key=lambda span: (span.begin, -span.end))


def _outermost(nodes: Sequence[Node], field: str) -> Iterator[Node]:
    """The nodes of a field that stand in no other node of it, as in a number of many digits."""
    within: set[int] = set()
    for place, node in enumerate(nodes):
        if node.parent in within:
            within.add(place)
        elif not node.symbol.terminal and is_of_field(node.symbol.name, field):
            within.add(place)
            yield node
