"""How often the 95 % intervals of answers about records miss the truth, in simulated studies.

Run as a script: `python tests/benchmarks/bench_record_intervals.py`. A study has equally many
groups of records that were trained on and that were not; records of a group are all alike. In the
first rows, a constant threshold calls a share of both sides memorised, and the truth is the
difference of the two probabilities; the peer is Wald's interval. In the next rows, the truth is the
probability that a trained record is below a quantile of the distribution of the others: the share
`detected`, whose peer is the percentile bootstrap over the groups of both sides, and the difference
of a loss attack, whose peer takes the threshold as given (Newcombe). Rows of ten groups have no
target: the difference of shares misses it, and the other intervals are far too wide.
"""

import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from rows import Row, at_most, main, shown  # noqa: E402

from palimpsest.records import Losses, answers  # noqa: E402
from palimpsest.records.intervals import newcombe, share_below_quantile  # noqa: E402
from palimpsest.statistics import CONFIDENCE  # noqa: E402

N_STUDIES, N_OF_PEER, TINY = 4000, 1000, 20
N_FROM_TABLES = 20  # studies that are also answered as the workflow answers them
N_DRAWS = 400  # of a bootstrap
N_GROUPS = (10, 40, 200)
TARGET = 6.0  # percent
SHARES = ((0.5, 0.5), (0.9, 0.3), (0.1, 0.02))
ENDS = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2

Draw = Callable[[np.random.Generator, int], np.ndarray]
Ends = tuple[float, float]


class World(NamedTuple):
    """Losses of trained records, and how many of them are below a loss; others are normal."""

    name: str
    trained: Draw
    below: Callable[[float], float]


def memorised(share: float) -> World:
    """So many trained records have a far lower loss, and the others have learned nothing."""

    def trained(chance: np.random.Generator, n: int) -> np.ndarray:
        return chance.standard_normal(n) - 6 * (chance.random(n) < share)

    def below(loss: float) -> float:
        return share * stats.norm.cdf(loss + 6) + (1 - share) * stats.norm.cdf(loss)

    return World(f"{share:.0%} memorised", trained, below)


def lower(shift: float) -> World:
    """All trained records have a lower loss, by so many standard deviations."""
    return World(
        f"lower by {shift:g} sd",
        lambda chance, n: chance.standard_normal(n) - shift,
        lambda loss: stats.norm.cdf(loss + shift),
    )


WORLDS = [lower(0), lower(1), lower(3), memorised(0.3), memorised(0.9)]


def losses(trained: np.ndarray, others: np.ndarray, groups: np.ndarray) -> Losses:
    """As the workflow has them; 10 is added, because a loss is not negative."""
    loss = np.concatenate([trained, others])[None] + 10
    is_trained = np.arange(loss.size) < len(trained)
    names = np.concatenate([groups, groups + groups.max() + 1]).astype(str)
    return Losses(
        np.arange(loss.size).astype(str), np.zeros(1), loss, None, None, is_trained, names
    )


def wald(share: float, other: float, n: int) -> Ends:
    reach = 1.96 * math.sqrt((share * (1 - share) + other * (1 - other)) / n)
    return share - other - reach, share - other + reach


def bootstrap(
    chance: np.random.Generator, trained: np.ndarray, others: np.ndarray, together: int, rank: int
) -> Ends:
    """Percentiles of the share below the quantile; the values are one for each group."""
    of_side = [
        side[chance.integers(0, len(side), (N_DRAWS, len(side)))] for side in (trained, others)
    ]
    limit = np.sort(of_side[1].repeat(together, axis=1))[:, rank - 1 : rank]
    low, high = np.quantile((of_side[0] < limit).mean(axis=1), ENDS)
    return low, high


def missed(ends: list[Ends], truth: float) -> float:
    """Percent of the intervals that do not hold the truth."""
    return 100 * float(np.mean([not low - 1e-12 <= truth <= high + 1e-12 for low, high in ends]))


def row(name: str, ours: float, peer: float, n_groups: int) -> Row:
    ratio = peer / max(ours, 0.1)
    if n_groups < 40:
        return shown(name, ours, peer, "%", ratio)
    return at_most(name, ours, peer, "%", TARGET, ratio)


def differences(n_studies: int) -> Iterator[Row]:
    """Of shares that a constant threshold calls memorised."""
    chance = np.random.default_rng(0)
    for n in N_GROUPS:
        for both in SHARES:
            found = chance.binomial(n, both, (n_studies, 2)) / n
            ours = missed([newcombe(*each, n, n) for each in found], both[0] - both[1])
            peer = missed([wald(*each, n) for each in found], both[0] - both[1])
            yield row(f"shares {both[0]:g}, {both[1]:g}; {n} groups", ours, peer, n)


def quantiles(n_studies: int) -> Iterator[Row]:
    """Of shares below a quantile of the placebo, by `detected` and by the loss attack."""
    chance = np.random.default_rng(1)
    for n in N_GROUPS:
        for together in (1, 4):
            # Ten records alone have no quantile of 5 %.
            false_alarms = 0.1 if n * together < 19 else 0.05
            for world in WORLDS:
                yield from of_world(chance, world, n, together, false_alarms, n_studies)


def of_world(
    chance: np.random.Generator,
    world: World,
    n: int,
    together: int,
    false_alarms: float,
    n_studies: int,
) -> Iterator[Row]:
    n_records = n * together
    rank = math.floor(false_alarms * (n_records + 1))
    level = rank / (n_records + 1)
    truth = world.below(stats.norm.ppf(level))
    groups = np.arange(n).repeat(together)
    ours, of_bootstrap, as_given = [], [], []
    for study in range(n_studies):
        trained, others = world.trained(chance, n), chance.standard_normal(n)
        values = trained.repeat(together), others.repeat(together)
        share, *ends = share_below_quantile(*values, rank, n, n)
        ours.append(tuple(ends))
        as_given.append(newcombe(share, level, n, n))
        if study < N_OF_PEER:
            of_bootstrap.append(bootstrap(chance, trained, others, together, rank))
        if study < N_FROM_TABLES:
            check_answers(losses(*values, groups), false_alarms, share, ends)
    words = f"{world.name}; {n} groups of {together}"
    yield row(f"detected, {words}", missed(ours, truth), missed(of_bootstrap, truth), n)
    of_attack = [(low - level, high - level) for low, high in ours]
    difference = truth - level
    yield row(
        f"loss attack, {words}", missed(of_attack, difference), missed(as_given, difference), n
    )


def check_answers(given: Losses, false_alarms: float, share: float, ends: list[float]) -> None:
    """The workflow's answers have these intervals."""
    table = answers(given, loss_threshold=None, false_alarms=false_alarms).placebo
    found = table.set_index("measure").loc["loss attack"]
    of_detected = found[["detected", "detected_lower", "detected_upper"]].astype(float)
    np.testing.assert_allclose(of_detected, [share, *ends])
    of_difference = found[["lower", "upper"]].astype(float)
    np.testing.assert_allclose(of_difference, np.array(ends) - found["share_unseen"])


def rows(tiny: bool) -> Iterator[Row]:
    n_studies = TINY if tiny else N_STUDIES
    yield from differences(n_studies)
    yield from quantiles(n_studies)


if __name__ == "__main__":
    sys.exit(main(rows))
