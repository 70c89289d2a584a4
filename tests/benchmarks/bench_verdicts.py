"""Error rates and power of the verdicts, in simulated studies with a known truth.

Run as a script: `python tests/benchmarks/bench_verdicts.py`. Studies have three or five seeds and,
where nothing else is said, one model. In the first rows, the median of a statistic lies exactly on
the bound of its claim: "agrees" is wrong if the claim says that the median is above, and
"disagrees" if it says that the median is not below. The peer is Student's interval alone, for which
an interval without width is one like any other. Rows with the mean on the bound have no target:
verdicts do not speak of the mean. In the last rows, the claim holds by effects of the sizes that
the default experiment has, in standard deviations between seeds. Their peer is the power that the
noncentral t distribution predicts.
"""

import math
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from rows import Row, at_most, main, shown  # noqa: E402

from palimpsest import claims  # noqa: E402
from palimpsest.estimates import SEEDS as OVER_SEEDS  # noqa: E402
from palimpsest.estimates import Estimate, over_seeds  # noqa: E402
from palimpsest.memorisation.claims.claim_statistics import over_units  # noqa: E402
from palimpsest.statistics import (  # noqa: E402
    DECIMALS,
    order_p_value,
    rank_association,
    student,
)

N_STUDIES, N_ON_THE_BOUND, TINY = 1000, 4000, 10
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


class World(NamedTuple):
    """Values of a statistic, its true median and mean, and its limits."""

    name: str
    noise: Noise
    median: float
    mean: float
    limits: tuple[float, float]


WORLDS = [
    World("normal", normal, 0.0, 0.0, claims.ANY_NUMBER),
    World("uniform in [0, 1]", uniform, 0.5, 0.5, claims.SHARE),
    World("share of 64 strings", share, 58 / 64, 0.9, claims.SHARE),
    World("share of 64 strings, seeds differ", uneven_share, 59 / 64, 0.9, claims.SHARE),
    World("floor or ceiling", floor_or_ceiling, 0.5, 0.5, claims.SHARE),
    World("D of 3 random targets", association, 0.0, 0.0, claims.DIFFERENCE),
    World("skewness 1", mildly_skewed, float(stats.gamma(4).median()), 4.0, claims.NOT_NEGATIVE),
    World("skewness 2", skewed, math.log(2), 1.0, claims.NOT_NEGATIVE),
]


def claim_on(
    bound: float,
    limits: tuple[float, float] = claims.ANY_NUMBER,
    region: Callable[[float], claims.Region] = claims.at_least,
) -> claims.Claim:
    """A claim on a statistic that is in the table; by default, that it is at least a bound."""

    @claims.statistic("values", "", limits=limits, evidence=(), estimator=over_units)
    def value(table):
        return table.set_index(["model", "seed"])["value"]

    return claims.Claim("", "", value, region(bound))


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


def by_student(values: np.ndarray, claim: claims.Claim) -> np.ndarray:
    """The verdicts by Student's interval alone."""
    ends = [student(each, DECIMALS)[1:] for each in values]
    return np.array([claims.verdict_on(each, claim.region) for each in ends])


def wrong(
    work: str, values: np.ndarray, bound: float, limits: tuple[float, float], target: float | None
) -> Iterator[Row]:
    """How often each verdict is wrong if the truth is on the bound; no target: shown only."""
    for verdict, region in ((claims.AGREES, claims.above), (claims.DISAGREES, claims.at_least)):
        claim = claim_on(bound, limits, region)
        found, peer = verdicts(values, claim), by_student(values, claim)
        ours, other = (100 * np.mean(of == verdict) for of in (found, peer))
        words, ratio = f"wrong '{verdict}', {work}", other / ours if ours else math.inf
        if target is None:
            yield shown(words, ours, other, "%", ratio)
        else:
            yield at_most(words, ours, other, "%", target, ratio)


def on_the_bound(n_studies: int) -> Iterator[Row]:
    """How often a verdict is wrong."""
    chance = np.random.default_rng(0)
    for name, noise, median, mean, limits in WORLDS:
        for n_seeds in SEEDS:
            values = noise(chance, (n_studies, n_seeds))
            yield from wrong(f"{name}, {n_seeds} seeds", values, median, limits, TARGET)
            if mean != median:
                work = f"{name}, mean on the bound, {n_seeds} seeds"
                yield from wrong(work, values, mean, limits, None)


def undefined_values(n_studies: int) -> Iterator[Row]:
    """How often a verdict is wrong if the largest tenth or fifth of the values is undefined.

    Of one model or of six, in five seeds. The peer leaves undefined values out.
    """
    chance = np.random.default_rng(3)
    worlds = (("normal", normal, 0.0), ("skewness 2", skewed, math.log(2)))
    for (name, noise, median), n_models, share in product(worlds, (1, 6), (0.1, 0.2)):
        values = noise(chance, (n_studies, max(SEEDS), n_models))
        values[values > np.quantile(values, 1 - share)] = np.nan
        bound = median if n_models == 1 else float(noise(chance, (200_000, 6)).mean(axis=1).mean())
        for verdict, region in ((claims.AGREES, claims.above), (claims.DISAGREES, claims.at_least)):
            claim = claim_on(bound, region=region)
            found = [claims.judge(over_seeds(pd.DataFrame(of)), claim) for of in values]
            kept = [np.nanmean(of[~np.isnan(of).all(axis=1)], axis=1) for of in values]
            peers = [claims.verdict_on(student(of)[1:], claim.region) for of in kept]
            ours = 100 * np.mean([row["verdict"] == verdict for row in found])
            other = 100 * np.mean(np.array(peers) == verdict)
            words = f"wrong '{verdict}', {share:.0%} undefined, {n_models} models, {name}, 5 seeds"
            yield at_most(words, ours, other, "%", TARGET, other / ours if ours else math.inf)


def models_and_seeds(n_studies: int) -> Iterator[Row]:
    """How often a verdict over models and seeds is wrong, if the mean over both is on the bound.

    Models and seeds differ by normal effects of their own, in standard deviations of what is left.
    The peer is the verdict over seeds, which is about these models only.
    """
    chance, claim = np.random.default_rng(4), claim_on(0.0)
    for of_models, of_seeds in product((0.0, 1.0, 3.0), repeat=2):
        for n_seeds, n_models in ((3, 6), (5, 6)):
            own = of_models * chance.standard_normal((n_studies, 1, n_models))
            shared = of_seeds * chance.standard_normal((n_studies, n_seeds, 1))
            values = own + shared + chance.standard_normal((n_studies, n_seeds, n_models))
            study, seed, model = np.indices(values.shape)
            table = pd.DataFrame({"language": study.ravel(), "model": model.ravel().astype(str)})
            table = table.assign(seed=seed.ravel(), value=values.ravel())
            found = claims.judge_all([claim], {"values": table})
            for verdict in (claims.AGREES, claims.DISAGREES):
                ours, other = (
                    100 * np.mean(found[column] == verdict)
                    for column in ("verdict_models", "verdict")
                )
                sizes = f"models differ by {of_models:g} and seeds by {of_seeds:g}"
                words = f"wrong '{verdict}' over {n_models} models and {n_seeds} seeds, {sizes}"
                yield at_most(words, ours, other, "%", TARGET, other / ours if ours else math.inf)


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
    yield from on_the_bound(TINY if tiny else N_ON_THE_BOUND)
    yield from random_orders(n_studies)
    yield from undefined_values(n_studies)
    yield from models_and_seeds(n_studies)
    yield from power(n_studies)


if __name__ == "__main__":
    sys.exit(main(rows))
