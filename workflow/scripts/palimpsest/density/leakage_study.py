"""The study of leakage: the runs of a factorial, from their files, and the tables about them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import pandas as pd

from palimpsest import tables, traces
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.kinds import STRINGS
from palimpsest.density import kinds
from palimpsest.density.bins import leakage_bins
from palimpsest.density.densities import embeddings_of
from palimpsest.density.leakage_tables import (
    Results,
    leakage_table,
    left_out_table,
    retrieval_table,
    separation_table,
)
from palimpsest.variants import LEAK_CONDITIONS, NO_LEAK, leak_of, leaked


def read_runs(files: Mapping[str, Sequence[str]]) -> Iterator[Results]:
    """Yield the runs whose files are listed in the same order under every key of `files`.

    The keys are `datasets`, `traces`, `density` and `neighbours`.
    """
    names = "datasets", "traces", "density", "neighbours"
    for dataset, trace, *others in zip(*(files[name] for name in names), strict=True):
        of_run = zip(others, (kinds.DENSITY, kinds.NEIGHBOURS), strict=True)
        found = [tables.read(path, kind) for path, kind in of_run]
        yield Results(tables.read(dataset, STRINGS), traces.read(trace), *found)


def factorial_tables(
    runs: Sequence[Results], hidden: Sequence[pd.DataFrame], setting: tuple[str, float]
) -> dict[str, pd.DataFrame]:
    """The tables of a factorial of one model on one language, over all seeds.

    Parameters
    ----------
    runs : all runs of the factorial
    hidden : tables `embeddings` of the runs with copies and all paraphrases, in the runs' order
    setting : the kernel and the bandwidth of the table `leakage`
    """
    fullest = [run for run in runs if run.variant == leaked(LEAK_CONDITIONS[-1])]
    retrieved = [
        retrieval_table(run, embeddings_of(run.strings, vectors))
        for run, vectors in zip(fullest, hidden, strict=True)
    ]
    leakage = leakage_table(runs, *setting)
    return {
        kinds.LEAKAGE.name: leakage,
        kinds.DENSITY_BINS.name: leakage_bins(leakage),
        kinds.SEPARATION.name: separation_table(runs),
        kinds.RETRIEVAL.name: pd.concat(retrieved, ignore_index=True),
    }


def whole_runs(runs: Sequence[Results]) -> list[Results]:
    """The runs whose test strings are not leaked, one for each seed."""
    return [run for run in runs if run.variant == leaked(NO_LEAK)]


def left_out_of_seeds(
    runs: Sequence[Results], corpus: GrammarCorpus, setting: tuple[str, float]
) -> pd.DataFrame:
    """The table `left_out` of all seeds.

    `runs` are those without one production, and one whole run for each seed. `setting` is a kernel
    and its bandwidth.
    """
    whole = {run.seed: run for run in whole_runs(runs)}
    without = sorted((run for run in runs if not leak_of(run.variant)), key=lambda run: run.seed)
    parts = [
        left_out_table(whole[seed], own, corpus.productions(), setting)
        for seed, own in groupby(without, key=lambda run: run.seed)
    ]
    return pd.concat(parts, ignore_index=True)
