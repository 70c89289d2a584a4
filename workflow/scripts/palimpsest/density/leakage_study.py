"""The study of leakage: the tables about the runs of a factorial."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import pandas as pd

from palimpsest.corpora import GrammarCorpus, read_corpus
from palimpsest.density import kinds
from palimpsest.density.bins import leakage_bins
from palimpsest.density.densities import embeddings_of
from palimpsest.density.interventions import LEAK_CONDITIONS, NO_LEAK, leak_of, leaked
from palimpsest.density.leakage_tables import (
    RESULTS,
    Results,
    leakage_table,
    left_out_table,
    results_of,
    retrieval_table,
    separation_table,
)
from palimpsest.making import makes, reads


@reads(**RESULTS, embeddings=[kinds.EMBEDDINGS])
@makes(*kinds.OF_FACTORIAL)
def factorial(
    embeddings: Sequence[pd.DataFrame], shown: Mapping, **results: Sequence
) -> dict[str, pd.DataFrame]:
    """The tables of a factorial of one model on one language, over all seeds.

    Parameters
    ----------
    embeddings : of the runs with copies and all paraphrases, in the order of the runs
    shown : the kernel and the bandwidth of the table `leakage`
    results : see `results_of`
    """
    runs = list(results_of(**results))
    fullest = [run for run in runs if run.variant == leaked(LEAK_CONDITIONS[-1])]
    retrieved = [
        retrieval_table(run, embeddings_of(run.strings, vectors))
        for run, vectors in zip(fullest, embeddings, strict=True)
    ]
    leakage = leakage_table(runs, shown["kernel"], shown["bandwidth"])
    return {
        kinds.LEAKAGE.name: leakage,
        kinds.DENSITY_BINS.name: leakage_bins(leakage),
        kinds.SEPARATION.name: separation_table(runs),
        kinds.RETRIEVAL.name: pd.concat(retrieved, ignore_index=True),
    }


def whole_runs(runs: Sequence[Results]) -> list[Results]:
    return [run for run in runs if run.variant == leaked(NO_LEAK)]


@reads(**RESULTS, corpus=read_corpus)
@makes(kinds.LEFT_OUT)
def left_out(corpus: GrammarCorpus, shown: Mapping, **results: Sequence) -> pd.DataFrame:
    """What leaving one production out of the training strings changes, over all seeds.

    `results` are those without one production, and one whole run for each seed. `shown` is a kernel
    and its bandwidth.
    """
    runs = list(results_of(**results))
    whole = {run.seed: run for run in whole_runs(runs)}
    without = sorted((run for run in runs if not leak_of(run.variant)), key=lambda run: run.seed)
    setting = shown["kernel"], shown["bandwidth"]
    parts = [
        left_out_table(whole[seed], own, corpus.productions(), setting)
        for seed, own in groupby(without, key=lambda run: run.seed)
    ]
    return pd.concat(parts, ignore_index=True)
