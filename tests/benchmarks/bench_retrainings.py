"""How the agreement with another retraining grows with the number of retrainings of a cell.

Run as a script: `python tests/benchmarks/bench_retrainings.py`. One twin (OPT 1.3B) on the same 64
strings of L2, 50 epochs, is trained without each distinct string five times, each time with other
initial weights and another order. Our value is the rank correlation of the mean effect in k of
these retrainings with the effect in another one, over all choices of them: of a removal on the
string itself, over strings; and on other strings, over the removed strings, the mean over strings.
The peer is what the correlation of two retrainings makes expect, if their errors are independent
(Spearman and Brown's formula). In the names stand 95 % intervals (jackknife over strings) and the
placebo: the same where the other retraining has the names of other strings.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from rows import Row, main, shown  # noqa: E402
from scipy.stats import rankdata  # noqa: E402

from palimpsest import tables, traces  # noqa: E402
from palimpsest.corpora import GrammarCorpus  # noqa: E402
from palimpsest.datasets.build import build  # noqa: E402
from palimpsest.datasets.sampling import Sampler  # noqa: E402
from palimpsest.models import read_models  # noqa: E402
from palimpsest.regimes import without_string  # noqa: E402
from palimpsest.sections import KINDS  # noqa: E402
from palimpsest.training.fleet import FleetEngine  # noqa: E402
from palimpsest.training.recipe import Recipe  # noqa: E402
from palimpsest.training.runs import Run  # noqa: E402

MODEL, LANGUAGE = "opt-1.3b", ROOT / "config/languages/L2.pcfg"
RETRAININGS, SIZE, EPOCHS = 5, 64, 50
TINY = 3, 8, 2
DEVIATIONS = 1.96

Correlation = Callable[[np.ndarray, np.ndarray], float]


def effects(n: int, size: int, epochs: int) -> np.ndarray:
    """float[retrainings, removed, strings]: what a removal adds to the loss, nats per token."""
    torch.set_num_threads(1)
    row = read_models(ROOT / "config/models.tsv")[MODEL]
    corpus = GrammarCorpus.from_file(LANGUAGE)
    strings = build(Sampler(LANGUAGE.stem, corpus, 0), "base", size, 16, predict_end=False)
    ids = strings.loc[strings["count"] > 0, "string_id"].to_list()
    recipe = Recipe(
        row.twin_learning_rate, epochs=epochs, evaluate_every=epochs, checkpoint_every=0
    )
    found = []
    with tempfile.TemporaryDirectory() as folder:
        engine = FleetEngine(Path(folder) / "state", 1, 4 * 2**30)
        for number in range(n):
            # The seed of a dataset decides the initial weights and the order, and the strings stay.
            dataset = f"{folder}/{number}.parquet"
            tables.write(dataset, strings.assign(seed=1000 + number), KINDS["strings"])
            whole = Run(f"{MODEL}-twin", row, "twin", corpus, dataset, recipe)
            runs = [whole] + [
                Run(
                    f"{MODEL}-twin",
                    row,
                    "twin",
                    corpus,
                    dataset,
                    recipe,
                    removal=without_string(of),
                )
                for of in ids
            ]
            engine.train(runs, lambda name: lambda *_: None)
            made = [traces.read(engine.state(run).trace) for run in runs]
            losses = np.stack([trace.loss[-1, trace.column_of(ids)] for trace in made])
            found.append(losses[1:] - losses[0])
    return np.stack(found)


def of_itself(one: np.ndarray, other: np.ndarray) -> float:
    """The rank correlation of two matrices [removed, strings] over the strings' own effects."""
    return _correlations(np.diag(one)[:, None], np.diag(other)[:, None])[0]


def of_others(one: np.ndarray, other: np.ndarray) -> float:
    """The mean over strings of the rank correlation over the other removed strings."""
    apart = ~np.eye(len(one), dtype=bool)
    sides = (of.T[apart].reshape(len(of), -1).T for of in (one, other))
    return float(np.mean(_correlations(*sides)))


def _correlations(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Spearman's, of each column."""
    sides = [rankdata(of, axis=0) - (len(of) + 1) / 2 for of in (one, other)]
    norms = [np.sqrt((of**2).sum(axis=0)) for of in sides]
    return (sides[0] * sides[1]).sum(axis=0) / (norms[0] * norms[1])


def agreement(of_all: np.ndarray, k: int, correlation: Correlation, shift: int = 0) -> float:
    """The mean over all k retrainings and another one; `shift` renames the strings of this one."""
    found = [
        correlation(of_all[list(chosen)].mean(axis=0), np.roll(of_all[other], shift, axis=(0, 1)))
        for chosen in combinations(range(len(of_all)), k)
        for other in range(len(of_all))
        if other not in chosen
    ]
    return float(np.mean(found))


def jackknife(of_all: np.ndarray, statistic: Callable[[np.ndarray], float]) -> float:
    """The standard error of a statistic over strings, each left out once."""
    n = of_all.shape[1]
    others = (np.delete(np.arange(n), place) for place in range(n))
    found = [statistic(of_all[:, of][:, :, of]) for of in others]
    return float(np.sqrt(n - 1) * np.std(found))


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    of_all = effects(*(TINY if tiny else (RETRAININGS, SIZE, EPOCHS)))
    for name, correlation in (("itself", of_itself), ("other strings", of_others)):
        pairs = agreement(of_all, 1, correlation)
        for k in range(1, len(of_all)):
            of_k = partial(agreement, k=k, correlation=correlation)
            value, placebo = of_k(of_all), of_k(of_all, shift=1)
            apart = DEVIATIONS * jackknife(of_all, of_k)
            expected = pairs * np.sqrt(k / (1 + (k - 1) * pairs))
            ends = f"{value - apart:.2f} to {value + apart:.2f}"
            what = f"{name}, mean of {k}: {ends}; placebo {placebo:.2f}"
            yield shown(what, value, expected, "rank", value / expected)


if __name__ == "__main__":
    sys.exit(main(rows))
