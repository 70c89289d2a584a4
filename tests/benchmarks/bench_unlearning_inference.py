"""Error rates, power and speed of the inference on unlearned models, in simulated studies.

Run as a script: `python tests/benchmarks/bench_unlearning_inference.py`. A null study has two kinds
of models from one distribution, with nine correlated strings, so every difference that is found is
a false alarm. The peers are what one might use instead: an interval over ten splits of the same
models, p-values of strings without correction, an epsilon above 0, a binomial p-value of
leave-one-out errors, and Student's interval over the shares of strings. For power, the original
models are 4 standard deviations of a model away from the retrained ones on every string, and
unlearning leaves 25 % of this gap. The peer of power and of time is the same with fewer models, or
the plain null without compiled code, extrapolated from a few relabellings.
"""

import os

os.environ.update(NUMBA_NUM_THREADS="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import binom

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from rows import Row, at_most, main, shown  # noqa: E402

from palimpsest import unlearning  # noqa: E402
from palimpsest.statistics import student  # noqa: E402
from palimpsest.unlearning.attacks.attackers import held_out_epsilon  # noqa: E402
from palimpsest.unlearning.attacks.joint_attacks import joint_p  # noqa: E402
from palimpsest.unlearning.attacks.permutation import against_chance, permutation_null  # noqa: E402
from palimpsest.unlearning.evaluate.gaps import Losses, pooled_share, string_shares  # noqa: E402

N_STUDIES, TINY = 1000, 5
N_POWER = 300
# Speed is measured with the default number of relabellings; error rates do not depend on it.
RELABELLINGS, FEWER_RELABELLINGS = 400, 199
N_STRINGS, MODELS = 9, (32, 128)
CORRELATION = 0.3
TARGET = 6.0  # percent of the null studies with a false alarm at a nominal 5 %
NOMINAL = 0.05
GAP, LEFT = 4.0, 0.25  # standard deviations of a model, and the share that unlearning leaves
SPLITS = 10
# Speed: methods, strings, models of each kind, and the target in seconds
WORK, TARGET_SECONDS = (20, 100, 512), 60.0
MISSES = 7.0  # percent of the intervals of 95 % without the true share


def models(chance: np.random.Generator, n: int) -> np.ndarray:
    """Confidences float[n, strings], normal and correlated over strings."""
    common, own = chance.normal(size=(n, 1)), chance.normal(size=(n, N_STRINGS))
    return math.sqrt(CORRELATION) * common + math.sqrt(1 - CORRELATION) * own


def verdicts(unlearned: np.ndarray, retrained: np.ndarray, seed: int) -> dict[str, float]:
    """Whether each kind of inference finds a difference; for the lower bounds, on which share."""
    n = FEWER_RELABELLINGS
    found = {}
    for thresholds in ("grid", "exact"):
        against = against_chance(unlearned, retrained, thresholds=thresholds, n=n, seed=seed)
        found[f"p of F, {thresholds}"] = against.quality_p <= NOMINAL
        found[f"any string, {thresholds}"] = (against.q <= NOMINAL).any()
        found[f"any string without correction, {thresholds}"] = (against.p <= NOMINAL).any()
    found["lower bound"] = (unlearning.epsilon_lower_bound(unlearned, retrained) > 0).mean()
    found["epsilon"] = (unlearning.epsilon(unlearned, retrained) > 0).mean()
    found["joint p"] = joint_p(unlearned, retrained, n, seed) <= NOMINAL
    found["binomial"] = binom.cdf(*unlearning.joint_attack(unlearned, retrained), 0.5) <= NOMINAL
    return found


def splits_differ(unlearned: np.ndarray, twin: np.ndarray, retrained: np.ndarray) -> bool:
    """Whether Student's interval over splits excludes 0, of the difference of two F by held-out
    attackers: of unlearned and of more retrained models, each against the retrained ones.
    """
    chance, n = np.random.default_rng(0), len(retrained)
    differences = []
    for _ in range(SPLITS):
        fit, judge = np.array_split(chance.permutation(n), 2)
        qualities = [
            unlearning.forgetting_quality(
                held_out_epsilon(of[fit], retrained[fit], of[judge], retrained[judge]), n // 2
            )
            for of in (unlearned, twin)
        ]
        differences.append(qualities[0] - qualities[1])
    _, lower, upper = student(differences)
    return not lower <= 0 <= upper


def mean_verdicts(n_models: int, n_studies: int, shift: float) -> dict[str, float]:
    """Percent of the studies in which each kind of inference finds a difference."""
    chance = np.random.default_rng(n_models)
    found = []
    for seed in range(n_studies):
        unlearned, twin, retrained = (models(chance, n_models) for _ in range(3))
        each = verdicts(unlearned + shift, retrained, seed)
        if not shift:
            each["splits"] = splits_differ(unlearned, twin, retrained)
        found.append(each)
    return {name: 100 * float(np.mean([each[name] for each in found])) for name in found[0]}


def calibration(n_studies: int) -> Iterator[Row]:
    """How often a difference is found where there is none."""
    peers = {
        "p of F, grid": "splits",
        "p of F, exact": "splits",
        "any string, grid": "any string without correction, grid",
        "any string, exact": "any string without correction, exact",
        "lower bound": "epsilon",
        "joint p": "binomial",
    }
    for n_models in MODELS:
        found = mean_verdicts(n_models, n_studies, 0.0)
        for name, peer in peers.items():
            ratio = found[peer] / found[name] if found[name] else math.inf
            work = f"false alarms, {name}, {n_models} + {n_models} models"
            yield at_most(work, found[name], found[peer], "%", TARGET, ratio)


def power(n_studies: int) -> Iterator[Row]:
    """How often a difference is found if 25 % of the gap is left."""
    names = ("p of F, grid", "p of F, exact", "any string, grid", "any string, exact")
    found = [mean_verdicts(n, n_studies, LEFT * GAP) for n in (16, *MODELS)]
    for n_models, fewer, ours in zip(MODELS, found[:-1], found[1:], strict=True):
        for name in (*names, "lower bound", "joint p"):
            work = f"power, 25 % of the gap left, {name}, {n_models} + {n_models}"
            ratio = ours[name] / fewer[name] if fewer[name] else math.inf
            yield shown(work, ours[name], fewer[name], "%", ratio)


def problem(chance: np.random.Generator, share: float) -> Losses:
    """Losses of a problem with nine strings and 32 models, which close shares around `share`."""
    gap = 0.8 * chance.lognormal(0, 0.5, N_STRINGS)
    optimal, shares = chance.uniform(0.2, 1, N_STRINGS), chance.normal(share, 0.25, N_STRINGS)
    before, after, retrained = (
        mean + chance.normal(0, 0.05, (32, 1)) + chance.normal(0, 0.15, (32, N_STRINGS))
        for mean in (optimal, optimal + shares * gap, optimal + gap)
    )
    return Losses(before, after, retrained)


def coverage(n_studies: int) -> Iterator[Row]:
    """How often intervals of the share of the gap closed miss the true share."""
    for true in ([0.5], [0.3, 0.5, 0.7]):
        chance, missed = np.random.default_rng(len(true)), []
        for seed in range(n_studies):
            problems = [problem(chance, share) for share in true]
            shares = np.concatenate([string_shares(*each).share for each in problems])
            found = pooled_share(problems, n=500, seed=seed), student(shares[~np.isnan(shares)])
            missed.append([not lower <= 0.5 <= upper for _, lower, upper in found])
        ours, peer = 100 * np.mean(missed, axis=0)
        work = f"share closed outside its interval, {len(true)} x 9 strings"
        yield at_most(work, ours, peer, "%", MISSES, peer / ours if ours else math.inf)


def seconds(n_methods: int, n_strings: int, n_models: int, n: int) -> Iterator[Row]:
    """Time of all inference on one core: of the process, so that other programs do not count."""
    chance = np.random.default_rng(0)
    retrained = chance.normal(size=(n_models, n_strings))
    # From nothing unlearned to everything.
    shifts = np.linspace(2, 0, n_methods)
    for thresholds in ("grid", "exact"):
        few = retrained[: min(n_models, 16), :1]
        all_inference(few + 1, few, thresholds, 2)  # compile
        begin = time.process_time()
        for shift in shifts:
            unlearned = chance.normal(shift, 1, (n_models, n_strings))
            all_inference(unlearned, retrained, thresholds, n)
        ours = time.process_time() - begin
        begin = time.process_time()
        permutation_null(
            unlearned,
            retrained,
            lambda x, y, way=thresholds: unlearning.epsilon(x, y, thresholds=way),
            2,
        )
        peer = (time.process_time() - begin) / 3 * (n + 1) * n_methods
        work = f"{thresholds}, {n_methods} methods, {n_strings} strings, {n_models} + {n_models}"
        yield at_most(work, ours, peer, "s", TARGET_SECONDS)


def all_inference(unlearned: np.ndarray, retrained: np.ndarray, thresholds: str, n: int) -> None:
    """Everything that is stated about one method."""
    against_chance(unlearned, retrained, thresholds=thresholds, n=n)
    unlearning.epsilon_lower_bound(unlearned, retrained)
    unlearning.joint_attack(unlearned, retrained)
    joint_p(unlearned, retrained, n)


def rows(tiny: bool) -> Iterator[Row]:
    """All rows of this benchmark."""
    yield from seconds(*((2, 3, 16, 20) if tiny else (*WORK, RELABELLINGS)))
    yield from coverage(TINY if tiny else N_STUDIES)
    yield from power(TINY if tiny else N_POWER)
    yield from calibration(TINY if tiny else N_STUDIES)


if __name__ == "__main__":
    sys.exit(main(rows))
