"""The kind of table that a run delivers if a study needs the losses of single tokens."""

from palimpsest import paths
from palimpsest.tables.columns import EPOCH, GROUP_SEED, STRING_ID
from palimpsest.tables.kinds import Column, Kind

TOKENS = Kind(
    "tokens",
    "One row per epoch, string and predicted token: the loss of the token. Only runs of studies "
    "that need it have this table.",
    paths.TOKENS,
    (
        *GROUP_SEED,
        EPOCH,
        STRING_ID,
        Column("place", int, "place of the token in the string, from 0; the end comes last"),
        Column("nll", float, "negative log likelihood of the token, in nats"),
    ),
)
