"""The atlas: what exact retraining of a cell takes, and how often intervals miss the truth.

Run as a script: `python tests/benchmarks/bench_atlas.py`. A cell is one twin (OPT 1.3B) on 64
strings of L2, 50 epochs: a training without each distinct string, twice, on two cores. The peer is
the same where all strings are measured after every epoch, not after every fifth; its seconds are
those of as many trainings as a core does in a minute or so, scaled up. The next row is the size of
the tables that hold the n x n matrix.

The other rows are simulated: rank correlations of normal values, 52 strings a seed, whose truth
differs between seeds or not. The peer is Student's interval over the seeds.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from rows import Row, at_most, main, shown  # noqa: E402

from palimpsest import tables, traces  # noqa: E402
from palimpsest.atlas.agreement import Agreement  # noqa: E402
from palimpsest.atlas.frontier import Compared, intervals  # noqa: E402
from palimpsest.atlas.kinds import AGAIN, AMOUNT, RANK  # noqa: E402
from palimpsest.atlas.truth import truth_tables  # noqa: E402
from palimpsest.corpora import GrammarCorpus  # noqa: E402
from palimpsest.datasets.build import build  # noqa: E402
from palimpsest.datasets.sampling import Sampler  # noqa: E402
from palimpsest.models import read_models  # noqa: E402
from palimpsest.regimes import without_string  # noqa: E402
from palimpsest.sections import KINDS  # noqa: E402
from palimpsest.statistics import student  # noqa: E402
from palimpsest.training.fleet import FleetEngine  # noqa: E402
from palimpsest.training.recipe import Recipe  # noqa: E402
from palimpsest.training.runs import Run  # noqa: E402

MODEL, CORES = "opt-1.3b", 2
TRUTH_TARGET, MEGABYTES_TARGET, MISSED_TARGET = 60.0, 10.0, 8.0
OF_PEER = 8  # trainings of the peer on each core
N_STRINGS, N_STUDIES, TINY = 52, 500, 2
WORLDS = ((3, 0.3, 0.0), (3, 0.3, 0.2), (3, 0.8, 0.2), (5, 0.3, 0.2), (5, 0.8, 0.0))


def run_in(folder: str, size: int, epochs: int, every: int) -> Run:
    row = read_models(ROOT / "config/models.tsv")[MODEL]
    corpus = GrammarCorpus.from_file(ROOT / "config/languages/L2.pcfg")
    dataset = f"{folder}/strings.parquet"
    if not Path(dataset).is_file():
        strings = build(Sampler("L2", corpus, 0), "base", size, 16, predict_end=False)
        tables.write(dataset, strings, KINDS["strings"])
    recipe = Recipe(row.twin_learning_rate, epochs=epochs, evaluate_every=every, checkpoint_every=0)
    return Run(f"{MODEL}-twin", row, "twin", corpus, dataset, recipe)


def train(folder: str, state: str, runs: list[Run]) -> list[str]:
    """Train some runs on one core; the paths of their traces."""
    torch.set_num_threads(1)
    engine = FleetEngine(Path(folder) / state, 1, 4 * 2**30)
    engine.train(runs, lambda name: lambda *_: None)
    return [str(engine.state(run).trace) for run in runs]


def all_runs(run: Run) -> tuple[list[Run], list[Run]]:
    """The run and its removals, and the same once more."""
    strings = tables.read(run.dataset, KINDS["strings"])
    names = map(without_string, strings.loc[strings["count"] > 0, "string_id"])
    once = [run, *(replace(run, removal=name) for name in names)]
    return once, [replace(each, again=True) for each in once]


def truth(tiny: bool) -> Iterator[Row]:
    size, epochs = (8, 5) if tiny else (64, 50)
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(CORES, get_context("spawn")) as pool,
    ):
        run = run_in(folder, size, epochs, 5)
        halves = all_runs(run)
        list(pool.map(train, *zip(*[(folder, "warm", [run])] * CORES, strict=True)))  # compiled
        begin = time.perf_counter()
        made = list(pool.map(train, [folder] * 2, ["once", "again"], halves))
        seconds = time.perf_counter() - begin
        n_trainings = sum(map(len, halves))
        often = [replace(each, recipe=replace(each.recipe, evaluate_every=1)) for each in halves[0]]
        some = often[1 : 1 + OF_PEER], often[1 + OF_PEER : 1 + 2 * OF_PEER]
        begin = time.perf_counter()
        list(pool.map(train, [folder] * 2, ["peer-0", "peer-1"], some))
        peer = (time.perf_counter() - begin) * n_trainings / sum(map(len, some))
        what = f"truth of {size} strings, {epochs} epochs, twice"
        yield at_most(f"{what}: {n_trainings} trainings", seconds, peer, "s", TRUTH_TARGET)
        yield shown(
            "  core-seconds of a training, if both cores work",
            CORES * seconds / n_trainings,
            CORES * peer / n_trainings,
            "s",
            peer / seconds,
        )
        (whole, *removals), again = ([traces.read(path) for path in of] for of in made)
        strings = tables.read(run.dataset, KINDS["strings"])
        found = truth_tables([whole], [strings], [removals], [again], "after_last_miss")
        n_bytes = 0
        for name, frame in found.items():
            path = Path(folder) / f"{name}.parquet"
            tables.write(path, frame[KINDS[name].names], KINDS[name])
            n_bytes += path.stat().st_size
        every = sum(Path(path).stat().st_size for of in made for path in of)
        yield at_most(
            "  its n x n matrix; peer: all traces",
            n_bytes / 1e6,
            every / 1e6,
            "MB",
            MEGABYTES_TARGET,
        )


def missed(n_studies: int) -> Iterator[Row]:
    """How often the interval of the mean over seeds misses the mean over all seeds."""
    for n_seeds, level, between in WORLDS:
        chance = np.random.default_rng(1)
        truth_of_all = correlations(chance, level, between, 100_000).mean()
        ours = theirs = 0
        for _ in range(n_studies):
            runs = [sample(chance, r) for r in correlations(chance, level, between, n_seeds, True)]
            row = intervals([[Compared(AGAIN, "retraining", AMOUNT, of, of)] for of in runs])
            ours += not row["lower"].iloc[0] <= truth_of_all <= row["upper"].iloc[0]
            own = student([of.statistics()[RANK][0] for of in runs])
            theirs += not own.lower <= truth_of_all <= own.upper
        name = f"missed, correlation {level:g}, between seeds {between:g}, {n_seeds} seeds"
        values = 100 * ours / n_studies, 100 * theirs / n_studies
        yield at_most(name, *values, "%", MISSED_TARGET, values[1] / max(values[0], 0.1))


def correlations(
    chance: np.random.Generator, level: float, between: float, n: int, linear: bool = False
) -> np.ndarray:
    """Correlations float[n] of normal values in n seeds; Spearman's, unless `linear`."""
    found = np.tanh(np.arctanh(level) + between * chance.standard_normal(n))
    return found if linear else 6 / np.pi * np.arcsin(found / 2)


def sample(chance: np.random.Generator, correlation: float) -> Agreement:
    one, noise = chance.standard_normal((2, N_STRINGS))
    return Agreement(one, correlation * one + np.sqrt(1 - correlation**2) * noise)


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    yield from truth(tiny)
    yield from missed(TINY if tiny else N_STUDIES)


if __name__ == "__main__":
    sys.exit(main(rows))
