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
        "model language size seed variant epoch string_id place end nll",
        place="int: place of the token in the string, from 0; the end comes last",
        end="int?: of a text: letters of the text up to the end of the token; null for symbols and "
        "for the end of a string",
        nll="float: negative log likelihood of the token, in nats",
    ),
)
