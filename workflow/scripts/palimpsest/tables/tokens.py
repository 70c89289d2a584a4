"""The kind of table that a run delivers if a study needs the losses of single tokens."""

from palimpsest import paths
from palimpsest.tables.columns import SHARED
from palimpsest.tables.kinds import Kind

TOKENS = Kind(
    "tokens",
    "One row per epoch, string and predicted token: the loss of the token. Only runs of studies "
    "that need it have this table.",
    paths.TOKENS,
    SHARED(
        "model language size seed variant epoch string_id place nll",
        place="int: place of the token in the string, from 0; the end comes last",
        nll="float: negative log likelihood of the token, in nats",
    ),
)
