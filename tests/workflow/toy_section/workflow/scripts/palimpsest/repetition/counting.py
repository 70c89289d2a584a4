"""Counting repeated strings."""

import pandas as pd


def repeated(strings: pd.DataFrame) -> pd.DataFrame:
    """How many training strings are repeated, from the tables `strings` of a language."""
    trained = strings[strings["count"] > 0].assign(again=strings["count"] > 1)
    by_dataset = trained.groupby(["language", "size", "seed"], as_index=False)
    return by_dataset.agg(n_distinct=("again", "size"), share_repeated=("again", "mean"))
