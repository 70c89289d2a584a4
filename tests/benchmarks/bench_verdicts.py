"""Error rates and power of the verdicts, in simulated studies with a known truth.

Run as a script: `python tests/benchmarks/bench_verdicts.py`. Every study has one model, and three
or five seeds. In the first rows, the true value of a statistic lies exactly on the bound of its
claim, so both verdicts are wrong. The peer of these rows is the same interval without the rule for
seeds that are all alike: an interval without width is then one like any other. In the last rows,
the claim holds by effects of the sizes that the default experiment has, in standard deviations
between seeds. Their peer is the power that the noncentral t distribution predicts.
"""

import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from rows import Row, at_most, main, shown  # noqa: E402

from palimpsest import claims  # noqa: E402
from palimpsest.estimates import SEEDS as OVER_SEEDS  # noqa: E402
from palimpsest.estimates import Estimate  # noqa: E402
from palimpsest.memorisation.claims.claim_statistics import over_units  # noqa: E402
from palimpsest.statistics import (  # noqa: E402
    DECIMALS,
    order_p_value,
    rank_association,
    student,
)

N_STUDIES, TINY = 1000, 10
N_FROM_TABLES = 50
TARGET = 6.0  # percent of the studies with one of the wrong verdicts
SEEDS = (3, 5)
# Distances of a mean from the nearest bound: quartiles over the 40 claims that held in the default
# experiment. They are rough, because the spreads of five seeds are rough.
EFFECTS = {"lower quartile": 1.8, "median": 2.9, "upper quartile": 4.8}

Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def normal(chance: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Mean 0 and standard deviation 1."""
    return chance.standard_normal(shape)


def uniform(chance: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Between 0 and 1."""
    return chance.random(shape)


def share(chance: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Share of 64 strings, each with a probability of 0.9."""
    return chance.binomial(64, 0.9, shape) / 64


def association(chance: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Rank association of the frequency of three targets with a random order of their starts."""
    starts = chance.random((*shape, 3))
    return np.apply_along_axis(lambda each: rank_association([3, 2, 1], -each), -1, starts)


def uneven_share(chance: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """The same, with probabilities that differ between seeds: two strings have correlation 0.1."""
    return chance.binomial(64, chance.beta(8.1, 0.9, shape)) / 64


def floor_or_ceiling(chance: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """All strings of a seed or none, with equal probability: the most that seeds can differ."""
    return chance.integers(0, 2, shape).astype(float)


def mildly_skewed(chance: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Gamma distribution with mean 4 and skewness 1."""
    return chance.gamma(4, size=shape)


def skewed(chance: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Exponential distribution with mean 1 and skewness 2."""
    return chance.exponential(size=shape)


# Name, values of a statistic, its true mean and its limits. Student's interval is known to fail for
# few values of a very skewed distribution.
ON_THE_BOUND = [
    ("normal", normal, 0.0, claims.ANY_NUMBER),
    ("uniform in [0, 1]", uniform, 0.5, claims.SHARE),
    ("share of 64 strings", share, 0.9, claims.SHARE),
    ("share of 64 strings, seeds differ", uneven_share, 0.9, claims.SHARE),
    ("floor or ceiling", floor_or_ceiling, 0.5, claims.SHARE),
    ("D of 3 random targets", association, 0.0, claims.DIFFERENCE),
    ("skewness 1", mildly_skewed, 4.0, claims.NOT_NEGATIVE),
    ("skewness 2", skewed, 1.0, claims.NOT_NEGATIVE),
]


def claim_on(bound: float, limits: tuple[float, float] = claims.ANY_NUMBER) -> claims.Claim:
    """The claim that a statistic is at least a bound; the statistic is in the table."""

    @claims.statistic("values", "", limits=limits, evidence=(), estimator=over_units)
    def value(table):
        return table.set_index(["model", "seed"])["value"]

    return claims.Claim("", "", value, claims.at_least(bound))


def verdicts(values: np.ndarray, claim: claims.Claim) -> np.ndarray:
    """The verdict of every study; values are float[studies, seeds].

    The first studies are also judged as the workflow judges them, from a table.
    """
    estimates = [Estimate(tuple(each), *student(each, DECIMALS), OVER_SEEDS) for each in values]
    found = np.array([claims.judge(each, claim)["verdict"] for each in estimates])
    study, seed = np.indices(values[:N_FROM_TABLES].shape)
    table = pd.DataFrame({"language": study.ravel(), "model": "m", "seed": seed.ravel()})
    table["value"] = values[:N_FROM_TABLES].ravel()
    from_table = claims.judge_all([claim], {"values": table})["verdict"]
    np.testing.assert_array_equal(found[:N_FROM_TABLES], from_table)
    return found


def without_the_rule(values: np.ndarray, claim: claims.Claim) -> np.ndarray:
    """The verdicts if an interval without width were an interval like any other."""
    ends = [student(each, DECIMALS)[1:] for each in values]
    return np.array([claims.verdict_on(each, claim.region) for each in ends])


def on_the_bound(n_studies: int) -> Iterator[Row]:
    """How often a verdict is wrong."""
    chance = np.random.default_rng(0)
    for name, noise, bound, limits in ON_THE_BOUND:
        claim = claim_on(bound, limits)
        for n_seeds in SEEDS:
            values = noise(chance, (n_studies, n_seeds))
            found, peer = verdicts(values, claim), without_the_rule(values, claim)
            for verdict in (claims.AGREES, claims.DISAGREES):
                ours, other = (100 * np.mean(of == verdict) for of in (found, peer))
                work = f"wrong '{verdict}', {name}, {n_seeds} seeds"
                ratio = other / ours if ours else math.inf
                yield at_most(work, ours, other, "%", TARGET, ratio)


def random_orders(n_studies: int) -> Iterator[Row]:
    """How often random orders of targets have a verdict, with the exact test of orders."""
    chance, claim = np.random.default_rng(2), claim_on(0.0, claims.DIFFERENCE)
    for n_targets, n_seeds in ((3, 3), (3, 5), (4, 5)):
        x = [range(n_targets)] * n_seeds
        found, peer = [], []
        for _ in range(n_studies):
            starts = chance.random((n_seeds, n_targets))
            values = [rank_association(x[0], own) for own in starts]
            estimate = Estimate(tuple(values), *student(values, DECIMALS), OVER_SEEDS)
            estimate = estimate._replace(p_of_chance=order_p_value(x, starts))
            found.append(claims.judge(estimate, claim)["verdict"])
            peer.append(claims.verdict_on((estimate.lower, estimate.upper), claim.region))
        for verdict in (claims.AGREES, claims.DISAGREES):
            ours, other = (100 * np.mean(np.array(of) == verdict) for of in (found, peer))
            work = f"wrong '{verdict}', orders of {n_targets} random targets, {n_seeds} seeds"
            yield at_most(work, ours, other, "%", TARGET, other / ours if ours else math.inf)


def power(n_studies: int) -> Iterator[Row]:
    """How often a claim that holds is found to hold."""
    chance, claim = np.random.default_rng(1), claim_on(0.0)
    for n_seeds in SEEDS:
        for name, effect in EFFECTS.items():
            values = effect + normal(chance, (n_studies, n_seeds))
            ours = 100 * np.mean(verdicts(values, claim) == claims.AGREES)
            needed = stats.t.ppf(0.975, n_seeds - 1)
            peer = 100 * stats.nct.sf(needed, n_seeds - 1, effect * math.sqrt(n_seeds))
            work = f"power, effect {effect:g} ({name}), {n_seeds} seeds"
            yield shown(work, ours, peer, "%", ours / peer)


def rows(tiny: bool) -> Iterator[Row]:
    """All rows of this benchmark."""
    n_studies = TINY if tiny else N_STUDIES
    yield from on_the_bound(n_studies)
    yield from random_orders(n_studies)
    yield from power(n_studies)


if __name__ == "__main__":
    sys.exit(main(rows))
