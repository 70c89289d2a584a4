"""Datasets of records with and without a fold, and the losses of both.

A fold is a random part of the groups. One training without a fold gives the losses of all its
records without them, so a few trainings measure all records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from palimpsest import traces
from palimpsest.corpora import read_corpus
from palimpsest.corpora.records_corpus import RecordsCorpus
from palimpsest.datasets.build import DatasetRequest, tabulate
from palimpsest.datasets.strings import string_id
from palimpsest.errors import UserError
from palimpsest.making import makes, reads
from palimpsest.records.interventions import fold_in
from palimpsest.records.kinds import RETRAINED
from palimpsest.traces import Trace


def records(request: DatasetRequest) -> pd.DataFrame:
    """All records that are to be trained on, or all but a fold; the others are measured."""
    corpus, seed = request.sampler.corpus, request.sampler.seed
    trained = corpus.sides(seed, request.options["holdout"])
    corpus.check_apart(trained, "trained on")  # or it could be in no placebo
    is_left_out = np.zeros(len(trained), dtype=bool)
    if (without := fold_in(request.variant)) is not None:
        fold, folds = without
        is_left_out = trained & (corpus.folds(seed, folds, trained) == fold)
    if not (trained & ~is_left_out).any():
        raise UserError(f"{corpus.name}: no record is left to train on; lower records/holdout")
    return tabulate(
        request,
        train=_counted(corpus, trained & ~is_left_out, corpus.copies),
        test=_counted(corpus, ~trained, np.ones_like(corpus.copies)),
        held_out=[corpus.strings[place] for place in np.flatnonzero(is_left_out)],
    )


def _counted(corpus: RecordsCorpus, is_chosen: np.ndarray, copies: np.ndarray) -> Counter:
    found = Counter()
    for place in np.flatnonzero(is_chosen):
        found[corpus.strings[place]] += int(copies[place])
    return found


@reads(corpus=read_corpus, whole=[traces.read], without=[traces.read])
@makes(RETRAINED)
def retrained_losses(
    corpus: RecordsCorpus,
    language: str,
    whole: Sequence[Trace],
    without: Sequence[Trace],
    *,
    holdout: float,
    folds: int,
    retrained: int | None = None,
) -> pd.DataFrame:
    """The losses of all records with and without training on them.

    A record that is never trained on also has a fold, which the model of its `loss_without` lacks:
    so its two models differ as those of a trained record do, but for the record.

    Parameters
    ----------
    whole : a trace for each seed
    without : for each seed, a trace without each of the first `retrained` folds, by default all
    holdout : see `RecordsCorpus.sides`
    """
    ids = np.array([string_id(string) for string in corpus.strings], dtype=object)
    n_without = folds if retrained is None else retrained
    parts = []
    for place, trace in enumerate(whole):
        seed = trace.run["seed"]
        trained = corpus.sides(seed, holdout)
        fold = corpus.folds(seed, folds, trained)
        loss = trace.loss[:, trace.column_of(ids)]
        loss_without = np.full_like(loss, np.nan)
        for number in range(n_without):
            other = without[place * n_without + number]
            of_fold = np.flatnonzero(fold == number)
            loss_without[:, of_fold] = other.loss[:, other.column_of(ids[of_fold])]
        n_epochs = len(trace.epochs)
        parts.append(
            pd.DataFrame(
                {
                    "language": language,
                    "model": trace.run["model"],
                    "seed": seed,
                    "id": np.tile(corpus.records.ids, n_epochs),
                    "group": np.tile(corpus.together, n_epochs),
                    "trained": np.tile(trained, n_epochs),
                    "checkpoint": np.repeat(trace.epochs.astype(float), len(ids)),
                    "loss": loss.ravel(),
                    "loss_without": loss_without.ravel(),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)
