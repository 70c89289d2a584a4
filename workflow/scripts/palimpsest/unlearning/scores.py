"""Forgetting, utility and cost of every method, and how the answer depends on the evaluation."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest import manifests
from palimpsest.errors import UserError
from palimpsest.statistics import student
from palimpsest.unlearning.attackers import held_out_epsilon
from palimpsest.unlearning.confidence import Of, logit_scaled_confidence
from palimpsest.unlearning.quality import final_score, forgetting_quality
from palimpsest.unlearning.samples import PROBLEM_KEYS, Predictions, Problem, UnlearnedModels
from palimpsest.unlearning.setups import (
    BOOTSTRAP,
    ENDS,
    NONE,
    RETRAIN,
    REUSE_N_1,
    REUSE_N_N,
    Members,
    Setup,
)
from palimpsest.unlearning.thresholds import Thresholds, attacks

SETS = ("retain", "test", "forget")
QUANTITIES = (
    "forgetting_quality",
    *(f"{name}_accuracy{whose}" for name in SETS for whose in ("", "_retrained")),
    "final_score",
    "steps_share",
    "seconds_share",
)
# Fewer models show neither of the two errors of an attack often enough to tell what it is worth.
FEWEST = 4
SHUFFLES = 1  # keeps the shuffles apart from the draws of the bootstrap, which have the same seed
# Ways to split the models, at least: one split of few models is a matter of chance.
SPLITS = 10
BOOTSTRAPS = (5, 10, 20)  # repetitions of the bootstrap that are compared; 20 are the paper's


@dataclass(frozen=True)
class Rules:
    """How forgetting is scored.

    `confidence` (geometric_mean or sequence), `thresholds` (exact or grid), `delta` and `bin_width`
    are as in `logit_scaled_confidence`, `epsilon` and `forgetting_quality`; a method is within
    the `cutoff` if it takes at most this share of the steps of retraining.
    """

    confidence: Of
    thresholds: Thresholds
    delta: float
    bin_width: float
    cutoff: float


@dataclass(frozen=True)
class Retraining:
    """What one retraining costs: training steps, and seconds of wall time."""

    steps: int
    seconds: float


def scoring_of(job, problem: Problem) -> tuple[Rules, Retraining]:
    """How a `script:` job scores; `job` is Snakemake's `snakemake` object."""
    asked = job.params
    rules = Rules(asked.confidence, asked.thresholds, asked.delta, asked.bin_width, asked.cutoff)
    return rules, retraining(problem, job.input.manifests, asked.epochs, asked.batch_size)


def retraining(
    problem: Problem, manifests_of_retrained: Iterable[str], epochs: int, batch_size: int
) -> Retraining:
    """What a retraining costs: its steps by its recipe, its seconds by the manifests.

    Retrained models that were trained side by side share the time of their job.
    """
    read = [manifests.read(path) for path in manifests_of_retrained]
    seconds = sum(content["training_seconds"] for content in read)
    n_runs = sum(content.get("n_runs", 1) for content in read)
    return Retraining(problem.retraining_steps(epochs, batch_size), seconds / n_runs)


def evaluate(
    problem: Problem, methods: Iterable[UnlearnedModels], rules: Rules, cost: Retraining
) -> dict[str, pd.DataFrame]:
    """Every method under every set-up and repetition.

    The accuracy of a model on a set is the share of right tokens over the set's strings, copies
    counted; that of a repetition is the mean over its models. Methods are gone through one by one,
    so that they may be read one by one.

    Parameters
    ----------
    problem : Problem
    methods : iterable of UnlearnedModels, as `Problem.methods` gives them
    rules : Rules
    cost : Retraining

    Returns
    -------
    dict with the tables `epsilons`, `unlearning_scores`, `unlearning_summary` and
    `unlearning_effects`.

    Raises
    ------
    UserError
        If a model is missing that a set-up wants, or the retrained models get no token right.

    Source: Are we making progress in unlearning?, Algorithm 1 and section 4; the effects are those
    of sections A.13 to A.15.
    """
    epsilons, scores, effects = [], [], []
    for method in methods:
        evaluation = Evaluation(problem, method, rules)
        for setup in problem.setups:
            for repetition in range(setup.repetitions):
                found, row = evaluation.repetition(setup, repetition, cost)
                epsilons.append(found)
                scores.append(row)
        effects.extend(evaluation.effects())
    scores = pd.DataFrame(scores)
    return {
        "epsilons": pd.concat(epsilons, ignore_index=True),
        "unlearning_scores": scores,
        "unlearning_summary": summary(scores),
        "unlearning_effects": pd.DataFrame(effects),
    }


