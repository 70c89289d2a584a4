"""The job that asks a target and its references about records."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from palimpsest import tables
from palimpsest.audit.continuations import Cut, continued, cut, n_tokens_of_longest
from palimpsest.audit.duplicates import duplicates_of, known_unseen
from palimpsest.audit.kinds import CONTINUATIONS, PASSES, TARGET
from palimpsest.audit.measuring import passed
from palimpsest.audit.membership import ATTACKS
from palimpsest.audit.membership.attack import CHANGED, PREFIXED
from palimpsest.audit.passes import Pass
from palimpsest.audit.versions import TEXT, Versions, versions
from palimpsest.corpora import read_corpus
from palimpsest.corpora.records import column_of_trained
from palimpsest.errors import UserError
from palimpsest.jobs.memory import less_next_time
from palimpsest.models.answers import Answers
from palimpsest.models.checkpoints import Checkpoint, opened
from palimpsest.training.attempts import Attempts

log = logging.getLogger("palimpsest")

ROUNDING = 0.02  # nats per token; rounding its weights to bfloat16 moves SmolLM2 135M by 0.01


@dataclass(frozen=True)
class AuditJob:
    """Records, a target and its references: see the flags of `audit_target.py`.

    Without the folder `state`, what models say is not kept for another attempt.
    """

    language: str
    name: str
    corpus: str
    passes: str
    continuations: str
    model: str
    reference: Sequence[tuple[str, str]] = ()
    attacks: Sequence[str] = ()
    prompt: int = 32
    continuation: int = 32
    neighbours: int = 8
    prefixes: int = 7
    secrets: int = 0
    threads: int = 1
    state: str | None = None


def audit_target(job: AuditJob, attempts: Attempts) -> None:
    """Write what a target and its references say of every token of records, and continuations.

    Raises `UserError` if a model cannot be loaded, if a reference is the target, or if all records
    are shorter than prompt and continuation; `OutOfMemory` if the next attempt can succeed.
    """
    torch.set_num_threads(job.threads)
    records = Audited.of(job)
    passes = attempts.passes()
    answers = Answers(answers_of(job)) if job.state else None
    with less_next_time(attempts, "deepspeed", passes, lambda: True):
        made, continuations = asked(job, records, passes.evaluation_batch_size, answers)
    tables.write(job.passes, made, PASSES)
    tables.write(job.continuations, continuations, CONTINUATIONS)
    if answers is not None:
        answers.close()
    attempts.forget()


def answers_of(job: AuditJob) -> Path:
    """The file of what models said in earlier attempts at a job, or for fewer records."""
    return Path(job.state) / "answers" / f"audit-{job.language}-{job.name}.sqlite"


@dataclass(frozen=True)
class Audited:
    """The records of an audit: texts after their prompts, and the columns of their rows."""

    texts: list[str]
    prompts: list[int]
    about: pd.DataFrame

    @classmethod
    def of(cls, job: AuditJob) -> Audited:
        corpus = read_corpus(job.corpus)
        records = corpus.records
        about = pd.DataFrame(
            {
                "language": job.language,
                "model": job.name,
                "id": records.ids,
                "group": corpus.together,
                "trained": column_of_trained(corpus.is_trained, len(records.ids)),
            }
        )
        about["duplicate"] = duplicates_of(records.whole_texts, about["trained"])
        return cls(records.whole_texts, list(records.prompt_letters), about)

    @property
    def unseen(self) -> np.ndarray:
        """bool[records]: whether the target is known not to have been trained on a record.

        Records that nearly are ones that it was trained on do not count.
        """
        return known_unseen(self.about)


def asked(
    job: AuditJob, records: Audited, batch_size: int, answers: Answers | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables `audit_passes` and `continuations`. Models are opened one after another."""
    target = _opened(job.model, answers)
    given = cut(target, records.texts, records.prompts, job.prompt, job.continuation)
    if not len(given.rows):
        raise UserError(
            f"audit: no record of {job.language} has {job.prompt} + {job.continuation} tokens of "
            f"{job.model}; the longest has {n_tokens_of_longest(target, records.texts)}: lower "
            "audit/prompt or audit/continuation, or give records prompts"
        )
    if n_short := len(records.texts) - len(given.rows):
        log.warning(
            "audit/targets/%s: %s of %s records of %s have fewer than %s + %s tokens (audit/prompt "
            "and audit/continuation), so they are attacked, and not continued",
            *(job.name, n_short, len(records.texts), job.language, job.prompt, job.continuation),
        )
    whole = Versions(records.texts, records.prompts, np.arange(len(records.texts)))
    texts = {TEXT: whole, **changed(job, records, target)}
    passes, continuations = _of_model(TARGET, target, records, texts, given, batch_size)
    of_target = passes[0]
    for name, model in job.reference:
        texts = {TEXT: whole}
        del target
        target = _opened(model, answers)
        found, more = _of_model(name, target, records, texts, given, batch_size)
        _check_other(job, name, model, of_target, found[0])
        passes, continuations = [*passes, *found], [*continuations, *more]
    return pd.concat(passes, ignore_index=True), pd.concat(continuations, ignore_index=True)


