"""The audit audited: what each detector finds of records whose truth is known.

A detector gives every record a score. All detectors are judged by one code, at one share of false
alarms, whether they are attacks, extraction or retraining.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest.audit.canaries import guesses, one_run_epsilon, sees_no_coin
from palimpsest.audit.kinds import (
    ALL_COPIES,
    ATTACK,
    BY_EXTRACTION,
    DETECTORS,
    EPSILON,
    EXTRACTED,
    FALSE_ALARMS,
    PRECISION,
    RECALL,
    SCORES,
    TARGET,
)
from palimpsest.claims import RETRAINING
from palimpsest.corpora.kinds import CORPUS
from palimpsest.making import makes, reads
from palimpsest.records.kinds import ANSWERS
from palimpsest.records.roc_curves import judged, rank_at
from palimpsest.statistics import (
    CONFIDENCE,
    NO_INTERVAL,
    Interval,
    clopper_pearson,
    effective_groups,
)

ABOUT = ["id", "group", "trained"]


@reads(scores=SCORES, extracted=EXTRACTED, records=CORPUS, answers=[ANSWERS])
@makes(DETECTORS)
def detected(
    scores: pd.DataFrame,
    extracted: pd.DataFrame,
    records: pd.DataFrame,
    answers: Sequence[pd.DataFrame],
    *,
    retrained: str | None,
    seed: int | None,
    coin: bool,
    false_positive_rates: Sequence[float],
) -> pd.DataFrame:
    """The table `detectors` of one target; empty without known members and known others.

    Parameters
    ----------
    answers : the table of answers about the records, if the target's model is trained again without
        them; or nothing
    retrained, seed : the name of this model, and the seed of its trainings; None without `answers`
    coin : whether a coin chose the member of each group of two; else there is no bound of epsilon
    """
    retrainings = [of_retraining(table, retrained, seed) for table in answers]
    found = pd.concat([of_attacks(scores), of_extraction(extracted), *retrainings])
    found = found[found["id"].isin(judged(scores)["id"])].astype({"trained": bool})
    found = found.merge(records[["id", "copies"]], on="id", validate="many_to_one")
    about = {name: extracted[name].iloc[0] for name in ("language", "model")}
    made = []
    for (family, detector), rows in found.groupby(["family", "detector"], sort=False):
        if rows["trained"].nunique() < 2:
            continue
        keys = {**about, "family": family, "detector": detector}
        for rate in false_positive_rates:
            made += [{**keys, "rate": rate, **row} for row in judgements(rows, rate)]
        if coin and (family == BY_EXTRACTION or sees_no_coin(detector)):
            made += [{**keys, "rate": np.nan, **row} for row in epsilons(rows)]
    return pd.DataFrame(made, columns=DETECTORS.names)


def of_attacks(scores: pd.DataFrame) -> pd.DataFrame:
    return scores[[*ABOUT, "score"]].assign(family=ATTACK, detector=scores["attack"])


def of_extraction(extracted: pd.DataFrame) -> pd.DataFrame:
    """Greedy decoding, alone and beyond each reference; the letters in a row; and (n, p)."""
    target = extracted[extracted["role"] == TARGET]
    scores = {
        "greedy": target["accuracy"],
        "longest span": target["span_letters"],
        "(n, p)": -target["log10_samples"],
    }
    for reference, rows in extracted[extracted["role"] != TARGET].groupby("role", sort=False):
        other = rows.set_index("id")["accuracy"].loc[target["id"]].to_numpy()
        scores[f"greedy/{reference}"] = target["accuracy"] - other
    return pd.concat(
        target[ABOUT].assign(family=BY_EXTRACTION, detector=name, score=score.astype(float))
        for name, score in scores.items()
    )


def of_retraining(answers: pd.DataFrame, model: str, seed: int) -> pd.DataFrame:
    """How far the loss is below that without the record, as a share; as the section `records`."""
    mine = answers[(answers["model"] == model) & (answers["seed"] == seed)]
    mine = mine[mine["evidence"] == RETRAINING]
    score = 1 - mine["loss"] / mine["threshold"]
    return mine[ABOUT].assign(family=RETRAINING, detector=mine["measure"], score=score)


class Threshold(NamedTuple):
    """Records with a score above `score` are found: `n_before` of those never trained on.

    `score` is the `rank`-th highest of theirs, see `rank_at`; without equal scores, rank - 1 are
    before.
    """

    score: float
    rank: int
    n_before: int


def threshold(unseen: np.ndarray, group: np.ndarray, rate: float) -> Threshold:
    """The score that a further record never trained on exceeds in a share of `rate` at most.

    The further record is of another group. Of so few groups that there is no such score, it is
    infinite.

    Parameters
    ----------
    unseen, group : float[records], and the names of their groups
    """
    rank = rank_at(rate, len(unseen), effective_groups(group))
    if not rank:
        return Threshold(np.inf, 0, 0)
    score = np.sort(unseen)[-rank]
    return Threshold(score, rank, int((unseen > score).sum()))


def judgements(rows: pd.DataFrame, rate: float) -> Iterator[dict]:
    """Recall by copies and over all, precision and false alarms of one detector.

    The threshold comes from the records never trained on. Given them, the members are independent
    of it, so the interval of a recall is exact. The share of false alarms of a threshold that is a
    score of n records has exact bounds, too, by order statistics: those of Clopper and Pearson.
    Precision is that with as many members as others, and its interval joins the ends of both at
    half of the error probability each.
    """
    member = rows["trained"].to_numpy()
    score = rows["score"].to_numpy()
    group = rows["group"].to_numpy()
    limit = threshold(score[~member], group[~member], rate)
    is_found = score > limit.score
    alarms = false_alarms(limit, group[~member])
    half = (1 + CONFIDENCE) / 2
    yield _row(FALSE_ALARMS, ALL_COPIES, is_found[~member], alarms)
    for copies in (ALL_COPIES, *np.unique(rows["copies"][member])):
        inside = member & ((rows["copies"] == copies).to_numpy() | (copies == ALL_COPIES))
        here, groups = is_found[inside], group[inside]
        both = recall(here, groups, half), false_alarms(limit, group[~member], half)
        is_known = np.isfinite(limit.score)
        yield _row(RECALL, copies, here, recall(here, groups) if is_known else NO_INTERVAL)
        yield _row(PRECISION, copies, here, precision(*both) if is_known else NO_INTERVAL)


def _row(statistic: str, copies: int, is_found: np.ndarray, found: Interval) -> dict:
    counts = {"copies": copies, "n": len(is_found), "n_found": int(is_found.sum())}
    return {"statistic": statistic, **counts, **found.columns()}


def recall(is_found: np.ndarray, group: np.ndarray, confidence: float = CONFIDENCE) -> Interval:
    share = float(is_found.mean())
    return Interval(share, *clopper_pearson(share, effective_groups(group), confidence))


def false_alarms(limit: Threshold, group: np.ndarray, confidence: float = CONFIDENCE) -> Interval:
    """The share of records never trained on that are above a threshold, in general."""
    if not limit.rank:
        return NO_INTERVAL
    n, before = len(group), limit.rank - 1
    lower, upper = clopper_pearson(before / n, effective_groups(group), confidence)
    # If some are equal to the threshold, nothing is known from below.
    return Interval(limit.n_before / n, lower if limit.n_before == before else 0.0, upper)


def precision(found: Interval, alarms: Interval) -> Interval:
    """The share of members among what is found, with as many members as others; NaN of nothing."""

    def share(hits: float, misses: float) -> float:
        return hits / (hits + misses) if hits + misses else np.nan

    ends = share(found.lower, alarms.upper), share(found.upper, alarms.lower)
    return Interval(share(found.mean, alarms.mean), *ends)


def epsilons(rows: pd.DataFrame) -> Iterator[dict]:
    """Lower bounds of epsilon by copies, and over all pairs; nothing without pairs."""
    pairs = guesses(rows)
    for copies in (ALL_COPIES, *np.unique(pairs["copies"])) if len(pairs) else ():
        here = pairs[(pairs["copies"] == copies) | (copies == ALL_COPIES)]
        right = here["right"].dropna().to_numpy(dtype=bool)
        bound = one_run_epsilon(int(right.sum()), len(right))
        yield _row(EPSILON, copies, right, Interval(np.nan, bound, np.nan))
