"""Tables of scores and ROC curves, from the passes of models over records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from palimpsest.audit.attacks import ATTACKS, Given
from palimpsest.audit.attacks.attack import CHANGED, POPULATION, REFERENCE, SAME_TOKENS
from palimpsest.audit.kinds import PASSES, ROC, SCORES
from palimpsest.audit.passes import OF_TOKENS, Pass
from palimpsest.audit.roc import auc, tpr_at
from palimpsest.audit.versions import TEXT
from palimpsest.corpora.kinds import CORPUS
from palimpsest.making import makes, reads

TARGET = "target"
ABOUT = ["language", "model", "id", "group", "trained"]


@reads(passes=PASSES, records=CORPUS)
@makes(SCORES)
def scores(passes: pd.DataFrame, records: pd.DataFrame, *, attacks: Sequence[str]) -> pd.DataFrame:
    """The scores of records by some attacks; those that need a reference, by each reference."""
    is_whole = (passes["role"] == TARGET) & (passes["version"] == TEXT)
    about, found = passes.loc[is_whole, ABOUT], []
    for name in attacks:
        for reference, given in _given(passes, records, ATTACKS[name].needs):
            score = ATTACKS[name].score(given)
            found.append(about.assign(attack=f"{name}{reference}", score=score))
    return pd.concat(found, ignore_index=True)[SCORES.names]


def _given(
    passes: pd.DataFrame, records: pd.DataFrame, needs: Sequence[str]
) -> Iterator[tuple[str, Given]]:
    """What an attack is given, with the name of the reference; nothing without what it needs."""
    parts = dict(list(passes.groupby(["role", "version"], sort=False)))
    whole = parts[TARGET, TEXT]
    unseen = (~whole["trained"]).fillna(value=False).to_numpy(dtype=bool)
    changed = [need for need in needs if need in CHANGED]
    if any((TARGET, version) not in parts for version in changed):
        return
    if POPULATION in needs and not unseen.any():
        return
    texts = records.set_index("id")["text"].loc[whole["id"]].tolist()
    given = Given(
        texts,
        pass_of(whole),
        changed={version: pass_of(parts[TARGET, version]) for version in changed},
        population=unseen,
    )
    if REFERENCE not in needs:
        yield "", given
        return
    for (role, _), rows in parts.items():
        if role == TARGET:
            continue
        reference = pass_of(rows)
        are_same = np.array_equal(reference.end, given.target.end)
        if are_same or SAME_TOKENS not in needs:
            yield f"/{role}", replace(given, reference=reference)


def pass_of(rows: pd.DataFrame) -> Pass:
    """The pass of one model over the texts of some rows of a table `audit_passes`."""
    n_tokens = rows["log_probs"].map(len).to_numpy()
    vectors = {name: np.concatenate(rows[f"{name}s"].tolist()).astype(float) for name in OF_TOKENS}
    return Pass(n_tokens, **vectors)


@reads(scores=SCORES)
@makes(ROC)
def roc_table(scores: pd.DataFrame, *, false_positive_rates: Sequence[float]) -> pd.DataFrame:
    """AUC and true positive rates of every attack; no rows if no record is known to be unseen."""
    rows = []
    for attack, found in scores.groupby("attack", sort=False):
        known = found.dropna(subset="trained")
        member = known["trained"].to_numpy(dtype=bool)
        if member.all() or not member.any():
            continue
        score = known["score"].to_numpy()
        about = {**known.iloc[0][["language", "model"]], "attack": attack}
        about |= {"n_members": member.sum(), "n_unseen": (~member).sum()}
        rows.append({**about, "statistic": "auc", "value": auc(score, member)})
        for rate in false_positive_rates:
            value = tpr_at(score, member, rate)
            rows.append({**about, "statistic": f"tpr@{rate:g}", "value": value})
    made = pd.DataFrame(rows).reindex(columns=ROC.names)
    return made.astype({"value": float, "lower": float, "upper": float})
