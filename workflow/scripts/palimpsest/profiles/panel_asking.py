"""The job that measures the strings of a panel under one checkpoint.

A row of tokens is one string, as models of the Pythia suite are trained on it: the first token is
given, and all others are predicted. Of a row of 2,049 tokens, the model reads 2,048.

Source: Causal Estimation of Memorisation Profiles, section 6 and appendix D.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.jobs.memory import less_next_time
from palimpsest.models.answers import digest_of_weights
from palimpsest.models.checkpoints import Weights, opened, weights
from palimpsest.models.folders import SAVE_AGAIN
from palimpsest.models.limits import Limits
from palimpsest.profiles.kinds import PANEL_OUTCOMES, PANEL_ROWS
from palimpsest.profiles.panel_rows import read_tokens, texts_at
from palimpsest.training.attempts import Attempts
from palimpsest.training.batches import TokenisedStrings
from palimpsest.training.evaluation import evaluate
from palimpsest.training.texts import encode_records


@dataclass(frozen=True)
class PanelJob:
    """A checkpoint of a panel: see the flags of `ask_panel.py`."""

    name: str
    time: float
    model: str
    rows: str
    table: str
    tokens: str | None = None
    texts: str | None = None
    threads: int = 1


def ask_panel(job: PanelJob, attempts: Attempts) -> None:
    """Write how well a checkpoint predicts the strings of a panel.

    Raises `UserError` if it cannot be loaded, if a string is longer than its context or has a token
    that the model does not have, or if a loss is not a number; `OutOfMemory` if the next attempt
    can succeed.
    """
    torch.set_num_threads(job.threads)
    rows = tables.read(job.rows, PANEL_ROWS)["row"].to_numpy()
    passes = attempts.passes()
    with less_next_time(attempts, "deepspeed", passes, lambda: True):
        found = _measured(job, rows, passes.evaluation_batch_size)
    about = {"panel": job.name, "time": float(job.time), "row": rows}
    tables.write(job.table, found.assign(**about)[PANEL_OUTCOMES.names], PANEL_OUTCOMES)
    attempts.forget()


def _measured(job: PanelJob, rows: np.ndarray, batch_size: int) -> pd.DataFrame:
    if job.texts:
        checkpoint = opened(job.model)
        strings = encode_records(checkpoint, texts_at(job.texts, rows))
        found = Weights(checkpoint.model, checkpoint.limits, checkpoint.device)
    else:
        found = weights(job.model)
        strings = rows_of_tokens(job.tokens, rows, found.limits, job.model)
    places = np.arange(len(rows))
    nll, n_correct, rank_sum = evaluate(found.model, strings, places, batch_size, found.device)
    if not np.isfinite(nll).all():
        raise UserError(f"{job.model}: a loss is not a number; {SAVE_AGAIN}")
    return pd.DataFrame(
        {
            "nll": nll,
            "n_tokens": strings.n_tokens,
            "n_correct": n_correct.astype(int),
            "rank_sum": rank_sum.astype(int),
            "weights": digest_of_weights(found.model),
        }
    )


def rows_of_tokens(path: str, rows: np.ndarray, limits: Limits, model: str) -> TokenisedStrings:
    """Some rows of a token file. The first token of each is given, and not predicted."""
    tokens = read_tokens(path)
    width = tokens.shape[1]
    if limits.positions is not None and width - 1 > limits.positions:
        raise UserError(
            f"{path}: a row has {width:,} tokens, and {model} reads at most {limits.positions:,} "
            f"to predict the next one; cut the rows to {limits.positions + 1:,} tokens"
        )
    ids = np.asarray(tokens[rows], dtype=np.int64)
    if limits.vocabulary is not None and (wrong := (ids < 0) | (ids >= limits.vocabulary)).any():
        row, column = np.argwhere(wrong)[0]
        raise UserError(
            f"{path}: row {rows[row]} has the token {ids[row, column]}, and {model} has the tokens "
            f"0 to {limits.vocabulary - 1:,}; give the tokens of this model"
        )
    return TokenisedStrings(ids, np.full(len(rows), width))
