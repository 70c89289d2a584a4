"""Runs of a study of tiny encoders, in this process."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from helpers import tiny_encoders
from palimpsest import tables
from palimpsest.information.encoders import training
from palimpsest.information.kinds import LABELLED
from palimpsest.training.attempts import Attempts

SIZE, TESTS = 96, 150
FILES = ("cls.npz", "mean.npz", "answers.parquet", "run.parquet")


def job(folder: Path, model: str, variant: str, seed: int, **changed) -> training.EncoderJob:
    """The job of a run, with random weights."""
    to = folder / f"seed{seed}" / variant
    to.mkdir(parents=True, exist_ok=True)
    asked = training.EncoderJob(
        "mine",
        variant,
        seed,
        model,
        True,
        str(folder / "labelled.parquet"),
        SIZE,
        TESTS,
        20,
        16,
        5e-3,
        0.1,
        *(str(to / name) for name in FILES),
        precision="fp32",
    )
    return replace(asked, **changed)


def finetune(asked: training.EncoderJob, batch_size: int = 64) -> None:
    sizes = {"micro_batch_size": 16, "evaluation_batch_size": batch_size}
    training.finetune_encoder(asked, Attempts(Path(asked.run).parent / "attempts.json", sizes))


def finetune_all(
    folder: Path, records: pd.DataFrame, variants: Iterable[str], seeds: Iterable[int]
) -> None:
    """Fine-tune a tiny encoder for every seed and variant, in a folder."""
    model = tiny_encoders.write(folder / "distilbert")
    tables.write(folder / "labelled.parquet", records, LABELLED)
    for seed in seeds:
        for variant in variants:
            finetune(job(folder, model, variant, seed))
