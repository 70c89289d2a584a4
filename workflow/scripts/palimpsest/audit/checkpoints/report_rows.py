"""What the report says of sets of checkpoints: sentences, and rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import comb

import pandas as pd

from palimpsest.audit.checkpoints import kinds
from palimpsest.audit.checkpoints.clear_gaps import unclear_sets
from palimpsest.audit.checkpoints.kinds import (
    ALL_MODELS,
    FORGET,
    HOLDOUT,
    ORIGINAL,
    RETAIN,
    RETRAINED,
    UNLEARNED,
)
from palimpsest.audit.checkpoints.told_apart import FEWEST
from palimpsest.estimates import with_interval
from palimpsest.number_format import alike, number
from palimpsest.records.roc_curves import AUC
from palimpsest.report.templates import groups
from palimpsest.statistics import Interval

SET = ["language", "model"]
SHOWN = ("loss", "probability", "rouge_l_recall", "exact_match", "truth_ratio")
MOST_LISTED = 3  # values of retrained models
ATTACK = "loss"  # of which sentences tell


def answers(gaps: pd.DataFrame, membership: pd.DataFrame) -> list[dict]:
    """For each unlearned model: the share of the gap that it closed, and what controls show.

    The placebos are records never trained on, and what retrained models show on them.
    """
    rows, unclear = [], unclear_sets(gaps)
    for of_set, found in groups(gaps, SET):
        shares = {(row.checkpoint, row.split): row for row in found.itertuples()}
        unlearned = found.loc[found["role"] == UNLEARNED, "checkpoint"].unique()
        retrained = found.loc[found["role"] == RETRAINED, "checkpoint"].unique()
        aucs = _aucs(membership, of_set)
        for name in unlearned:
            own = shares[name, FORGET]
            rises = {
                split: {
                    "own": _moved(shares[name, split]),
                    "retrained": _all_moved([shares[one, split].share for one in retrained]),
                }
                for split in (HOLDOUT, RETAIN)
                if (name, split) in shares and pd.notna(own.share)
            }
            others = [shares[name, split] for split in rises]
            share = _interval(own, "share") if pd.notna(own.share) else None
            told = {"name": name, "share": share, "n": own.n_records, "reading": _read(own, others)}
            told["why"] = unclear.get((of_set["language"], of_set["model"]))
            rows.append(
                {**of_set, **told, "rises": rises, "attack": _attack(aucs, name, retrained)}
            )
    return rows


def _read(own, others: list) -> str:
    """What the rise of other records makes of the share that a model closed."""
    damaged = [row for row in others if row.lower > 0]
    if not own.lower > 0:  # or unknown
        return ""
    if any(row.upper >= own.lower for row in damaged):
        return "other records rose about as much, so this is not told from general damage"
    words = "more than retraining" if own.lower > 1 else ""
    return ", ".join(filter(None, (words, "and other records rose, too" if damaged else "")))


def _moved(row) -> str:
    """How far a loss rose or fell, with its interval."""
    if row.share < 0:
        return f"fell by {with_interval(Interval(-row.share, -row.upper, -row.lower))}"
    return f"rose by {_interval(row, 'share')}"


def _all_moved(shares: Sequence[float]) -> str:
    """How far several losses rose or fell; with signs if not all moved alike."""
    known = [share for share in shares if pd.notna(share)]
    if known and max(known) < 0:
        return f"fell by {_listed(-share for share in known)}"
    word = "changed" if known and min(known) < 0 else "rose"
    return f"{word} by {_listed(known)}"


def _attack(aucs: Mapping[str, object], name: str, retrained: Sequence[str]) -> dict | None:
    """The AUC of an attack on a model and on the retrained ones; None without records for it."""
    if name not in aucs:
        return None
    of_retrained = _listed(aucs[one].value for one in retrained)
    return {"own": _interval(aucs[name], "value"), "retrained": of_retrained}


def _aucs(membership: pd.DataFrame, of_set: Mapping[str, str]) -> dict[str, object]:
    if membership.empty:
        return {}
    is_own = (membership[SET] == pd.Series(of_set)).all(axis=1)
    is_shown = (membership["attack"] == ATTACK) & (membership["statistic"] == AUC)
    return {row.checkpoint: row for row in membership[is_own & is_shown].itertuples()}


def metric_rows(metrics: pd.DataFrame) -> list[dict]:
    """Per set, model and split: the means of what is known of the answers."""
    rows = []
    for row, found in groups(metrics, [*SET, "split", "role", "checkpoint"]):
        by_name = {one.metric: one for one in found.itertuples()}
        shown = {name: _interval(by_name.get(name), "value") for name in SHOWN}
        rows.append({**row, **shown})
    return rows


def quality_rows(qualities: pd.DataFrame) -> list[dict]:
    """Per set and model: forget quality against each retrained model."""
    return [
        {**row, "p": number(one.p_value), "against": one.against}
        for row, found in groups(qualities, [*SET, "role", "checkpoint"])
        for one in found.itertuples()
    ]


def apart_rows(tests: pd.DataFrame) -> list[dict]:
    return [
        {
            **row._asdict(),
            "value": number(row.value),
            "p": number(row.p_value),
            "most": number(row.attainable),
            "n": f"{row.n_unlearned} / {row.n_retrained}",
        }
        for row in tests.itertuples(index=False)
    ]


def left_out(gaps: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> list[dict]:
    """Per set: what its models and records are too few for, each with the reason."""
    rows = []
    for of_set, found in groups(gaps, SET):
        roles = found[found["checkpoint"] != ALL_MODELS].groupby("role")["checkpoint"].nunique()
        n = {role: int(roles.get(role, 0)) for role in (ORIGINAL, RETRAINED, UNLEARNED)}
        lacks = {name: not _has(table, of_set) for name, table in tables.items()}
        few = FEWEST - 1
        rows.append(
            {
                **of_set,
                "n": n,
                "no_tests": lacks[kinds.TOLD_APART.name],
                "fewest": FEWEST,
                "few": few,
                "labellings": comb(2 * few, few),
                "no_holdout": lacks[kinds.MEMBERSHIP.name],
                "no_intervals": _is_without_intervals(tables[kinds.MEMBERSHIP.name], of_set),
                "no_false": lacks[kinds.FORGET_QUALITY.name],
            }
        )
    return rows


def _has(table: pd.DataFrame, of_set: Mapping[str, str]) -> bool:
    return not table.empty and bool((table[SET] == pd.Series(of_set)).all(axis=1).any())


def _is_without_intervals(membership: pd.DataFrame, of_set: Mapping[str, str]) -> bool:
    return any(pd.isna(row.lower) for row in _aucs(membership, of_set).values())


def _listed(values: Iterable[float]) -> str:
    """A few values, or the lowest and the highest of more."""
    known = [value for value in values if pd.notna(value)]
    if not known:
        return number(None)
    if len(known) > MOST_LISTED:
        return " to ".join(alike(min(known), max(known)))
    return ", ".join(alike(*known))


def _interval(row, name: str) -> str:
    """A value of a row with its interval; a dash without a row."""
    if row is None:
        return "–"
    return with_interval(Interval(getattr(row, name), row.lower, row.upper))
