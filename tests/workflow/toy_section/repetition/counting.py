"""Counting repeated strings: the kind of table, and the function that makes it."""

from __future__ import annotations

from palimpsest.datasets.kinds import STRINGS
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind

pd = lazy_import("pandas")

REPEATED = Kind(
    "repeated",
    "One row per seed: how many training strings are repeated.",
    "results/repetition/{language}.parquet",
    SHARED(
        "language size seed n_distinct share_repeated",
        n_distinct="int: distinct training strings",
        share_repeated="float: share of them that occur more than once",
    ),
)
KINDS = (REPEATED,)


@reads(datasets=STRINGS)
@makes(REPEATED)
def repeated(datasets: pd.DataFrame) -> pd.DataFrame:
    """How many training strings are repeated, by dataset of a language."""
    trained = datasets[datasets["count"] > 0].assign(again=datasets["count"] > 1)
    by_dataset = trained.groupby(["language", "size", "seed"], as_index=False)
    return by_dataset.agg(n_distinct=("again", "size"), share_repeated=("again", "mean"))
