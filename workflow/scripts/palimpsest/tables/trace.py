"""The kind of table that every run leaves behind: its trace."""

from palimpsest import paths
from palimpsest.tables.columns import EPOCH, GROUP_SEED, PREDICTED, STRING_ID
from palimpsest.tables.kinds import Kind

TRACE = Kind(
    "trace",
    "One row per epoch and string: how well the model predicts it. In the folder "
    "leave-one-out one run per training string stands after another.",
    paths.TRACE,
    (
        *GROUP_SEED,
        EPOCH,
        STRING_ID,
        *PREDICTED,
    ),
)
