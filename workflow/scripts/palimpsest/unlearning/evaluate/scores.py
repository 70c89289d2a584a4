"""Forgetting, utility and cost of every method, and how the answer depends on the evaluation."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest import manifests
from palimpsest.errors import UserError
from palimpsest.statistics import student
from palimpsest.unlearning.attacks.attackers import held_out_epsilon
from palimpsest.unlearning.attacks.confidence import logit_scaled_confidence
from palimpsest.unlearning.attacks.indistinguishability import placed, tell_apart
from palimpsest.unlearning.attacks.quality import final_score, forgetting_quality
from palimpsest.unlearning.attacks.thresholds import Thresholds, attacks
from palimpsest.unlearning.evaluate.rules import Rules
from palimpsest.unlearning.evaluate.samples import (
    PROBLEM_KEYS,
    Predictions,
    Problem,
    UnlearnedModels,
)
from palimpsest.unlearning.run.setups import (
    BOOTSTRAP,
    ENDS,
    NONE,
    RETRAIN,
    REUSE_N_1,
    REUSE_N_N,
    Members,
    Setup,
)

UTILITY = ("retain", "test")  # in the order of the parameters of `final_score`
SETS = (*UTILITY, "forget")
QUANTITIES = (
    "forgetting_quality",
    *(f"{name}_accuracy{whose}" for name in SETS for whose in ("", "_retrained")),
    "final_score",
    *(f"{name}_probability{whose}" for name in UTILITY for whose in ("", "_retrained")),
    "final_score_probability",
    "steps_share",
    "seconds_share",
)
# With fewer models, an attack makes each kind of error too rarely to estimate its error rates.
FEWEST = 4
SHUFFLES = 1  # gives the shuffles other random numbers than the bootstrap, which has the same seed
# Smallest number of splits of the models: the result of one split of few models is chance.
SPLITS = 10
BOOTSTRAPS = (5, 10, 20)  # repetitions of the bootstrap that are compared; 20 are the paper's


@dataclass(frozen=True)
class Retraining:
    """The cost of one retraining: training steps, and seconds of wall time."""

    steps: int
    seconds: float


def retraining(
    problem: Problem, manifests_of_retrained: Iterable[str], epochs: int, batch_size: int
) -> Retraining:
    """The cost of a retraining: steps from its recipe, seconds from the manifests.

    Models that one job trained at the same time share the time of the job equally.
    """
    read = [manifests.read(path) for path in manifests_of_retrained]
    seconds = sum(content["training_seconds"] for content in read)
    n_runs = sum(content.get("n_runs", 1) for content in read)
    return Retraining(problem.retraining_steps(epochs, batch_size), seconds / n_runs)


def evaluate(
    problem: Problem, methods: Iterable[UnlearnedModels], rules: Rules, cost: Retraining
) -> dict[str, pd.DataFrame]:
    """Evaluate every method under every set-up and repetition.

    The accuracy of a model on a set is the share of right tokens over the set's strings, with
    copies. The accuracy of a repetition is the mean over its models. `methods` may be a generator:
    only one method at a time has to be in memory.

    Parameters
    ----------
    problem : Problem
    methods : iterable of UnlearnedModels, from `Problem.methods`
    rules : Rules
    cost : Retraining

    Returns
    -------
    dict with the tables `epsilons`, `unlearning_scores`, `unlearning_summary`,
    `unlearning_effects`, `unlearning_tests` and `unlearning_string_tests`.

    Raises
    ------
    UserError
        If a model that a set-up needs is missing, or if the retrained models get no token right.

    Source: Are we making progress in unlearning?, Algorithm 1 and section 4; sections A.13 to A.15
    for the effects.
    """
    epsilons, scores, effects, tests = [], [], [], []
    for method in methods:
        evaluation = Evaluation(problem, method, rules)
        for setup in problem.setups:
            for repetition in range(setup.repetitions):
                found, row = evaluation.repetition(setup, repetition, cost)
                epsilons.append(found)
                scores.append(row)
        effects.extend(evaluation.effects())
        samples = evaluation.samples(problem.stock)
        innocent = [
            evaluation.confidences(one.of(problem.stock)) for one in problem.innocent_models
        ]
        tests.append(tell_apart(problem, method.name, samples, rules, *innocent))
    for one in problem.innocent_models:
        samples = Evaluation(problem, one, rules).samples(problem.stock)
        tests.append(tell_apart(problem, one.name, samples, rules))
    rows, of_strings = zip(*tests, strict=True)
    scores = pd.DataFrame(scores)
    return {
        "epsilons": pd.concat(epsilons, ignore_index=True),
        "unlearning_scores": scores,
        "unlearning_summary": summary(scores),
        "unlearning_effects": pd.DataFrame(effects),
        "unlearning_tests": placed(rows),
        "unlearning_string_tests": pd.concat(of_strings, ignore_index=True),
    }


class Evaluation:
    """Compares one method with the retrained models: confidences for attackers, and accuracies."""

    def __init__(self, problem: Problem, method: UnlearnedModels, rules: Rules):
        self.problem, self.method, self.rules = problem, method, rules
        self.unlearned = self.confidences(method.predictions)
        self.retrained = self.confidences(problem.reference)
        models = {"": method.predictions, "_retrained": problem.reference}
        self.accuracies = {
            name + whose: predictions.accuracy(problem.copies(name))
            for name in SETS
            for whose, predictions in models.items()
        }
        self.probabilities = {
            name + whose: predictions.probability(problem.copies(name))
            for name in UTILITY
            for whose, predictions in models.items()
        }

    def confidences(self, predictions: Predictions) -> np.ndarray:
        """Logit-scaled confidences float[models, forget strings]."""
        forget = predictions.restricted(self.problem.forget)
        return logit_scaled_confidence(forget.nll, forget.n_tokens, self.rules.confidence)

    def samples(self, members: Members) -> tuple[np.ndarray, np.ndarray]:
        """Confidences float[n, forget strings] of the unlearned and of the retrained models."""
        return self.unlearned[self.method.rows(members)], self.retrained[members.retrained]

    def quality(self, members: Members, thresholds: Thresholds) -> float:
        """Forgetting quality of some models, with attackers fitted and judged on these models."""
        strongest = attacks(*self.samples(members), self.rules.delta, thresholds)
        return forgetting_quality(strongest.epsilon, len(members.retrained), self.rules.bin_width)

    def repetition(
        self, setup: Setup, repetition: int, cost: Retraining
    ) -> tuple[pd.DataFrame, dict]:
        """The rows of `epsilons` and the row of `unlearning_scores` for one repetition."""
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
        accuracy = self._means("accuracy", self.accuracies, SETS, members)
        probability = self._means("probability", self.probabilities, UTILITY, members)
        row = {
            **keys,
            "n_models": setup.n,
            "forgetting_quality": quality,
            **accuracy,
            "final_score": self._final_score(quality, accuracy),
            **probability,
            "final_score_probability": final_score(quality, *probability.values()),
            **self._cost(members, cost),
        }
        return epsilons, row

    def _means(
        self, what: str, values: dict[str, np.ndarray], sets: tuple[str, ...], members: Members
    ) -> dict[str, float]:
        rows = self.method.rows(members)
        found = {}
        for name in sets:
            found[f"{name}_{what}"] = values[name][rows].mean()
            retrained = values[f"{name}_retrained"][members.retrained]
            found[f"{name}_{what}_retrained"] = retrained.mean()
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
                "level": value,
                "repetition": repetition,
                "forgetting_quality": quality,
            }

    def _held_out(self) -> Iterator[tuple]:
        """Rows on attackers that are fitted on some models and judged on others.

        Each of at least ten repetitions shuffles the distinct models (the stock) and fits attackers
        on n of them; n is at most half of the stock. The attackers are judged on the same models,
        on n other models, and on n / 2, n / 4, ... of these other models. All attackers are fitted
        by an exact sweep, and all points are given as for n models, so that only the models that
        judge differ.
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
        """Rows on the bootstrap: pools of different sizes, and different numbers of repetitions."""
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
    return Members(*(names[places] for names in stock))


def _halvings(n: int) -> list[int]:
    """n, n // 2, n // 4, ..., as long as there are enough models."""
    sizes = [n]
    while sizes[-1] // 2 >= FEWEST:
        sizes.append(sizes[-1] // 2)
    return sizes


def _pools(n: int, stock: int) -> list[int]:
    """Sizes of pools: n, 2 n, 4 n, ... up to the stock; if 2 n is too large, n and its halvings."""
    larger = [n * 2**k for k in range(stock.bit_length()) if n * 2**k <= stock]
    return larger if len(larger) > 1 else sorted(_halvings(min(n, stock)))


def summary(scores: pd.DataFrame) -> pd.DataFrame:
    """The table `unlearning_summary`: mean and interval of every quantity over the repetitions.

    Repetitions are independent under the set-up full only. Under other set-ups, repetitions share
    models, so the intervals are too narrow. A quantity has no interval if all repetitions use the
    same models for it.

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
    """Whether repetitions of a set-up differ in any model that a quantity depends on."""
    trained_once = setup in (REUSE_N_N, REUSE_N_1)
    return not (trained_once and (method in ENDS or quantity.endswith("_retrained")))
