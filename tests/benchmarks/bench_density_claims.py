"""How often two statistics of the claims on density find what is not there.

Run as a script: `python tests/benchmarks/bench_density_claims.py`. One core, about two minutes.

Values are the percent of studies of five seeds whose 95 % interval excludes 0, although the
statistic should be 0. In a row's name stands the exact binomial 95 % interval of our value; the
target is that its lower end is at most 5 %, so a rate of up to 7.7 % of 300 studies reaches it.

First rows: are densely supported strings memorised earlier? Support helps trained and unseen
strings alike, frequent strings are both supported and easy, and unseen strings start later, so that
more of them never start. Epochs are those of 11 or of 4 measurements. The peer is the same
difference without counting late starts as never, and without the rule on weaker associations. In
the rows "trained vary more", the starts of trained strings have noise of their own, with this
standard deviation; in the rows "unseen vary more", those of unseen strings have. The latter have no
target: they show what the statistic cannot tell from memorisation.

Rows of queries: 300 queries from the corpus and 300 others, whose perplexity follows the density
alike; documents of 15 queries have levels of their own. The peer is Fisher's interval of the
difference of the correlations, as if all queries were independent.

Rows of bins: how often the interval of a bin of perplexities misses their mean. Documents have a
level of their own and are equally large or not, and perplexities are skewed. The peer is Student's
interval over the queries.

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
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

from rows import Row, main, shown  # noqa: E402
from rows import false_positives as of_false_positives  # noqa: E402

from helpers import density_worlds  # noqa: E402
from palimpsest.density.associations import (  # noqa: E402
    beyond_rank,
    spearman,
    spearman_given,
)
from palimpsest.density.bins import binned  # noqa: E402
from palimpsest.density.claims.in_distribution import more_clearly  # noqa: E402
from palimpsest.density.earlier import FEWEST_STARTS, compared  # noqa: E402
from palimpsest.density.kinds import TRAINED, UNSEEN  # noqa: E402
from palimpsest.density.memorised import cut_late  # noqa: E402
from palimpsest.statistics import rank_association, student  # noqa: E402

SEEDS, STUDIES, LEVEL = 5, 300, 5.0
N_TRAINED, N_UNSEEN = 31, 160  # strings of a seed
OF_BINS = 1000
BETWEEN, WITHIN = 0.5, 0.5  # deviations of log perplexities, of documents and of their queries
NOISE: dict[str, Callable] = {
    "normal": lambda chance, n: chance.normal(size=n),
    "skewed": lambda chance, n: 1.5 * chance.exponential(size=n) - 1,
    "heavy tails": lambda chance, n: 0.7 * chance.standard_t(2, size=n),
}


def started(chance, n: int, later: float, noise: str, n_epochs: int, more: float) -> tuple:
    """The starts of n strings on a grid of epochs, and their support at equal probability."""
    log_prob = chance.normal(size=n)
    support = chance.normal(size=n) + log_prob
    spread = NOISE[noise](chance, n) + more * chance.normal(size=n)
    latent = later - 0.5 - 0.5 * support - 0.3 * log_prob + spread
    grid = np.append(np.linspace(-2, 0, n_epochs), np.inf)
    return pd.Series(grid[np.searchsorted(grid[:-1], latent)]), beyond_rank(support, log_prob)


def of_starts(
    chance, later: float, noise: str, n_epochs: int, of_trained=0.0, of_unseen=0.0
) -> dict[str, tuple[float, float]]:
    """The associations of one seed, trained and unseen: ours, and as they are."""
    trained, dense = started(chance, N_TRAINED, 0, noise, n_epochs, of_trained)
    unseen, other = started(chance, N_UNSEEN, later, noise, n_epochs, of_unseen)
    never = [np.isinf(start).mean() for start in (trained, unseen)]
    cut = cut_late(trained, never[1]), cut_late(unseen, never[0])
    is_known = min(np.isfinite(start).sum() for start in cut) >= FEWEST_STARTS
    ours = rank_association(cut[0], dense), rank_association(cut[1], other)
    plain = rank_association(trained, dense), rank_association(unseen, other)
    return {"ours": ours if is_known else (np.nan, np.nan), "peer": plain}


def of_curves(chance, steepness: float, noise: float, n: int) -> tuple[float, float]:
    """The partial rank correlation of one seed, with curves and with straight lines."""
    # A fifth is near copies, and far from the others.
    distance = chance.normal(size=n) - 3 * (chance.random(n) < 0.2)
    density = noise * chance.normal(size=n) - np.exp(distance)
    loss = noise * chance.normal(size=n) + np.tanh(steepness * distance)
    xy, xz, yz = spearman(density, loss), spearman(density, distance), spearman(loss, distance)
    straight = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
    return spearman_given(density, loss, distance), straight


def found_in(seeds: list) -> tuple[bool, bool]:
    """Whether the intervals of a study exclude 0, ours and the peer's."""
    if isinstance(seeds[0], dict):
        ours, plain = (pd.DataFrame([seed[name] for seed in seeds]) for name in ("ours", "peer"))
        intervals = compared({TRAINED: ours[0], UNSEEN: ours[1]}), student(plain[0] - plain[1])
    else:
        intervals = (student(own.dropna()) for _, own in pd.DataFrame(seeds).items())
    return tuple(lower > 0 or upper < 0 for _, lower, upper in intervals)


