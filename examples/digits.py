"""Train networks on coloured and on shuffled images of digits, and save their activations.

    python examples/digits.py digits
    snakemake --cores all --configfile digits/digits.yaml -- report

The first command trains multilayer perceptrons of one to four layers on scikit-learn's images of
digits, and writes their activations and a configuration into the folder `digits`. The second
measures the activations and compares the models.

**Coloured** (heuristic memorisation): is the digit below 5? A quarter of the training labels are
wrong, and the colours of these images are random. The colour of another image agrees with its label
in a share alpha of the training images, and is random in the rest. So alpha changes how well the
colour tells the label (0.5 to 0.875; the digit: 0.75), and not how many labels only the image
itself tells.
**Shuffled** (example-level memorisation): which digit is it? A share beta of the training labels
are permuted. All models are evaluated on images that none was trained on, with right labels and
random colours.

Source: the paper on information measures of neurons, appendices B.1, B.5 and C.2; Arjovsky et al.,
Invariant risk minimization (2019), for Colored MNIST.
"""

import argparse
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # each process trains one small network
sys.path.insert(0, str(Path(__file__).parents[1] / "workflow/scripts"))

import numpy as np
import yaml
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from palimpsest.information.norms import norms, path_norm

DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)
COLOURED, SHUFFLED = "coloured", "shuffled"
EPOCHS = {COLOURED: 50, SHUFFLED: 200}  # the paper's
N_TRAIN = 1000  # of 1,797 images; the others are evaluated
WRONG_LABELS = 0.25  # as in Colored MNIST
OTHER_SECTIONS = ("memorisation", "unlearning", "profiles", "density", "records", "audit")


def coloured(images, labels, colour):
    """Images float[n, 128]: the pixels stand in the half of the colour, 0 or 1."""
    found = np.zeros((len(images), 2, images.shape[1]))
    found[np.arange(len(images)), colour] = images
    return found.reshape(len(images), -1)


def data(kind: str, dose: float, seed: int):
    """Training images and labels, then evaluated images and labels."""
    chance = np.random.default_rng(seed)
    images, digits = load_digits(return_X_y=True)
    order = chance.permutation(len(images))
    images, digits = images[order] / 16, digits[order]
    train, test = slice(N_TRAIN), slice(N_TRAIN, None)
    # The same draws for every dose, so that models of a seed differ in the dose alone
    wrong = chance.random(N_TRAIN) < WRONG_LABELS
    first = np.arange(N_TRAIN) < round(dose * N_TRAIN)
    colours = chance.integers(2, size=len(images))
    permuted = digits[train].copy()
    permuted[first] = chance.permutation(permuted[first])
    if kind == SHUFFLED:
        return images[train], permuted, images[test], digits[test]
    labels = (digits >= 5).astype(int)
    given = np.where(wrong, 1 - labels[train], labels[train])
    colours[train] = np.where(first & ~wrong, given, colours[train])
    shown = coloured(images, labels, colours)
    return shown[train], given, shown[test], labels[test]


def train(kind: str, n_layers: int, dose: float, seed: int, width: int, folder: Path):
    """Train a network and save its activations; returns its name and what is known of it."""
    images, labels, unseen, answers = data(kind, dose, seed)
    network = MLPClassifier(
        (width,) * n_layers,
        batch_size=128,
        learning_rate_init=0.003,
        alpha=0.0,
        max_iter=EPOCHS[kind],
        tol=0.0,
        n_iter_no_change=EPOCHS[kind],
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(images, labels)
    name = f"{kind}-{n_layers}-{round(100 * dose)}-{seed}"
    layers, values = {}, unseen
    for place in range(n_layers):
        values = np.maximum(values @ network.coefs_[place] + network.intercepts_[place], 0)
        layers[f"layer{place}"] = values.astype(np.float32)
    np.savez(folder / f"{name}.npz", **layers)
    matrices = [weights.T for weights in network.coefs_]
    two_norm, frobenius = norms(matrices)
    return name, {
        "file": str(folder / f"{name}.npz"),
        "group": f"{kind}-{n_layers}",
        "seed": seed,
        "dose": dose,
        "accuracy": float(network.score(unseen, answers)),
        "scores": {
            "two_norm": two_norm,
            "frobenius": frobenius,
            "path_norm": path_norm(matrices, network.intercepts_),
            "fitted": float(network.score(images, labels)),
        },
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the activations are written")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each dose")
    parser.add_argument("--layers", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--width", type=int, default=48, help="neurons of a layer")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    jobs = list(product((COLOURED, SHUFFLED), given.layers, DOSES, range(given.seeds)))
    with ProcessPoolExecutor(given.processes) as pool:
        others = [[given.width] * len(jobs), [given.folder.resolve()] * len(jobs)]
        models = dict(pool.map(train, *zip(*jobs, strict=True), *others))
    config = {
        "information": {"models": [], "pairs": 100, "activations": models},
        **dict.fromkeys(OTHER_SECTIONS),
    }
    file = given.folder / "digits.yaml"
    file.write_text(yaml.safe_dump(config, sort_keys=False))
    print(f"{len(models)} models; now: snakemake --cores all --configfile {file} -- report")


if __name__ == "__main__":
    main()
