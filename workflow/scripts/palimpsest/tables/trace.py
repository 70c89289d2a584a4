"""The kind of table that every run delivers: its trace."""

from palimpsest import paths
from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind

TRACE = Kind(
    "trace",
    "One row per epoch and string: how well the model predicts the string. In the folder "
    "leave-one-out, a file holds many runs: one for each training string.",
    paths.TRACE,
    SHARED("""
        model language size seed variant epoch string_id nll n_tokens n_correct rank_sum
    """),
)
