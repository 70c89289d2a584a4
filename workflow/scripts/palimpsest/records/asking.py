"""The job that asks a checkpoint about records."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from palimpsest import tables
from palimpsest.corpora import read_corpus
from palimpsest.corpora.records import column_of_trained
from palimpsest.jobs.memory import less_next_time
from palimpsest.records.checkpoint import measure
from palimpsest.records.kinds import MEASURED
from palimpsest.training.attempts import Attempts


@dataclass(frozen=True)
class RecordsJob:
    """Records to measure under a checkpoint: see the flags of `measure_records.py`."""

    language: str
    name: str
    corpus: str
    table: str
    model: str
    reference: str | None
    threads: int = 1


def measure_records(job: RecordsJob, attempts: Attempts) -> None:
    """Write the losses of records under a checkpoint, and under its reference, in bits per byte.

    Raises as `palimpsest.records.measure`, or `OutOfMemory` if the next attempt can succeed.
    """
    torch.set_num_threads(job.threads)
    corpus = read_corpus(job.corpus)
    records = replace(corpus.records, trained=corpus.is_trained)
    passes = attempts.passes()
    with less_next_time(attempts, "deepspeed", passes, lambda: True):
        losses = measure(records, job.model, job.reference, batch_size=passes.evaluation_batch_size)
    reference = np.nan if losses.reference is None else losses.reference[0]
    frame = pd.DataFrame(
        {
            "language": job.language,
            "model": job.name,
            "id": records.ids,
            "group": corpus.together,
            "trained": column_of_trained(records.trained, len(records.ids)),
            "checkpoint": 0.0,
            "loss": losses.loss[0],
            "loss_reference": reference,
        }
    )
    tables.write(job.table, frame[MEASURED.names], MEASURED)
    attempts.forget()
