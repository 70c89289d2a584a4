"""Records without a training without them: intervals of what such a training would tell.

A training without some records, taken at random, tells how much these are memorised: their loss
without training on them, minus their loss. From all other losses, a regression predicts this for
the other records, and its errors give intervals (`palimpsest.conformal`).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest.arguments import takes
from palimpsest.conformal import (
    FOLDS,
    LEVEL,
    Calibration,
    features_of,
    scale_of,
    told_apart,
    upper_quantile,
    weights_of,
)
from palimpsest.errors import Notice, UserError
from palimpsest.number_format import plural
from palimpsest.records.intervals import FEWEST_KNOWN, fewest_unseen
from palimpsest.records.kinds import MEMORISED, NOT_MEMORISED, OUTSIDE, UNDECIDED
from palimpsest.records.losses import LOSSES, Losses
from palimpsest.records.verdicts import FALSE_ALARMS
from palimpsest.short_repr import ShortRepr

# How many standard errors from chance the AUC is where records are not alike. That of a
# cross-validated AUC is larger than the one of the rank-sum test, so of studies with records taken
# at random, about one in 1,000 is refused.
APART = 4


@dataclass(frozen=True, repr=False)
class Conformal(ShortRepr):
    """Intervals of the exact memorisation of records that no training left out.

    `table` has a row for each of these records (of those never trained on only if enough of them
    are known): `id`, `group`, `trained`, `loss`, the interval
    `lower` to `upper` of the loss without training on the record minus `loss`, and the `verdict`.
    It is "memorised" if the interval is above `limit`, "not memorised" if it is not above it,
    "undecided" if the limit is inside, and "outside", without an interval, if the record is unlike
    all that are known.

    `limit` is 0, or what chance gives: the largest value but a share of `false_alarms` of records
    never trained on. `n_known` are the trained records with a known value, and `n_known_unseen`
    those never trained on. `shift` is the AUC by which records with and without a known value can
    be told apart by their losses; 0.5: they are alike.
    """

    table: pd.DataFrame
    level: float
    limit: float
    n_known: int
    n_known_unseen: int
    shift: float

    def to_frame(self) -> pd.DataFrame:
        return self.table


@takes(losses=LOSSES)
def conformal(
    losses: Losses, *, level: float = LEVEL, false_alarms: float = FALSE_ALARMS
) -> Conformal:
    """Bound the memorisation of records from a training without a random part of them.

    If the records with `losses.without` are a random part of all (of the groups, where records have
    some), an interval has the exact value of a record with probability `level`, whatever the losses
    are. This holds in the mean over draws of the known part, and over all groups, each counted
    once; not for each kind of record. So a share of 1 - `level` of all records at most is called
    memorised wrongly, which can be a larger share of those that are called so. Trained records are
    bounded by trained ones, and those never trained on, which are the placebo, by others of theirs.
    That records of one fold share the model without it is not counted.

    Parameters
    ----------
    losses : as for `answers`; `without` is NaN for the records that are asked about
    level : of the intervals, between 0 and 1
    false_alarms : sets the limit, between 0 and 1

    Raises `UserError` if fewer than 20 groups of trained records are known, if none is unknown, or
    if the two can be told apart by their losses, so that one is no random part.

    Source: Lei et al., Distribution-Free Predictive Inference for Regression (2018), section 2.2.
    """
    for name, share in (("level", level), ("false_alarms", false_alarms)):
        if not 0 < share < 1:
            raise ValueError(f"{name} must be between 0 and 1: {share}")
    trained, known = losses.is_trained, losses.is_retrained
    where = f"{losses.source}: the loss without the record"
    if known[trained].all():
        raise UserError(f"{where} is known for all records that were trained on; nothing is asked")
    n_groups = _n_groups(losses, trained & known)
    if n_groups < FEWEST_KNOWN:
        raise UserError(
            f"{where} is known for {plural(n_groups, 'group')} of records that were trained on; "
            f"{FEWEST_KNOWN} or more are needed, taken at random"
        )
    exact = np.full(len(known), np.nan)
    exact[known] = losses.without[-1, known] - losses.loss[-1, known]
    unseen = known & ~trained
    limit = _limit(exact[unseen], losses.groups[unseen], false_alarms)
    needed = max(FEWEST_KNOWN, fewest_unseen(false_alarms))
    if (n_unseen := _n_groups(losses, unseen)) < needed:
        warnings.warn(
            Notice(
                f"{where} is known for {plural(n_unseen, 'group')} of records never trained on; "
                f"with fewer than {needed}, what chance gives and the placebo are unknown, or "
                "only known roughly"
            ),
            stacklevel=3,
        )
    parts, shift = [], math.nan
    for side in (trained, ~trained):
        asked = side & ~known
        if _n_groups(losses, side & known) < FEWEST_KNOWN or not asked.any():
            continue
        if side is trained:
            shift = _shift(losses, side & known, asked)
        calibration = Calibration.narrowest(
            _measured(losses, side & known), exact[side & known], losses.groups[side & known], level
        )
        lower, upper = calibration.interval(_measured(losses, asked), level)
        parts.append(
            pd.DataFrame(
                {
                    "id": losses.ids[asked],
                    "group": losses.groups[asked],
                    "trained": side is trained,
                    "loss": losses.loss[-1, asked],
                    "lower": lower,
                    "upper": upper,
                    "verdict": _verdicts(lower, upper, limit),
                }
            )
        )
    n_known = int((known & trained).sum())
    table = pd.concat(parts, ignore_index=True)
    return Conformal(table, level, limit, n_known, int(known.sum()) - n_known, shift)


def _n_groups(losses: Losses, chosen: np.ndarray) -> int:
    return len(np.unique(losses.groups[chosen]))


def _measured(losses: Losses, chosen: np.ndarray) -> np.ndarray:
    """float[records, measures]: what is known of records without another training."""
    of_all = [losses.loss, *([] if losses.reference is None else [losses.reference])]
    columns = []
    for loss in (values[:, chosen] for values in of_all):
        columns += [loss[-1], loss[0], loss.mean(axis=0), loss.min(axis=0)]
    return np.column_stack(columns)


def _shift(losses: Losses, known: np.ndarray, asked: np.ndarray) -> float:
    """The AUC between known records and those that are asked about; `UserError` if it is no chance.

    Its standard error where they are alike is that of the rank-sum test, over groups.
    """
    n, n_asked = _n_groups(losses, known), _n_groups(losses, asked)
    if min(n, n_asked) < FOLDS:
        return math.nan
    measured = [_measured(losses, chosen) for chosen in (known, asked)]
    scale = scale_of(np.vstack(measured))
    features = [features_of(values, scale) for values in measured]
    groups = np.concatenate([losses.groups[known], losses.groups[asked]])
    found = told_apart(*features, groups)
    if found > 0.5 + APART * math.sqrt((n + n_asked + 1) / (12 * n * n_asked)):
        raise UserError(
            f"{losses.source}: records with and without a known loss without the record can be "
            f"told apart by their losses (AUC {found:.2f}, 0.5 by chance), so no bound holds; "
            "train without a random part of the groups"
        )
    return found


def _limit(exact: np.ndarray, groups: np.ndarray, false_alarms: float) -> float:
    """What records never trained on exceed with probability `false_alarms`; 0 for too few.

    Each group counts once.
    """
    found = upper_quantile(exact, weights_of(groups), 1 - false_alarms)
    return max(0.0, found) if math.isfinite(found) else 0.0


def _verdicts(lower: np.ndarray, upper: np.ndarray, limit: float) -> np.ndarray:
    return np.select(
        [np.isnan(lower), lower > limit, upper <= limit],
        [OUTSIDE, MEMORISED, NOT_MEMORISED],
        UNDECIDED,
    )
