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
