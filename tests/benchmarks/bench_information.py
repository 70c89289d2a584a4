"""The information measures: mutual information of all pairs of neurons, and entropies.

Run as a script: `python tests/benchmarks/bench_information.py`. Two cores for one row, otherwise
one.

Times per pair are seconds of the process, because they do not depend on what else runs. Each neuron
is related to the next one. The peer is scikit-learn's `mutual_info_regression` with three
neighbours, on some of the same pairs; it has the same estimator. Of entropies the peer is
`numpy.histogram`, neuron by neuron. In the row of errors, the peer is scikit-learn against the same
brute force. Encoders have none.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.stats import entropy
from sklearn.feature_selection import mutual_info_regression

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

from rows import Row, at_least, at_most, main  # noqa: E402

from helpers.plain_information import brute_force  # noqa: E402
from palimpsest.information import (  # noqa: E402
    Pairs,
    mutual_information,
    mutual_information_of_pairs,
    neuron_entropy,
)
from palimpsest.information.kinds import LABELLED  # noqa: E402

K, BINS = 3, 100
TIMES = 3  # the fastest counts
PAIRS_OF_PEER, PAIRS_BY_BRUTE_FORCE = 20, 10
MILLISECONDS = {"continuous": 0.75, "half zeros": 1.2}


def neurons(n_samples: int, n_neurons: int) -> dict[str, np.ndarray]:
    """Activations float64[samples, neurons], continuous and after a ReLU."""
    smooth = np.random.default_rng(0).normal(size=(n_samples, n_neurons))
    smooth[:, 1:] += 0.5 * smooth[:, :-1]
    return {"continuous": smooth, "half zeros": np.maximum(smooth, 0)}


def fastest(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """Seconds of the fastest of some calls."""
    found = []
    for _ in range(TIMES):
        begin = clock()
        call()
        found.append(clock() - begin)
    return min(found)


def of_peer(activations: np.ndarray, first: int, second: int) -> float:
    """Scikit-learn's estimate of one pair."""
    return mutual_info_regression(
        activations[:, [first]], activations[:, second], n_neighbors=K, random_state=0
    )[0]


def pairs_per_second(n_samples: int, n_neurons: int) -> Iterator[Row]:
    """All pairs on one core, on two, and the largest error of some."""
    n_pairs = n_neurons * (n_neurons - 1) // 2
    shape = f"{n_neurons} neurons x {n_samples:,}"
    for name, activations in neurons(n_samples, n_neurons).items():
        mutual_information(activations[:, :3], K)  # compiled
        ours = fastest(
            lambda own=activations: mutual_information(own, K, threads=1), time.process_time
        )
        some = np.linspace(0, n_neurons - 2, PAIRS_OF_PEER).astype(int)
        begin = time.process_time()
        for first in some:
            of_peer(activations, first, first + 1)
        peer = (time.process_time() - begin) / len(some)
        yield at_most(
            f"mutual information, {shape}, {name}, per pair",
            1e3 * ours / n_pairs,
            1e3 * peer,
            "ms",
            MILLISECONDS[name],
        )
    activations = neurons(n_samples, n_neurons)["continuous"]
    alone, both = (
        fastest(lambda n=n: mutual_information(activations, K, threads=n), time.perf_counter)
        for n in (1, 2)
    )
    yield at_least("  two threads, times as fast as one", alone / both, 2.0, "", 1.8)
    first = np.linspace(0, n_neurons - 2, PAIRS_BY_BRUTE_FORCE).astype(int)
    found = mutual_information_of_pairs(activations, Pairs(first, first + 1), K)
    exact = np.array([brute_force(activations[:, i], activations[:, i + 1], K) for i in first])
    theirs = np.array([of_peer(activations, i, i + 1) for i in first])
    errors = [np.abs(values - exact).max() for values in (found, theirs)]
    yield at_most("  largest error against brute force, continuous", *errors, "nats", 1e-12)


def entropies(n_samples: int, n_neurons: int) -> Row:
    """Entropies of many neurons, in float32."""
    activations = np.random.default_rng(1).normal(size=(n_samples, n_neurons)).astype(np.float32)
    neuron_entropy(activations[:, :3], BINS)  # compiled
    ours = fastest(lambda: neuron_entropy(activations, BINS), time.process_time)
    begin = time.process_time()
    for own in activations.T:
        entropy(np.histogram(own, BINS)[0])
    peer = time.process_time() - begin
    work = f"entropy, {n_neurons:,} neurons x {n_samples:,}, {BINS} bins"
    return at_most(work, ours, peer, "s", 0.1)


def encoders(n_seeds: int) -> Row:
    """All runs of the study of tiny encoders that the tests have, fine-tuned and evaluated."""
    import torch

    from helpers import tiny_encoders
    from helpers.encoder_runs import SIZE, TESTS, finetune_all
    from palimpsest.information.encoders.study import variants

    torch.set_num_threads(1)
    block = {"alphas": [0, 0.5, 1], "betas": [0, 1]}
    table = tiny_encoders.records(SIZE + TESTS)
    ids = [f"{place:012x}" for place in range(len(table))]
    records = table.assign(word=table["label"].map(tiny_encoders.WORDS), string_id=ids)
    names = variants(block)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        finetune_all(Path(folder), records[LABELLED.names], names, range(n_seeds))
        ours = time.process_time() - begin
    return at_most(f"{n_seeds * len(names)} tiny encoders", ours, np.nan, "s", 60)


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    yield from pairs_per_second(*((60, 4) if tiny else (2500, 128)))
    yield entropies(*((60, 4) if tiny else (2500, 10_000)))
    yield encoders(1 if tiny else 2)


if __name__ == "__main__":
    sys.exit(main(rows))
