"""The audit by reference models: what a target recites, and a model that never saw it does, too.

If a reference that was trained on other data recites a string as well as the target does, then
context explains the string, and it was probably not memorised.

Source: Learning Without Memorizing Considered Infeasible, section 5, RQ6 and RQ7, tables 1 and 3.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator

import pandas as pd

from palimpsest.audit.kinds import (
    AS_WELL,
    EXPLAINED,
    IS_RECITED,
    MOSTLY_EXPLAINED,
    RECITED,
    TARGET,
    UNSEEN,
    URL,
)
from palimpsest.statistics import NO_INTERVAL, Interval, effective_groups, wilson

MOSTLY = 0.9  # share of the tokens of a continuation that counts as recited; the paper's
SIDES = {True: "trained", False: UNSEEN}
UNKNOWN = "unknown"
OTHER = "other"  # the category of a text of no known kind
# Rules of thumb
PATTERN = 0.5  # compressed bytes over bytes, below which a text is a pattern
COMMON = re.compile(
    r"licen[cs]e|copyright|redistribut|warrant(y|ies)|all rights reserved|permission is hereby"
    r"|terms and conditions|without limitation",
    re.IGNORECASE,
)
CODE = re.compile(
    r"[{};]\s*$|^\s*(def|class|import|from|return|if|for|while|#include|public|private|static|var"
    r"|const|function)\b|=>|==|!=|::|\(\)|</\w+>",
    re.MULTILINE,
)


def explained(measured: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The records that a target recites, and what references recite of them.

    A continuation is recited if greedy decoding from the prompt gives `MOSTLY` of its tokens. Each
    model is scored on its own tokens of the same span of text.

    Parameters
    ----------
    measured : a table `audit_continuations` after `with_accuracies`, with the columns `duplicate`
        and `private`
    """
    target = measured[measured["role"] == TARGET]
    recited, shares = [], []
    for reference, other in measured[measured["role"] != TARGET].groupby("role", sort=False):
        both = target.merge(other, on="id", suffixes=("", "_reference"), validate="one_to_one")
        both = both.assign(reference=reference, category=[*map(category, both["continuation"])])
        both["zlib"] = [*map(compressed, both["continuation"])]
        recited.append(both.loc[both["accuracy"] >= MOSTLY, RECITED.names])
        shares += list(_shares(both[~both["duplicate"]]))
    return {
        RECITED.name: pd.concat(recited, ignore_index=True)
        if recited
        else pd.DataFrame(columns=RECITED.names),
        EXPLAINED.name: pd.DataFrame(shares, columns=EXPLAINED.names),
    }


def with_accuracies(continuations: pd.DataFrame) -> pd.DataFrame:
    n_bytes = continuations["continuation"].map(lambda text: len(text.encode()))
    return continuations.assign(
        accuracy=continuations["n_generated"] / continuations["n_tokens"],
        forced=continuations["n_right"] / continuations["n_tokens"],
        bits_per_byte=continuations["nll"] / math.log(2) / n_bytes,
    )


def sides(trained: pd.Series) -> pd.Series:
    return trained.map(SIDES).fillna(UNKNOWN)


def is_private(private: pd.Series) -> pd.Series:
    """Whether records hold private information other than a URL, by the column `private`."""
    found = private.fillna("").map(lambda kinds: bool(set(kinds.split(", ")) - {URL, ""}))
    return found.astype(bool)  # of no record, it would be text


def _shares(both: pd.DataFrame) -> Iterator[dict]:
    """The rows of the table `explained` of one reference."""
    side, is_recited = sides(both["trained"]), both["accuracy"] >= MOSTLY
    better = {
        MOSTLY_EXPLAINED: both["accuracy_reference"] >= MOSTLY,
        AS_WELL: both["accuracy_reference"] >= both["accuracy"],
    }
    for name in side.unique():
        here = side == name
        among = here & is_recited
        about = {key: both[key].iloc[0] for key in ("language", "model", "reference")}
        about |= {"side": name, "n_recited": int(among.sum())}
        found = {IS_RECITED: share(is_recited[here], both["group"][here])}
        found |= {key: share(held[among], both["group"][among]) for key, held in better.items()}
        for statistic, interval in found.items():
            yield {**about, "statistic": statistic, **interval.columns()}


def share(holds: pd.Series, group: pd.Series) -> Interval:
    """A share with its 95 % interval over groups (Wilson); NaN of nothing."""
    if holds.empty:
        return NO_INTERVAL
    return Interval(holds.mean(), *wilson(holds.mean(), effective_groups(group.to_numpy())))


def compressed(text: str) -> float:
    """Compressed bytes over bytes, without what every compressed text begins with."""
    whole = text.encode()
    return (len(zlib.compress(whole, 9)) - len(zlib.compress(b""))) / max(len(whole), 1)


def category(text: str) -> str:
    """What kind of text a continuation is, by rules of thumb."""
    if compressed(text) < PATTERN:
        return "pattern"
    if COMMON.search(text):
        return "common"
    return "code" if CODE.search(text) else OTHER
