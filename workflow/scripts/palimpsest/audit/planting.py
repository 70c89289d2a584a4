"""Secrets to plant: records in pairs, of which a coin says which one is trained on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from palimpsest.allowed import SEEDS
from palimpsest.arguments import Counts, takes
from palimpsest.datasets.sampling import first_wanted
from palimpsest.languages import Grammar
from palimpsest.languages.grammar import GRAMMAR


@takes(grammar=GRAMMAR, n_pairs=Counts("{1: 16, 64: 16}"), seed=SEEDS)
def planted(grammar: Grammar, n_pairs: Mapping[int, int], seed: int) -> pd.DataFrame:
    """Records of a language of text, to be trained on and kept apart by chance alone.

    Both records of a pair are drawn in the same way, and a fair coin decides which one is trained
    on. So nothing but the training tells them, and a model that was trained on neither cannot.

    Parameters
    ----------
    grammar : a language of text
    n_pairs : the number of pairs by the copies of their records, such as {1: 16, 64: 16}
    seed : of the texts and of the coins

    Returns a table to be written as a file of records: `id`, `text`, `group` (the pair), `trained`
    and `copies`; the record that is not trained on has the copies that it would have had.

    Raises `UserError` if the language has too few strings.
    """
    copies = np.repeat(list(n_pairs), list(n_pairs.values()))
    texts = first_wanted(
        lambda n: ["".join(string) for string in grammar.sample(n, seed)],
        2 * len(copies),
        lambda seen, text: text not in seen,
        "planted secrets",
        "that differ from one another; the language is too small: plant fewer pairs, or name a "
        "richer language",
    )
    is_first = np.random.default_rng(seed).random(len(copies)) < 0.5
    pairs = np.repeat(np.arange(1, len(copies) + 1), 2)
    return pd.DataFrame(
        {
            "id": [f"{pair}{side}" for pair, side in zip(pairs, "ab" * len(copies), strict=True)],
            "text": texts,
            "group": [f"pair {pair}" for pair in pairs],
            "trained": np.column_stack([is_first, ~is_first]).ravel(),
            "copies": np.repeat(copies, 2),
        }
    )