def counted(n_studies: int, seed: Callable, *world) -> np.ndarray:
    """In how many studies something is found, ours and the peer's; `seed` draws one seed."""
    chance = np.random.default_rng(0)
    studies = ([seed(chance, *world) for _ in range(SEEDS)] for _ in range(n_studies))
    return np.sum([found_in(study) for study in studies], axis=0)


def false_positives(name: str, n_studies: int, seed: Callable, *world) -> Row:
    """The row of a world."""
    ours, peer = counted(n_studies, seed, *world)
    return of_false_positives(name, ours, n_studies, 100 * peer / n_studies, LEVEL)


def of_queries(n_studies: int, of_document: float) -> Row:
    """Queries from the corpus against others, where there is no difference."""
    found = np.zeros(2)
    for study in range(n_studies):
        about = {"dense": 0.2, "of_document": of_document}
        own = density_worlds.text(2 * study, query_set="own", **about).assign(nearest=0.0)
        others = density_worlds.text(2 * study + 1, query_set="others", **about)
        ours = more_clearly(pd.concat([own, others]))
        fisher = [
            np.arctanh(spearman_given(t["log_local"], t["perplexity"], t["n_characters"]))
            for t in (own, others)
        ]
        peer = abs(fisher[0] - fisher[1]) > 1.96 * np.sqrt(2 / (len(own) - 3))
        found += [ours.lower > 0 or ours.upper < 0, peer]
    name = f"queries from the corpus, levels of documents {of_document:g}"
    return of_false_positives(name, found[0], n_studies, 100 * found[1] / n_studies, LEVEL)


def of_bins(n_studies: int, n_documents: int, unequal: bool) -> Row:
    """Bins missed; the truth is the mean over all documents."""
    chance, found = np.random.default_rng(5), np.zeros(2)
    truth = np.exp((BETWEEN**2 + WITHIN**2) / 2)
    for _ in range(n_studies):
        sizes = chance.lognormal(1.2, 0.9, n_documents) if unequal else np.full(n_documents, 5)
        document = np.repeat(np.arange(n_documents), np.maximum(1, sizes.astype(int)))
        level = BETWEEN * chance.standard_normal(n_documents)[document]
        y = np.exp(level + WITHIN * chance.standard_normal(len(document)))
        table = pd.DataFrame({"string_id": np.arange(len(y)), "document": document, "y": y})
        (bin,) = binned(table.assign(length=9, x=y), "perplexity", 1).itertuples()
        of_queries = student(y)
        ends = (bin.lower, bin.upper), (of_queries.lower, of_queries.upper)
        found += [not low <= truth <= high for low, high in ends]
    ours, peer = 100 * found / n_studies
    name = f"a bin, {n_documents} documents, {'unequal' if unequal else 'equal'} sizes"
    return shown(name, ours, peer, "% missed", peer / max(ours, 0.5))


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    n = 2 if tiny else STUDIES
    for noise in NOISE:
        for n_epochs in (11, 4):
            for later in (1.0, 2.0, 3.0):
                name = f"starts, {noise}, {n_epochs} epochs, {later:g} later"
                yield false_positives(name, n, of_starts, later, noise, n_epochs)
    for noise in NOISE:
        for more in (1.0, 2.0):
            for later in (0.0, 1.0):
                name = f"starts, {noise}, {later:g} later, trained vary more: {more:g}"
                yield false_positives(name, n, of_starts, later, noise, 11, more)
                name = f"starts, {noise}, {later:g} later, unseen vary more: {more:g}"
                ours, peer = 100 * counted(n, of_starts, later, noise, 11, 0.0, more) / n
                yield shown(name, ours, peer, "%", peer / max(ours, 0.5))
    for of_document in (0.0, 1.0):
        yield of_queries(n, of_document)
    for n_documents in (20, 100):
        for unequal in (False, True):
            yield of_bins(n if tiny else OF_BINS, n_documents, unequal)
    for steepness, noise, size in ((1, 1, 312), (3, 0.3, 312), (6, 0.05, 312), (3, 0.3, 48)):
        name = f"curves, steepness {steepness}, noise {noise:g}, {size} strings"
        yield false_positives(name, n, of_curves, steepness, noise, size)


if __name__ == "__main__":
    sys.exit(main(rows))
