"""The kind of table of repeated strings."""

from palimpsest.tables.columns import LANGUAGE, SEED, SIZE
from palimpsest.tables.kinds import Column, Kind

REPEATED = Kind(
    "repeated",
    "One row per seed: how many training strings are repeated.",
    "results/repetition/{language}.parquet",
    (
        LANGUAGE,
        SIZE,
        SEED,
        Column("n_distinct", int, "distinct training strings"),
        Column("share_repeated", float, "share of them that occur more than once"),
    ),
)
KINDS = (REPEATED,)
