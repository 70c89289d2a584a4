"""Counting repeated strings."""

import pandas as pd

from palimpsest.datasets.kinds import STRINGS
from palimpsest.making import makes, reads
from palimpsest.repetition.kinds import REPEATED


@reads(datasets=STRINGS)
@makes(REPEATED)
def repeated(datasets: pd.DataFrame) -> pd.DataFrame:
    """How many training strings are repeated, by dataset of a language."""
    trained = datasets[datasets["count"] > 0].assign(again=datasets["count"] > 1)
    by_dataset = trained.groupby(["language", "size", "seed"], as_index=False)
    return by_dataset.agg(n_distinct=("again", "size"), share_repeated=("again", "mean"))
