"""Sets of checkpoints whose gap is not clear, so that no share of it is known, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palimpsest.audit.checkpoints.kinds import ALL_MODELS, FORGET, UNLEARNED
from palimpsest.number_format import number

if TYPE_CHECKING:
    import pandas as pd

CAUSES = (
    "the template (or chat) is not the one of training; training had no end token after an answer; "
    "the forget records, or their groups, are too few"
)


def unclear_sets(gaps: pd.DataFrame) -> dict[tuple[str, str], str]:
    """For each set of a table `checkpoint_gaps` without a clear gap: what its losses are, and why.

    Sets are named by their records and their name.
    """
    is_own = (gaps["role"] == UNLEARNED) & (gaps["checkpoint"] != ALL_MODELS)
    rows = gaps[is_own & (gaps["split"] == FORGET) & gaps["share"].isna()]
    return {
        (row.language, row.model): reason(row.original_loss, row.retrained_loss, row.n_records)
        for row in rows.drop_duplicates(["language", "model"]).itertuples()
    }


def reason(original_loss: float, retrained_loss: float, n_records: int) -> str:
    """The end of a sentence: the mean losses of the forget records, and the likely causes."""
    records = "1 forget record" if n_records == 1 else f"{n_records:,} forget records"
    return (
        f"the mean loss of {records} is {number(original_loss)} under the original models and "
        f"{number(retrained_loss)} under the retrained ones; likely causes, the likeliest first: "
        f"{CAUSES}"
    )
