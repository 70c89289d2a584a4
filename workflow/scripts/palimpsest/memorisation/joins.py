"""Joins of tables: the columns that name a run, and curves of memorisation with learning."""

from __future__ import annotations

from palimpsest.errors import UserError
from palimpsest.lazy_import import lazy_import
from palimpsest.memorisation.kinds import LEARNING, TRAINING_SET
from palimpsest.tables.kinds import Kind

pd = lazy_import("pandas")

RUN = ["model", "language", "size", "seed", "variant"]
EPOCH_KEYS = [*RUN, "epoch"]
CURVE = [*RUN, "measure", "epoch"]


def curves(kind: Kind, dataset: pd.DataFrame, learning: pd.DataFrame) -> pd.DataFrame:
    """The columns of a kind that `dataset` or `learning` has; a row per run, measure and epoch."""
    of_measures = [name for name in TRAINING_SET.names if name in {*CURVE, *kind.names}]
    of_runs = [name for name in LEARNING.names if name in {*kind.names} - {*of_measures}]
    return beside_learning(dataset[of_measures], learning, of_runs)


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
