"""Tables of scores and ROC curves, from the passes of models over records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from palimpsest.audit import scoring
from palimpsest.audit.classifiers import BLIND, COMBINED, blind, can_learn, combined
from palimpsest.audit.duplicates import duplicates_of
from palimpsest.audit.kinds import PASSES, ROC, SCORES, TARGET
from palimpsest.audit.passes import OF_TOKENS, Pass
from palimpsest.audit.roc_curves import judged, statistics
from palimpsest.audit.versions import TEXT
from palimpsest.corpora.kinds import CORPUS
from palimpsest.making import makes, reads

SEED = 0  # of the halves of attacks that learn
ABOUT = ["language", "model", "id", "group", "trained"]


@reads(passes=PASSES, records=CORPUS)
@makes(SCORES)
def scores(passes: pd.DataFrame, records: pd.DataFrame, *, attacks: Sequence[str]) -> pd.DataFrame:
    """The scores of records by some attacks; those that need a reference, by each reference."""
    is_whole = (passes["role"] == TARGET) & (passes["version"] == TEXT)
    about = passes.loc[is_whole, ABOUT]
    texts = records.set_index("id")["text"].loc[about["id"]].tolist()
    known = {of: pass_of(rows) for of, rows in passes.groupby(["role", "version"], sort=False)}
    about = about.assign(duplicate=duplicates_of(texts, about["trained"]))
    unseen = (~about["trained"] & ~about["duplicate"]).fillna(value=False).to_numpy(dtype=bool)
    target = {version: found for (role, version), found in known.items() if role == TARGET}
    wide = scoring.attacks(
        texts,
        target.pop(TEXT),
        references={role: found for (role, _), found in known.items() if role != TARGET},
        changed=target,
        unseen=unseen,
        names=attacks,
    )
    found = [about.assign(attack=name, score=wide[name].to_numpy()) for name in wide]
    if not found:
        return pd.DataFrame(columns=SCORES.names)
    whole = [*found, *_learned(pd.concat(found), about, records)]
    return pd.concat(whole, ignore_index=True)[SCORES.names]


def _learned(
    scores: pd.DataFrame, about: pd.DataFrame, records: pd.DataFrame
) -> Iterator[pd.DataFrame]:
    """The scores of attacks that learn from known members; none if few are known."""
    known = judged(about)
    member = known["trained"].to_numpy(dtype=bool)
    if not can_learn(member):
        return
    group = known["group"].to_numpy()
    wide = scores.pivot(index="id", columns="attack", values="score").loc[known["id"]]
    texts = records.set_index("id")["text"].loc[known["id"]].tolist()
    yield known.assign(attack=COMBINED, score=combined(wide, member, group, SEED))
    yield known.assign(attack=BLIND, score=blind(texts, member, group, SEED))


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
    n_duplicates = scores.groupby("attack")["duplicate"].sum()
    for attack, found in judged(scores).groupby("attack", sort=False):
        member = found["trained"].to_numpy(dtype=bool)
        if member.all():
            continue
        about = {name: found[name].iloc[0] for name in ("language", "model", "attack")}
        about |= {"n_members": int(member.sum()), "n_unseen": int((~member).sum())}
        about |= {"n_duplicates": int(n_duplicates[attack])}
        of_attack = statistics(
            found["score"].to_numpy(), member, found["group"].to_numpy(), false_positive_rates
        )
        rows += [{**about, "statistic": name, **one.columns()} for name, one in of_attack.items()]
    return pd.DataFrame(rows, columns=ROC.names)