class Evaluation:
    """A method beside the retrained models, as an attacker and as a user see them."""

    def __init__(self, problem: Problem, method: UnlearnedModels, rules: Rules):
        self.problem, self.method, self.rules = problem, method, rules
        self.unlearned = self._confidences(method.predictions)
        self.retrained = self._confidences(problem.reference)
        self.accuracies = {
            name + whose: predictions.accuracy(problem.copies(name))
            for name in SETS
            for whose, predictions in (
                ("", method.predictions),
                ("_retrained", problem.reference),
            )
        }

    def _confidences(self, predictions: Predictions) -> np.ndarray:
        """Logit-scaled confidences float[models, forget strings]."""
        forget = predictions.restricted(self.problem.forget)
        return logit_scaled_confidence(forget.nll, forget.n_tokens, self.rules.confidence)

    def samples(self, members: Members) -> tuple[np.ndarray, np.ndarray]:
        """Confidences float[n, forget strings] of unlearned and of retrained models."""
        return self.unlearned[self.method.rows(members)], self.retrained[members.retrained]

    def quality(self, members: Members, thresholds: Thresholds) -> float:
        """Forgetting quality of some models, attackers fitted and evaluated on the same."""
        strongest = attacks(*self.samples(members), self.rules.delta, thresholds)
        return forgetting_quality(strongest.epsilon, len(members.retrained), self.rules.bin_width)

    def repetition(
        self, setup: Setup, repetition: int, cost: Retraining
    ) -> tuple[pd.DataFrame, dict]:
        """Rows of `epsilons`, and the row of `unlearning_scores`, of one repetition."""
        members = setup.members(repetition)
        keys = {
            **self.problem.keys,
            "method": self.method.name,
            "setup": setup.name,
            "repetition": repetition,
        }
        strongest = attacks(*self.samples(members), self.rules.delta, self.rules.thresholds)
        epsilons = pd.DataFrame(
            {
                **keys,
                "string_id": self.problem.string_ids[self.problem.forget],
                "epsilon": strongest.epsilon,
                "attack": strongest.family,
                "lower": strongest.lower,
                "upper": strongest.upper,
                "fpr": strongest.fpr,
                "fnr": strongest.fnr,
            }
        )
        quality = forgetting_quality(strongest.epsilon, setup.n, self.rules.bin_width)
        accuracy = self._accuracy(members)
        row = {
            **keys,
            "n_models": setup.n,
            "forgetting_quality": quality,
            **accuracy,
            "final_score": self._final_score(quality, accuracy),
            **self._cost(members, cost),
        }
        return epsilons, row

    def _accuracy(self, members: Members) -> dict[str, float]:
        """Accuracies on every set, as columns of `unlearning_scores`."""
        rows = self.method.rows(members)
        found = {}
        for name in SETS:
            found[f"{name}_accuracy"] = self.accuracies[name][rows].mean()
            retrained = self.accuracies[f"{name}_retrained"][members.retrained]
            found[f"{name}_accuracy_retrained"] = retrained.mean()
        return found

    def _final_score(self, quality: float, accuracy: dict[str, float]) -> float:
        for name in ("retain", "test"):
            if accuracy[f"{name}_accuracy_retrained"] == 0:
                keys = self.problem.keys
                raise UserError(
                    f"{keys['model']} on {keys['language']}: the retrained models predict no token "
                    f"of the {name} set, so no score can be relative to them; train for more epochs"
                )
        utility = {k: v for k, v in accuracy.items() if not k.startswith("forget")}
        return final_score(quality, **utility)

    def _cost(self, members: Members, cost: Retraining) -> dict:
        """Shares of what retraining costs, means over the models; the two ends are fixed."""
        if self.method.name in ENDS:
            share = {NONE: 0.0, RETRAIN: 1.0}[self.method.name]
            return {"steps_share": share, "seconds_share": share, "within_cutoff": True}
        steps = self.method.values("steps", members).mean() / cost.steps
        seconds = self.method.values("seconds", members).mean() / cost.seconds
        return {
            "steps_share": steps,
            "seconds_share": seconds,
            "within_cutoff": bool(steps <= self.rules.cutoff),
        }

    def effects(self) -> Iterator[dict]:
        """Rows of `unlearning_effects`."""
        keys = {**self.problem.keys, "method": self.method.name}
        for effect, attacker, value, repetition, quality in (
            *self._held_out(),
            *self._bootstraps(),
        ):
            yield {
                **keys,
                "effect": effect,
                "attacker": attacker,
                "value": value,
                "repetition": repetition,
                "forgetting_quality": quality,
            }

    def _held_out(self) -> Iterator[tuple]:
        """Rows on attackers that are fitted on some models and evaluated on others.

        Each of at least ten repetitions shuffles the stock of distinct models and has the attackers
        fitted on n of them, or half of the stock if it is smaller than 2 n, and evaluated on the
        same models; on as many others; and on fewer and fewer of those. All are fitted by an exact
        sweep, and scored as what as many models as fitted them can show, so that only the
        evaluation differs.
        """
        stock, setup = self.problem.stock, self.problem.setups[0]
        n = min(setup.n, len(stock.origins) // 2)
        if n < FEWEST:
            return
        for repetition in range(max(setup.repetitions, SPLITS)):
            chance = np.random.default_rng([setup.seed, repetition, SHUFFLES])
            order = chance.permutation(len(stock.origins))
            fit = _chosen(stock, order[:n])
            yield "attacker", "same", n, repetition, self.quality(fit, "exact")
            for size in _halvings(n):
                others = _chosen(stock, order[n : n + size])
                epsilon = held_out_epsilon(
                    *self.samples(fit), *self.samples(others), self.rules.delta
                )
                quality = forgetting_quality(epsilon, n, self.rules.bin_width)
                if size == n:
                    yield "attacker", "held-out", n, repetition, quality
                yield "n", "held-out", size, repetition, quality

    def _bootstraps(self) -> Iterator[tuple]:
        """Rows on the bootstrap: of pools of different sizes, and repeated more or less often."""
        stock, setup = self.problem.stock, self.problem.setups[0]
        pools = _pools(setup.n, len(stock.origins))
        most = max(setup.repetitions, *BOOTSTRAPS)
        for pool in pools:
            times = most if pool == pools[-1] else setup.repetitions
            bootstrap = Setup(BOOTSTRAP, setup.n, times, pool, setup.seed)
            for repetition in range(times):
                drawn = _chosen(stock, bootstrap.members(repetition).origins)
                quality = self.quality(drawn, self.rules.thresholds)
                if repetition < setup.repetitions:
                    yield "pool", "same", pool, repetition, quality
                for value in BOOTSTRAPS:
                    if pool == pools[-1] and repetition < value:
                        yield "repetitions", "same", value, repetition, quality


def _chosen(stock: Members, places: np.ndarray) -> Members:
    """The models at some places of the stock."""
    return Members(*(names[places] for names in stock))


def _halvings(n: int) -> list[int]:
    """n, its half, its quarter and so on, while they are enough models."""
    sizes = [n]
    while sizes[-1] // 2 >= FEWEST:
        sizes.append(sizes[-1] // 2)
    return sizes


def _pools(n: int, stock: int) -> list[int]:
    """Sizes of pools: n, 2 n, 4 n, ... as far as the stock goes; if only to n, smaller ones too."""
    larger = [n * 2**k for k in range(stock.bit_length()) if n * 2**k <= stock]
    return larger if len(larger) > 1 else sorted(_halvings(min(n, stock)))


def summary(scores: pd.DataFrame) -> pd.DataFrame:
    """The table `unlearning_summary`: every quantity of the scores over the repetitions.

    Only under the set-up full are repetitions independent. The intervals of the others are of what
    differs between their repetitions, and too narrow by what these share; what has nothing drawn
    anew between them has no interval.

    Source: Are we making progress in unlearning?, section 4.
    """
    keys = [*PROBLEM_KEYS, "method", "setup"]
    rows = []
    for key, group in scores.groupby(keys, sort=False):
        for quantity in QUANTITIES:
            mean, lower, upper = student(group[quantity])
            names = dict(zip(keys, key, strict=True))
            if not _redrawn(names["method"], names["setup"], quantity):
                lower = upper = np.nan
            rows.append(
                {
                    **names,
                    "quantity": quantity,
                    "n_repetitions": len(group),
                    "mean": mean,
                    "lower": lower,
                    "upper": upper,
                }
            )
    return pd.DataFrame(rows)


def _redrawn(method: str, setup: str, quantity: str) -> bool:
    """Whether repetitions of a set-up differ in any model that a quantity is of."""
    trained_once = setup in (REUSE_N_N, REUSE_N_1)
    return not (trained_once and (method in ENDS or quantity.endswith("_retrained")))
