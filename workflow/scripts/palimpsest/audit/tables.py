"""Tables of scores and ROC curves, from the passes of models over records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from palimpsest.audit import scoring
from palimpsest.audit.duplicates import known_unseen
from palimpsest.audit.kinds import PASSES, ROC, SCORES, TARGET
from palimpsest.audit.membership import ATTACKS
from palimpsest.audit.membership.attack import PREFIXED, Retrained
from palimpsest.audit.optimum import FEWEST
from palimpsest.audit.passes import OF_TOKENS, Pass
from palimpsest.audit.versions import TEXT
from palimpsest.corpora.kinds import CORPUS
from palimpsest.corpora.records import after_prompts
from palimpsest.making import makes, reads
from palimpsest.memorisation.measures import counterfactual
from palimpsest.records.classifiers import BLIND, COMBINED, blind, can_learn, combined
from palimpsest.records.kinds import ANSWERS
from palimpsest.records.roc_curves import judged, statistics

SEED = 0  # of the halves of attacks that learn
ABOUT = ["language", "model", "id", "group", "trained", "duplicate"]


@reads(passes=PASSES, records=CORPUS, answers=[ANSWERS])
@makes(SCORES)
def scores(
    passes: pd.DataFrame,
    records: pd.DataFrame,
    answers: Sequence[pd.DataFrame] = (),
    *,
    attacks: Sequence[str],
    retrained: str | None = None,
    seed: int | None = None,
) -> pd.DataFrame:
    """The scores of records by some attacks; those that need a reference, by each reference.

    Records that stand before others in a version of the texts have no score by what compares it.
    For `answers`, `retrained` and `seed` see `detected`; other seeds are the models of LiRA.
    """
    others = of_other_seeds(pd.concat(answers), retrained, seed) if answers else None
    is_prefixed = passes["version"] == PREFIXED
    outside = passes["id"].isin(passes.loc[is_prefixed, "id"])
    after_others = [name for name in attacks if PREFIXED in ATTACKS[name].needs]
    found = _scores(
        passes[~is_prefixed], records, [n for n in attacks if n not in after_others], others
    )
    if after_others and outside.any():
        found += _scores(passes[outside], records, after_others)
    if not found:
        return pd.DataFrame(columns=SCORES.names)
    whole = pd.concat(found)
    return pd.concat([whole, *_learned(whole, records)], ignore_index=True)[SCORES.names]


def of_other_seeds(answers: pd.DataFrame, model: str, seed: int) -> pd.DataFrame | None:
    """The losses of records under a model, `loss`, and a column for each seed but its own.

    A seed's column is the loss under its model that was trained without the record. None if there
    are too few seeds for LiRA.
    """
    mine = answers[(answers["model"] == model) & (answers["measure"] == counterfactual.__name__)]
    without = mine[mine["seed"] != seed].pivot(index="id", columns="seed", values="threshold")
    if without.shape[1] < FEWEST:
        return None
    return without.assign(loss=mine[mine["seed"] == seed].set_index("id")["loss"])


def _scores(
    passes: pd.DataFrame,
    records: pd.DataFrame,
    attacks: Sequence[str],
    losses: pd.DataFrame | None = None,
) -> list[pd.DataFrame]:
    """A part of the table for each attack."""
    about = passes.loc[(passes["role"] == TARGET) & (passes["version"] == TEXT), ABOUT]
    known = {of: pass_of(rows) for of, rows in passes.groupby(["role", "version"], sort=False)}
    target = {version: found for (role, version), found in known.items() if role == TARGET}
    retrained = None
    if losses is not None:
        of_texts = losses.loc[about["id"]]
        retrained = Retrained(
            of_texts["loss"].to_numpy(), of_texts.drop(columns="loss").T.to_numpy()
        )
    wide = scoring.attacks(
        records.set_index("id")["text"].loc[about["id"]].tolist(),
        target.pop(TEXT),
        references={role: found for (role, _), found in known.items() if role != TARGET},
        changed=target,
        unseen=known_unseen(about),
        retrained=retrained,
        names=attacks,
    )
    return [about.assign(attack=name, score=wide[name].to_numpy()) for name in wide]


def _learned(scores: pd.DataFrame, records: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The scores of attacks that learn from known members; none where they cannot."""
    known = judged(scores[ABOUT].drop_duplicates("id"))
    member = known["trained"].to_numpy(dtype=bool)
    group = known["group"].to_numpy()
    if not can_learn(member, group, SEED):
        return
    wide = scores.pivot(index="id", columns="attack", values="score").loc[known["id"]]
    records = records.set_index("id").loc[known["id"]]
    texts = after_prompts(records["prompt"].fillna(""), records["text"])
    # A record without a score by some attack is an average one there.
    wide = wide.fillna(wide.median())
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
