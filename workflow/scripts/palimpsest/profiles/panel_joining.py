"""The panel that the checkpoints of one model make together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from palimpsest.errors import UserError
from palimpsest.making import makes, reads
from palimpsest.profiles.kinds import MEASURED_PANEL, PANEL_OUTCOMES, PANEL_ROWS


@reads(rows=PANEL_ROWS, outcomes=[PANEL_OUTCOMES])
@makes(MEASURED_PANEL)
def joined(
    rows: pd.DataFrame,
    outcomes: Sequence[pd.DataFrame],
    *,
    language: str,
    checkpoints: Mapping[str, str],
) -> pd.DataFrame:
    """A panel with three outcomes, of the strings in `rows`.

    Parameters
    ----------
    outcomes : tables `panel_outcomes`, one for each checkpoint
    language : the name of the panel
    checkpoints : the models by their step, for messages

    Raises `UserError` if two checkpoints have the same weights, or if no outcome ever changes.
    """
    found = list(outcomes)
    _check_different(found, f"profiles/panels/{language}/checkpoints", checkpoints)
    whole = pd.concat(found, ignore_index=True).merge(rows, on="row", validate="many_to_one")
    return whole.assign(
        log_likelihood=-whole["nll"],
        token_accuracy=whole["n_correct"] / whole["n_tokens"],
        negative_rank=-whole["rank_sum"] / whole["n_tokens"],
    )[MEASURED_PANEL.names]


def _check_different(
    found: Sequence[pd.DataFrame], where: str, checkpoints: Mapping[str, str]
) -> None:
    seen: dict[str, str] = {}
    for table in found:
        name = checkpoints[f"{table['time'].iloc[0]:.0f}"]
        if (twin := seen.setdefault(table["weights"].iloc[0], name)) != name:
            raise UserError(
                f"{where}: {twin} and {name} have the same weights; published checkpoints are "
                "sometimes one file under several names: leave one of them out"
            )
    first, *others = (table["nll"].to_numpy() for table in found)
    if all(np.array_equal(first, other) for other in others):
        raise UserError(f"{where}: no string's outcome ever changes; name checkpoints that differ")
