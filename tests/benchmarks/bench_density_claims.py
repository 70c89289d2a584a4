"""How often two statistics of the claims on density find what is not there.

Run as a script: `python tests/benchmarks/bench_density_claims.py`. One core, about one minute.

Values are the percent of studies of five seeds whose 95 % interval excludes 0, although the
statistic should be 0. In a row's name stands the exact binomial 95 % interval of our value; the
target is that its lower end is at most 5 %.

First rows: are densely supported strings memorised earlier? Support helps trained and unseen
strings alike, and unseen strings start later, so that more of them never start. Epochs are those of
11 or of 4 measurements. The peer is the same difference without counting late starts as never.

Last rows: density and loss at equal distance. Both follow the distance along curves, and nothing
else connects them. The peer is the partial rank correlation with straight lines.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts")]

from rows import Row, main  # noqa: E402
from rows import false_positives as of_false_positives  # noqa: E402

from palimpsest.density.associations import spearman, spearman_given  # noqa: E402
from palimpsest.density.memorised import cut_late  # noqa: E402
from palimpsest.statistics import rank_association, student  # noqa: E402

SEEDS, STUDIES, LEVEL = 5, 300, 5.0
TRAINED, UNSEEN = 31, 60  # strings of a seed
NOISE: dict[str, Callable] = {
    "normal": lambda chance, n: chance.normal(size=n),
    "skewed": lambda chance, n: 1.5 * chance.exponential(size=n) - 1,
    "heavy tails": lambda chance, n: 0.7 * chance.standard_t(2, size=n),
}


def started(chance, n: int, later: float, noise: str, n_epochs: int) -> tuple:
    """The starts of n strings, on a grid of epochs, and their support."""
    support = chance.normal(size=n)
    latent = later - 0.5 - 0.7 * support + NOISE[noise](chance, n)
    grid = np.append(np.linspace(-2, 0, n_epochs), np.inf)
    return pd.Series(grid[np.searchsorted(grid[:-1], latent)]), support


def of_starts(chance, later: float, noise: str, n_epochs: int) -> tuple[float, float]:
    """The difference of one seed, at equal shares of never and as it is."""
    trained, dense = started(chance, TRAINED, 0, noise, n_epochs)
    unseen, other = started(chance, UNSEEN, later, noise, n_epochs)
    never = [np.isinf(start).mean() for start in (trained, unseen)]
    cut = cut_late(trained, never[1]), cut_late(unseen, never[0])
    return tuple(
        rank_association(first, dense) - rank_association(second, other)
        for first, second in (cut, (trained, unseen))
    )


def of_curves(chance, steepness: float, noise: float, n: int) -> tuple[float, float]:
    """The partial rank correlation of one seed, with curves and with straight lines."""
    # A fifth is near copies, and far from the others.
    distance = chance.normal(size=n) - 3 * (chance.random(n) < 0.2)
    density = noise * chance.normal(size=n) - np.exp(distance)
    loss = noise * chance.normal(size=n) + np.tanh(steepness * distance)
    xy, xz, yz = spearman(density, loss), spearman(density, distance), spearman(loss, distance)
    straight = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
    return spearman_given(density, loss, distance), straight


def false_positives(name: str, n_studies: int, seed: Callable, *world) -> Row:
    """The row of a world; `seed` draws the values of one seed, ours and the peer's."""
    chance = np.random.default_rng(0)
    found = np.zeros(2, dtype=int)
    for _ in range(n_studies):
        values = pd.DataFrame([seed(chance, *world) for _ in range(SEEDS)])
        for which, own in values.items():
            _, lower, upper = student(own.dropna())
            found[which] += lower > 0 or upper < 0
    return of_false_positives(name, found[0], n_studies, 100 * found[1] / n_studies, LEVEL)


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    n = 2 if tiny else STUDIES
    for noise in NOISE:
        for n_epochs in (11, 4):
            for later in (1.0, 2.0, 3.0):
                name = f"starts, {noise}, {n_epochs} epochs, {later:g} later"
                yield false_positives(name, n, of_starts, later, noise, n_epochs)
    for steepness, noise, size in ((1, 1, 312), (3, 0.3, 312), (6, 0.05, 312), (3, 0.3, 48)):
        name = f"curves, steepness {steepness}, noise {noise:g}, {size} strings"
        yield false_positives(name, n, of_curves, steepness, noise, size)


if __name__ == "__main__":
    sys.exit(main(rows))
