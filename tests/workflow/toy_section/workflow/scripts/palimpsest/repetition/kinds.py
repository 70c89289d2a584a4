"""The kind of table of repeated strings."""

from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind

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
