"""Joins of tables: the columns that name a run, and curves of memorisation with learning."""

from __future__ import annotations

from palimpsest.errors import UserError
from palimpsest.lazy_import import lazy_import

pd = lazy_import("pandas")

RUN = ["model", "language", "size", "seed", "variant"]
EPOCH_KEYS = [*RUN, "epoch"]
CURVE = [*RUN, "measure", "epoch"]
DISTINCT = ["fraction_distinct", "weighted_distinct"]
UNSEEN = ["fraction_unseen", "weighted_unseen", "below_unseen", "depth_unseen"]
AT_EPOCH = ["below_distinct", "depth_distinct"]
COVERED = ["below_covered", "below_unseen_covered"]
SCORES_OF_ALL = ["depth_distinct", "weighted_unseen", "depth_unseen"]  # in addition to `weighted`
PERFECT = ["fraction_perfect", "weighted_perfect"]


def beside_learning(
    curves: pd.DataFrame, learning: pd.DataFrame, columns: list[str]
) -> pd.DataFrame:
    """The curves, with columns of `learning` for the same run and epoch."""
    joined = curves.merge(learning[[*EPOCH_KEYS, *columns]], on=EPOCH_KEYS)
    if len(joined) != len(curves):
        raise UserError(
            f"{len(curves)} rows of memorisation, {len(joined)} with their learning: the tables "
            "are not of the same runs; make both anew"
        )
    return joined


def matched(starts: pd.DataFrame) -> pd.DataFrame:
    """The rows of `starts` about strings that can be compared with unseen strings of their kind.

    Such a string has stand-ins, and its stand-ins have stand-ins of their own. The rows of all
    measures are then about the same strings.
    """
    is_known = starts["below_at_optimum"].notna() & starts["below_unseen"].notna()
    return starts[is_known.groupby([starts[key] for key in [*RUN, "string_id"]]).transform("all")]