def changed(job: AuditJob, records: Audited, target: Checkpoint) -> dict[str, Versions]:
    """The versions of the texts that attacks need, with as many prefixes as the target takes."""
    needs = dict.fromkeys(need for name in job.attacks for need in ATTACKS[name].needs)
    group = records.about["group"].to_numpy()
    given = (records.texts, records.prompts, records.unseen, group)
    how = {"neighbours": job.neighbours, "secrets": job.secrets}
    alone = [need for need in needs if need in CHANGED and need != PREFIXED]
    made = versions(alone, *given, prefixes=0, **how)
    if PREFIXED not in needs:
        return made
    for n_prefixes in range(job.prefixes, -1, -1):
        prefixed = versions([PREFIXED], *given, prefixes=n_prefixes, **how)
        if not prefixed or _fit(target, prefixed[PREFIXED].texts):
            break
    if n_prefixes < job.prefixes:
        log.warning(
            "audit/targets/%s: %s records before each text (audit/prefixes) are more than the %s "
            "tokens of %s; %s",
            *(job.name, job.prefixes, target.limits.positions, job.model),
            f"{n_prefixes} are used" if n_prefixes else "attacks that need them are left out",
        )
    return {**made, **prefixed}


def _fit(target: Checkpoint, texts: Sequence[str]) -> bool:
    """Whether a model takes some texts, each after a start token."""
    most = target.limits.positions
    return most is None or n_tokens_of_longest(target, texts) < most


def _opened(model: str, answers: Answers | None) -> Checkpoint:
    found = opened(model)
    return found if answers is None else replace(found, answers=answers.of_model(found.model))


def _of_model(
    role: str,
    checkpoint: Checkpoint,
    records: Audited,
    texts: dict[str, Versions],
    given: Cut,
    batch_size: int,
) -> tuple[list[pd.DataFrame], list[pd.DataFrame]]:
    passes = [
        _frame(
            passed(checkpoint, one.texts, one.prompts, batch_size), records.about, role, name, one
        )
        for name, one in texts.items()
    ]
    found = continued(checkpoint, given, batch_size)
    letters = list(zip(given.texts, given.prompts, strict=True))
    frame = records.about.iloc[given.rows].assign(
        role=role,
        prompt=[text[:n] for text, n in letters],
        continuation=[text[n:] for text, n in letters],
        **found._asdict(),
    )
    return passes, [frame[CONTINUATIONS.names]]


def _frame(
    found: Pass, about: pd.DataFrame, role: str, version: str, of_version: Versions
) -> pd.DataFrame:
    rows = np.repeat(of_version.rows, of_version.n)
    vectors = {
        f"{name}s": [part.astype(np.float32) for part in found.split(values)]
        for name, values in found.of_tokens.items()
    }
    places = np.tile(np.arange(of_version.n), len(of_version.rows))
    frame = about.iloc[rows].reset_index(drop=True)
    return frame.assign(role=role, version=version, place=places, **vectors)[PASSES.names]


def _check_other(
    job: AuditJob, name: str, model: str, target: pd.DataFrame, reference: pd.DataFrame
) -> None:
    """Raise `UserError` if the reference says of every token what the target says, but rounding."""
    pairs = list(zip(target["log_probs"], reference["log_probs"], strict=True))
    if any(len(one) != len(other) for one, other in pairs):
        return
    apart = np.abs(np.concatenate([one - other for one, other in pairs])).mean()
    if apart < ROUNDING:
        raise UserError(
            f"audit/targets/{job.name}/references/{name}: {model} gives tokens the same "
            f"probability as {job.model} ({apart:.2g} nats apart); they are one model under two "
            "names, or in two number formats: name another one"
        )
