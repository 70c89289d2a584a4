"""Which records a model memorised, by every measure that their losses allow, with a placebo.

The placebo is the records on which the model was not trained. The same code measures them: the
share of them that a measure calls memorised is the measure's share of false alarms.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest.arguments import Numbers, Truths, takes
from palimpsest.claims import CONSTANT, REFERENCE_MODEL, RETRAINING
from palimpsest.corpora.records import column_of_trained
from palimpsest.errors import Notice, UserError
from palimpsest.memorisation.measures import Start, contextual, counterfactual, recollection
from palimpsest.number_format import plural
from palimpsest.records.intervals import fewest_unseen, newcombe, share_below_quantile
from palimpsest.records.losses import LOSSES, NATS, Losses
from palimpsest.short_repr import ShortRepr
from palimpsest.statistics import beyond_false_alarms, effective_groups

UNSEEN = "unseen"  # evidence that no claim rests on
FALSE_ALARMS = 0.05


class _InNats(float):
    """A threshold that nobody chose for the unit of the losses."""


THRESHOLD = _InNats(0.2)  # of the paper
COLUMNS = ["id", "group", "measure", "evidence", "trained", "loss", "threshold", "score"]
COLUMNS += ["memorised", "p_value", "p_corrected"]
DETECTED = ("detected", "detected_lower", "detected_upper", "detected_unseen")
UNKNOWN = "no record was never trained on, so the share of false alarms is unknown"


@dataclass(frozen=True, repr=False)
class Answers(ShortRepr):
    """The answers of every measure about every record.

    `table` has a row for each measure and record: `id`, `group`, `measure`, `evidence` (what the
    threshold comes from), `trained`, `loss`, `threshold`, `score` (0 to 1), `memorised`, and
    `p_value`: the share of the placebo, with the record itself, whose loss is at least as low
    relative to its threshold (in a loss attack: whose loss is at least as low). If records are
    exchangeable and the model was not trained on them, a share x of them at most has a p-value of x
    or less. `p_corrected` is the p-value of a record trained on, corrected for the number of these:
    among those with a value of x or less, a share x at most is false on average.

    `placebo` has a row for each measure: the share of the trained records that it calls memorised,
    that share of the records never trained on, and their `difference` with a 95 % interval (`lower`
    to `upper`). `detected` is the share of the trained records whose p-value is at most
    `false_alarms`, with a 95 % interval (`detected_lower` to `detected_upper`), and
    `detected_unseen` that share of the others. Without records never trained on, or with too few of
    them for such a p-value, these are NaN, and so is the interval of the loss attack.
    """

    table: pd.DataFrame
    placebo: pd.DataFrame


@takes(losses=LOSSES)
def answers(
    losses: Losses,
    *,
    start: Start = "after_last_miss",
    loss_threshold: float | None = THRESHOLD,
    false_alarms: float = FALSE_ALARMS,
) -> Answers:
    """Ask every measure that the losses allow, at the last checkpoint.

    - recollection: the loss is below `loss_threshold`.
    - counterfactual: the loss is below that of a model trained without the record; contextual: it
      is below the lowest such loss over all checkpoints. They need `losses.without`, and answer of
      the records that have it; of the others, see `conformal`.
    - reference: the loss is below that of another model. It needs `losses.reference`. Two models
      differ in quality too, so only the placebo tells what such an answer is worth.
    - loss attack: the loss is below all but the lowest of the losses of other records, on which the
      model was not trained; the lowest are a share of `false_alarms`. It needs such records.

    Parameters
    ----------
    losses : what `read_losses` or `to_losses` returns; nats per token, or another unit in which a
        loss is not negative, such as bits per byte
    start : the rule for the start of memorisation, see `memorisation.recollection`
    loss_threshold : in the unit of the losses; None leaves recollection out, and so does the
        default if `measure` gave the losses in another unit than nats per token
    false_alarms : of the loss attack, and of `detected`, between 0 and 1

    Raises `UserError` if there is nothing to compare the losses with.

    Sources: Learning Without Memorizing Considered Infeasible, section 3.1; for the loss attack,
    Yeom et al., Privacy Risk in Machine Learning (2018), with a quantile as the threshold.
    """
    trained = losses.trained
    if not 0 < false_alarms < 1:
        raise ValueError(f"false_alarms must be between 0 and 1: {false_alarms}")
    if loss_threshold is THRESHOLD and losses.unit not in (None, NATS):
        warnings.warn(
            Notice(
                f"{losses.source}: recollection is left out: the losses are in {losses.unit}, and "
                f"the default of loss_threshold, {THRESHOLD}, is in {NATS}; give one in "
                f"{losses.unit}, or None"
            ),
            stacklevel=3,
        )
        loss_threshold = None
    if not losses.has_placebo:
        if loss_threshold is None and losses.without is None and losses.reference is None:
            raise UserError(
                f"{losses.source}: nothing to compare the losses with; give a loss_threshold, or "
                "one of the columns loss_without, loss_reference and trained"
            )
        warnings.warn(Notice(f"{losses.source}: {UNKNOWN}; add some"), stacklevel=3)
    elif (n_unseen := int((~trained).sum())) < (needed := fewest_unseen(false_alarms)):
        warnings.warn(
            Notice(
                f"{losses.source}: {plural(n_unseen, 'record')} never trained on; with fewer than "
                f"{needed}, no p-value can be {false_alarms:g} or less; give more of them"
            ),
            stacklevel=3,
        )
    if losses.has_placebo and (divided := {*losses.groups[trained]} & {*losses.groups[~trained]}):
        more = f" (and {len(divided) - 1:,} more)" if len(divided) > 1 else ""
        warnings.warn(
            Notice(
                f"{losses.source}: the group {min(divided)!r}{more} has records that were trained "
                "on and others that were not; what the model learned of a group counts as a false "
                "alarm on its other records, so take whole groups for the placebo"
            ),
            stacklevel=3,
        )
    tables, placebos = [], []
    for found in _measures(losses, start, loss_threshold, false_alarms):
        keys = {"measure": found.name, "evidence": found.evidence}
        asked, memorised = found.asked, found.score > 0
        p_values = np.full(len(memorised), np.nan)
        if asked.has_placebo:
            p_values = placebo_p_values(found.distance, asked.trained)
        tables.append(
            pd.DataFrame(
                {
                    "id": asked.ids,
                    "group": asked.groups,
                    **keys,
                    "trained": column_of_trained(asked.trained, len(asked.ids)),
                    "loss": asked.loss[-1],
                    "threshold": found.threshold,
                    "score": found.score,
                    "memorised": memorised,
                    "p_value": p_values,
                    "p_corrected": corrected(p_values, asked.is_trained),
                }
            )
        )
        sides = asked.trained if asked.has_placebo else None
        compared = _compared(memorised, sides, asked.groups)
        detected = _detected(found.distance, p_values, sides, asked.groups, false_alarms)
        if found.evidence == UNSEEN:
            compared |= _interval_of_attack(compared["share_unseen"], detected)
        placebos.append({**keys, **compared, **detected})
    return Answers(pd.concat(tables, ignore_index=True)[COLUMNS], pd.DataFrame(placebos))


class _Measured(NamedTuple):
    """A measure of the records that it is asked about: each array is float[records].

    `distance` is small for what is memorised, and comparable between records.
    """

    name: str
    evidence: str
    asked: Losses
    threshold: np.ndarray
    score: np.ndarray
    distance: np.ndarray


def _measures(
    losses: Losses, start: Start, loss_threshold: float | None, false_alarms: float
) -> Iterator[_Measured]:
    loss = losses.loss
    found = []
    if loss_threshold is not None:
        found.append(("recollection", CONSTANT, losses, recollection(loss, loss_threshold, start)))
    if (losses.is_retrained & losses.is_trained).any():
        asked = losses.of(losses.is_retrained)
        for measure in (counterfactual, contextual):
            memorisation = measure(asked.loss, asked.without, start)
            found.append((measure.__name__, RETRAINING, asked, memorisation))
    if losses.reference is not None:
        memorisation = counterfactual(loss, losses.reference, start)
        found.append(("reference", REFERENCE_MODEL, losses, memorisation))
    for name, evidence, asked, memorisation in found:
        threshold, score = memorisation.threshold[-1], memorisation.score[-1]
        distance = np.full(len(threshold), np.inf)
        np.divide(asked.loss[-1], threshold, out=distance, where=threshold > 0)
        yield _Measured(name, evidence, asked, threshold, score, distance)
    if losses.has_placebo:
        threshold = _of_unseen(loss[-1], losses.trained, false_alarms)
        below = np.maximum(threshold - loss[-1], 0)
        score = np.divide(below, threshold, out=np.zeros_like(below), where=threshold > 0)
        yield _Measured("loss attack", UNSEEN, losses, threshold, score, loss[-1])


def _of_unseen(loss: np.ndarray, trained: np.ndarray, false_alarms: float) -> np.ndarray:
    """float[records]: the loss below which a share of the records never trained on lies.

    A further such record is below with probability `false_alarms` at most. A record that was never
    trained on is compared with the others of its kind, by the same number of lowest losses: k of n,
    where for a further record it is k of n + 1. With too few of them, the threshold is 0.
    """
    unseen = np.flatnonzero(~trained)
    order = np.argsort(loss[unseen], kind="stable")
    rising = np.append(0.0, loss[unseen][order])  # index n is the n-th lowest loss

    rank = _rank(len(unseen), false_alarms)
    threshold = np.full(len(loss), rising[rank])
    # Without a record that is among the lowest, one more loss is among them.
    is_low = np.arange(len(unseen)) < rank
    of_others = np.append(rising, 0.0)  # a lowest loss of more records than there are is 0
    threshold[unseen[order]] = of_others[rank + (is_low if rank else 0)]
    return threshold


@takes(distance=Numbers("records"), trained=Truths("records"))
def placebo_p_values(distance: np.ndarray, trained: np.ndarray) -> np.ndarray:
    """float[records]: the share of the placebo, with the record, that is at most as far."""
    unseen = np.sort(distance[~trained])
    as_near = np.searchsorted(unseen, distance, side="right")
    # A record that was never trained on is in the placebo already.
    return np.where(trained, (as_near + 1) / (len(unseen) + 1), as_near / len(unseen))


def corrected(p_values: np.ndarray, trained: np.ndarray) -> np.ndarray:
    """float[records]: p-values of the records trained on, corrected for their number; else NaN.

    Records with a corrected value of x or less have a false discovery rate of x at most. The
    p-values share a placebo, which this correction allows.

    Sources: Benjamini and Hochberg, Controlling the False Discovery Rate (1995); of p-values that
    share a placebo, Bates et al., Testing for Outliers with Conformal p-values (2023), theorem 2.
    """
    from scipy.stats import false_discovery_control

    found = np.full(len(p_values), np.nan)
    is_asked = trained & ~np.isnan(p_values)
    if is_asked.any():
        found[is_asked] = false_discovery_control(p_values[is_asked])
    return found


def _compared(memorised: np.ndarray, trained: np.ndarray | None, groups: np.ndarray) -> dict:
    """The shares called memorised, of trained records and of others, and their difference."""
    trained = np.ones(len(memorised), bool) if trained is None else trained
    share, n_groups = [], []
    for side in (trained, ~trained):
        share.append(memorised[side].mean() if side.any() else np.nan)
        n_groups.append(effective_groups(groups[side]))
    lower, upper = newcombe(*share, *n_groups)
    return {
        "n_trained": int(trained.sum()),
        "n_unseen": int((~trained).sum()),
        "share_trained": share[0],
        "share_unseen": share[1],
        "difference": beyond_false_alarms(*share),
        "lower": lower,
        "upper": upper,
    }


def _interval_of_attack(share_unseen: float, detected: dict) -> dict:
    """The interval of the difference where the threshold is a quantile of the placebo.

    Then the share of unseen records is what was asked for, and the trained records that are called
    memorised are those that are detected.
    """
    ends = {"lower": "detected_lower", "upper": "detected_upper"}
    return {end: detected[name] - share_unseen for end, name in ends.items()}


def _detected(
    distance: np.ndarray,
    p_values: np.ndarray,
    trained: np.ndarray | None,
    groups: np.ndarray,
    false_alarms: float,
) -> dict:
    """The shares of both sides that are as far below their threshold as few unseen records are.

    NaN without a placebo, or with one so small that no p-value is as low as `false_alarms`.
    """
    rank = 0 if trained is None else _rank(int((~trained).sum()), false_alarms)
    if not rank:
        return dict.fromkeys(DETECTED, np.nan)
    n_groups = [effective_groups(groups[side]) for side in (trained, ~trained)]
    found = share_below_quantile(distance[trained], distance[~trained], rank, *n_groups)
    detected_unseen = (p_values[~trained] <= false_alarms).mean()
    return dict(zip(DETECTED, (*found, detected_unseen), strict=True))


def _rank(n: int, share: float) -> int:
    """How many of n + 1 records are at most this share of them: 0 to n."""
    return int((np.arange(1, n + 1) / (n + 1) <= share).sum())
