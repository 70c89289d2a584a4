"""The job that asks a checkpoint for answers to the prompts of records."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from palimpsest import tables
from palimpsest.audit.checkpoints.greedy import greedy_answers
from palimpsest.audit.checkpoints.kinds import ANSWER, ANSWERS, FORGET, PARAPHRASED, PERTURBED
from palimpsest.audit.checkpoints.questions import Template, encoded
from palimpsest.audit.checkpoints.relearning import half_of_groups, relearn
from palimpsest.audit.checkpoints.rounding import round_weights
from palimpsest.audit.measuring import measured_tokens
from palimpsest.audit.passes import OF_TOKENS
from palimpsest.corpora import read_corpus
from palimpsest.corpora.records import Records, some_of
from palimpsest.corpora.records_corpus import RecordsCorpus
from palimpsest.jobs.memory import less_next_time
from palimpsest.models.checkpoints import Checkpoint, opened
from palimpsest.training.attempts import Attempts


@dataclass(frozen=True)
class CheckpointJob:
    """Records and a checkpoint: see the flags of `ask_checkpoint.py`."""

    language: str
    name: str
    corpus: str
    table: str
    model: str
    template: str | None = None
    chat: str | None = None
    most: int = 200
    bits: int | None = None
    relearn_steps: int = 0
    relearn_rate: float = 1e-5
    threads: int = 1


def ask_checkpoint(job: CheckpointJob, attempts: Attempts) -> None:
    """Write what a checkpoint says of the answers of records, and how it answers itself.

    Raises `UserError` if it cannot be loaded or asked, `OutOfMemory` if the next attempt can
    succeed.
    """
    torch.set_num_threads(job.threads)
    corpus = read_corpus(job.corpus)
    template = Template(job.template, None if job.chat is None else json.loads(job.chat))
    passes = attempts.passes()
    with less_next_time(attempts, "deepspeed", passes, lambda: True):
        found = _asked(job, opened(job.model), corpus, template, passes.evaluation_batch_size)
    group = dict(zip(corpus.records.ids, corpus.together, strict=True))
    found = found.assign(
        language=job.language, model=job.name, group=[group[name] for name in found["id"]]
    )
    tables.write(job.table, found[ANSWERS.names], ANSWERS)
    attempts.forget()


def _asked(
    job: CheckpointJob,
    checkpoint: Checkpoint,
    corpus: RecordsCorpus,
    template: Template,
    batch_size: int,
) -> pd.DataFrame:
    """The answers; the model is first trained again, or rounded, if this is asked for."""
    records = corpus.records
    if job.relearn_steps:
        forget = np.flatnonzero(records.splits == FORGET)
        again = forget[half_of_groups(corpus.together[forget])]
        own = some_of(records, again)
        strings = encoded(checkpoint, template, own.prompts_or_blank, own.texts).strings
        relearn(checkpoint, strings, job.relearn_steps, job.relearn_rate, batch_size)
        records = some_of(records, np.setdiff1d(np.arange(len(records.ids)), again))
    if job.bits is not None:
        round_weights(checkpoint.model, job.bits)
    return answers_of(checkpoint, records, template, most=job.most, batch_size=batch_size)


def answers_of(
    checkpoint: Checkpoint, records: Records, template: Template, *, most: int, batch_size: int
) -> pd.DataFrame:
    """The table `checkpoint_answers` without the names of the records' file, groups and model."""
    frame = _versions(records)
    prompts, strings = encoded(checkpoint, template, frame["prompt"], frame["answer"])
    found = measured_tokens(checkpoint, strings, batch_size)
    ends = np.cumsum(strings.n_tokens)[:-1]
    for name, values in zip(OF_TOKENS, found.astype(np.float32), strict=False):
        frame[f"{name}s"] = np.split(values, ends)
    frame["predicted"] = [
        checkpoint.tokenizer.decode(row[n:length], skip_special_tokens=True)
        for row, n, length in zip(strings.ids, strings.contexts, strings.lengths, strict=True)
    ]
    rows = np.flatnonzero(frame["version"] == ANSWER)
    generated = greedy_answers(checkpoint, [prompts[row] for row in rows], most, batch_size)
    frame["generated"] = pd.Series(generated, index=rows, dtype=object).reindex(frame.index)
    return frame.drop(columns="prompt")


def _versions(records: Records) -> pd.DataFrame:
    """A row for each answer to each record's prompt: its own, paraphrased and perturbed ones."""
    nothing = [()] * len(records.ids)
    answers = {
        ANSWER: [(text,) for text in records.texts],
        PARAPHRASED: records.paraphrased or nothing,
        PERTURBED: records.perturbed or nothing,
    }
    about = list(zip(records.ids, records.splits, records.prompts_or_blank, strict=True))
    return pd.DataFrame(
        [
            (*about[row], version, place, text)
            for version, of_records in answers.items()
            for row, texts in enumerate(of_records)
            for place, text in enumerate(texts)
        ],
        columns=["id", "split", "prompt", "version", "place", "answer"],
    )
