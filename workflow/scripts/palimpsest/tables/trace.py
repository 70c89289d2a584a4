"""The kind of table that every run delivers: its trace."""

from palimpsest import paths
from palimpsest.tables.columns import EPOCH, GROUP_SEED, PREDICTED, STRING_ID
from palimpsest.tables.kinds import Kind

TRACE = Kind(
    "trace",
    "One row per epoch and string: how well the model predicts the string. In the folder "
    "leave-one-out, a file holds many runs: one for each training string.",
    paths.TRACE,
    (
        *GROUP_SEED,
        EPOCH,
        STRING_ID,
        *PREDICTED,
    ),
)
