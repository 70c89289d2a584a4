"""The statistics that test the claims on unlearning, each with its interval.

A statistic takes the tables of one language and gives an `Estimate`. Its interval is over one of
the following, depending on the table:

splits of the models
    Attackers are fitted on half of the models and judged on the other half, in several random
    splits. All splits use the same models, so their values are correlated. The interval is the
    corrected interval of `student_of_splits`; Student's interval would be wrong at least four times
    as often.
forget strings
    Jackknife over the forget strings. This interval says how much the answer depends on the choice
    of the strings to forget.
repetitions
    Student's interval over the repetitions of the set-up `full`. Only `full` uses new models in
    every repetition. Repetitions of other set-ups share models, and give no interval.
models
    The intervals of the table `unlearning_metrics`.

If several pairs of methods are compared, an interval holds for all pairs at once (Bonferroni). If
all splits or strings give the same value, the statistic is at a floor or at a ceiling, and there is
no interval. No interval is over seeds, so these claims have no p-values.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.claims import Estimate
from palimpsest.statistics import (
    CONFIDENCE,
    DECIMALS,
    Interval,
    jackknife,
    pair_order,
    student,
    student_of_splits,
)
from palimpsest.unlearning.samples import PROBLEM_KEYS
from palimpsest.unlearning.setups import ENDS, FULL, NONE, RETRAIN

COMPETITION = ("fanchuan", "kookmin", "seif", "sebastian", "amnesiacs", "sun", "forget")
LITERATURE = ("finetune", "neggrad", "scrub", "random-label", "salun", "l1-sparse")

FEWEST_METHODS = 3  # two methods have the same ranking by chance in half of all cases
FEWEST_UNTIED = 0.5  # at least this share of the comparisons of two strings must not be ties
SAME_HALF = 1.0  # models that judge an attacker, divided by models that fit it
TIE = 9  # decimals: means of equal epsilons differ by rounding

SPLITS, STRINGS, REPETITIONS, MODELS = (
    "splits of the models",
    "forget strings",
    "repetitions",
    "models",
)
OfProblem = Callable[..., Interval]  # from the tables of one model, language, size and seed


def over_models(
    interval: OfProblem, over: str, of_pairs: bool = False, **settings
) -> Callable[..., Estimate]:
    """An estimate whose interval is the mean of all models' intervals: mean lower, mean upper end.

    Such an interval is too wide if the errors of the models are independent. Models for which the
    statistic is undefined are left out. With `of_pairs`, the statistic is a share of pairs of
    methods, from `share_alike`; its ends are equal if the order of every pair is significant.
    `settings` are passed to the statistic.
    """

    def estimate(*frames: pd.DataFrame) -> Estimate:
        problems = [dict(list(frame.groupby(PROBLEM_KEYS))) for frame in frames]
        found = {
            key: interval(*(tables[key] for tables in problems), **settings)
            for key in problems[0]
            if all(key in tables for tables in problems)
        }
        defined = {key: of for key, of in found.items() if np.isfinite(of.mean)}
        if not defined:
            return Estimate()
        index = pd.MultiIndex.from_tuples(defined, names=PROBLEM_KEYS)
        means = pd.Series([of.mean for of in defined.values()], index=index)
        values = tuple(means.groupby(level="seed").mean())
        models = means.groupby(level="model").mean().to_dict()
        ends = np.array([[of.lower, of.upper] for of in defined.values()]).mean(axis=0)
        return Estimate(
            values, np.mean(values), *ends, over, models=models, counts_certain=of_pairs
        )

    return estimate


over_splits = partial(over_models, over=SPLITS)
over_strings = partial(over_models, over=STRINGS)
over_repetitions = partial(over_models, over=REPETITIONS)
pairs_over_splits = partial(over_splits, of_pairs=True)
pairs_over_repetitions = partial(over_repetitions, of_pairs=True)
pairs_over_models = partial(over_models, over=MODELS, of_pairs=True)


# Forgetting quality under held-out attackers, which are judged on other models than fitted on.


def qualities(
    effects: pd.DataFrame, attacker: str = "held-out", effect: str = "attacker"
) -> pd.DataFrame:
    """Forgetting quality float[splits, methods] of one problem, for the largest `value`."""
    rows = effects[(effects["effect"] == effect) & (effects["attacker"] == attacker)]
    return _of_value(rows, rows["value"].max())


def _of_value(rows: pd.DataFrame, value: float) -> pd.DataFrame:
    rows = rows[rows["value"] == value]
    return rows.pivot(index="repetition", columns="method", values="forgetting_quality")


def own(table: pd.DataFrame) -> list[str]:
    """The methods among the columns, without the two ends."""
    return [name for name in table.columns if name not in ENDS]


def of_splits(values: pd.Series, confidence: float = CONFIDENCE) -> Interval:
    """Mean and interval of one value per split; a split has two halves: fitting and judging."""
    return student_of_splits(values.dropna(), SAME_HALF, DECIMALS, confidence)


def of_repetitions(values: pd.Series, confidence: float = CONFIDENCE) -> Interval:
    """Mean and interval of one value per repetition of the set-up full."""
    if values.nunique() < 2:
        return Interval(values.mean(), np.nan, np.nan)
    return student(values, DECIMALS, confidence)


def above_doing_nothing(effects: pd.DataFrame) -> Interval:
    """Mean forgetting quality of the methods, minus the quality of the original models."""
    quality = qualities(effects)
    if not {NONE}.issubset(quality) or not own(quality):
        return UNDEFINED
    return of_splits(quality[own(quality)].mean(axis=1) - quality[NONE])


def short_of_retraining(effects: pd.DataFrame) -> Interval:
    """Forgetting quality of further retrained models, minus the mean over the methods."""
    quality = qualities(effects)
    if not {RETRAIN}.issubset(quality) or not own(quality):
        return UNDEFINED
    return of_splits(quality[RETRAIN] - quality[own(quality)].mean(axis=1))


def overfitted(effects: pd.DataFrame) -> Interval:
    """How much lower the quality is if attackers are judged on the models they were fitted on.

    The quality under held-out attackers, minus the quality under the same attackers judged on the
    models of their fit; the mean over the methods.
    """
    held_out, same = qualities(effects), qualities(effects, "same")
    names = [name for name in own(held_out) if name in same]
    return of_splits((held_out[names] - same[names]).mean(axis=1)) if names else UNDEFINED


UNDEFINED = Interval(np.nan, np.nan, np.nan)


# Orders of methods. Pairs of methods without a significant difference widen the interval.

Pairs = Sequence[tuple[str, str]]
Told = Callable[[pd.Series, float], Interval]  # from values and confidence to an interval


def pairs_of(names: Sequence[str]) -> Pairs:
    """Every pair of methods once; [] for fewer than 3 methods."""
    return list(itertools.combinations(names, 2)) if len(names) >= FEWEST_METHODS else []


def signs(table: pd.DataFrame, pairs: Pairs, told: Told, alpha: float) -> np.ndarray:
    """int[pairs]: 1 if the first method is higher, -1 if the second, 0 if this is not certain.

    `table` is float[repetitions, methods]; differences are paired by repetition. The probability
    that any sign is wrong is at most `alpha` (Bonferroni over the pairs).
    """
    found = [told(table[one] - table[other], 1 - alpha / len(pairs)) for one, other in pairs]
    return np.array([int(of.lower > 0) - int(of.upper < 0) for of in found])


def means_order(table: pd.DataFrame, pairs: Pairs) -> np.ndarray:
    """Sign int[pairs] of the difference of the means, whether it is significant or not."""
    mean = table.mean().round(DECIMALS)
    return np.array([np.sign(mean[one] - mean[other]) for one, other in pairs])


def share_alike(told: np.ndarray, seen: np.ndarray) -> Interval:
    """Share of pairs ordered as wanted.

    Parameters
    ----------
    told : int[pairs]
        1 if a pair is certainly ordered as wanted, -1 if certainly not, 0 if uncertain. For the
        lower end, an uncertain pair counts as not ordered as wanted; for the upper end, as ordered
        as wanted.
    seen : int[pairs]
        1, -1 or 0 by the means alone. The estimate uses these signs; a tie counts half.
    """
    if not len(told):
        return UNDEFINED
    return Interval((1 + seen).mean() / 2, (told > 0).mean(), 1 - (told < 0).mean())


def order_alike(
    one: pd.DataFrame, other: pd.DataFrame, told_one: Told, told_other: Told
) -> Interval:
    """Share of the pairs of methods that two evaluations put in the same order.

    Parameters
    ----------
    one, other : float[repetitions, methods]
    """
    pairs = pairs_of([name for name in own(one) if name in other])
    if not pairs:
        return UNDEFINED
    alpha = (1 - CONFIDENCE) / 2
    told = signs(one, pairs, told_one, alpha) * signs(other, pairs, told_other, alpha)
    return share_alike(told, means_order(one, pairs) * means_order(other, pairs))


def attackers_order_alike(effects: pd.DataFrame) -> Interval:
    """Share of pairs that held-out attackers and attackers on their own models order equally."""
    return order_alike(qualities(effects), qualities(effects, "same"), of_splits, of_splits)


def fewer_models_order_alike(effects: pd.DataFrame) -> Interval:
    """Share of pairs in the same order when the fewest and when the most models judge attackers."""
    rows = effects[(effects["effect"] == "n") & (effects["attacker"] == "held-out")]
    if rows["value"].nunique() < 2:
        return UNDEFINED
    fewest, most = (_of_value(rows, of()) for of in (rows["value"].min, rows["value"].max))
    return order_alike(fewest, most, of_splits, of_splits)


def competition_first(table: pd.DataFrame, told: Told) -> Interval:
    """Share of pairs in which the competition's method is better than the literature's method.

    Every pair is one method of the competition and one of the literature. `table` is
    float[repetitions, methods]; higher is better.
    """
    pairs = [
        (one, other)
        for one, other in itertools.product(COMPETITION, LITERATURE)
        if {one, other} <= set(table.columns)
    ]
    if not pairs:
        return UNDEFINED
    return share_alike(signs(table, pairs, told, 1 - CONFIDENCE), means_order(table, pairs))


def competition_forgets_more(effects: pd.DataFrame) -> Interval:
    """`competition_first` for the forgetting quality under held-out attackers."""
    return competition_first(qualities(effects), of_splits)


# Repetitions of set-ups.


def by_repetition(scores: pd.DataFrame, setup: str, values: pd.Series) -> pd.DataFrame:
    """Values float[repetitions, methods] of one set-up; `values` has one per row of `scores`."""
    rows = scores.assign(value=values)[scores["setup"] == setup]
    return rows.pivot(index="repetition", columns="method", values="value")


def utility(scores: pd.DataFrame) -> pd.Series:
    """Accuracy relative to retrained models: ratio on retained times ratio on test strings."""
    retain = scores["retain_accuracy"] / scores["retain_accuracy_retrained"]
    return retain * (scores["test_accuracy"] / scores["test_accuracy_retrained"])


def competition_scores_more(scores: pd.DataFrame) -> Interval:
    """`competition_first` for the final score under the set-up full."""
    table = by_repetition(scores, FULL, scores["final_score"])
    return competition_first(table, of_repetitions)


def utility_differs(scores: pd.DataFrame) -> Interval:
    """Largest difference in utility between two methods, under the set-up full."""
    table = by_repetition(scores, FULL, utility(scores))
    pairs = pairs_of(own(table))
    differences = pd.DataFrame({pair: table[pair[0]] - table[pair[1]] for pair in pairs})
    return largest_distance(differences)


def largest_distance(differences: pd.DataFrame) -> Interval:
    """Largest distance from 0 of the means of the columns float[repetitions, any]."""
    if differences.empty:
        return UNDEFINED
    confidence = 1 - (1 - CONFIDENCE) / differences.shape[1]
    found = [of_repetitions(differences[name], confidence) for name in differences]
    mean = np.array([abs(of.mean) for of in found])
    reach = np.array([of.upper - of.mean for of in found])
    # Not np.nanmax: a difference without an interval could be the largest.
    return Interval(mean.max(), np.maximum(mean - reach, 0).max(), (mean + reach).max())


def distance_from_full(scores: pd.DataFrame, setup: str) -> Interval:
    """Largest distance between a method's forgetting quality under `setup` and under full.

    The distance is relative to the distance between doing nothing and retraining, because the
    latter depends on the number of models. The mean under the cheap set-up counts as exact; the
    interval comes from full.
    """
    full, cheap = (
        by_repetition(scores, name, scores["forgetting_quality"]) for name in (FULL, setup)
    )
    names = [name for name in own(full) if name in cheap]
    if not names or not set(ENDS) <= set(full):
        return UNDEFINED
    range_of_ends = of_repetitions(full[RETRAIN] - full[NONE])
    distance = largest_distance(cheap[names].mean() - full[names])
    if range_of_ends.mean <= 0:
        return UNDEFINED
    if not range_of_ends.lower > 0:
        return Interval(distance.mean / range_of_ends.mean, np.nan, np.nan)
    return Interval(
        distance.mean / range_of_ends.mean,
        distance.lower / range_of_ends.upper,
        distance.upper / range_of_ends.lower,
    )


def setup_order_alike(scores: pd.DataFrame, setup: str) -> Interval:
    """Share of pairs of methods that a cheap set-up puts in the same order as full.

    The order of the means under the cheap set-up counts as exact, because a reader of its results
    would take them as exact.
    """
    full, cheap = (
        by_repetition(scores, name, scores["forgetting_quality"]) for name in (FULL, setup)
    )
    pairs = pairs_of([name for name in own(full) if name in cheap])
    if not pairs:
        return UNDEFINED
    order = means_order(cheap, pairs)
    told = signs(full, pairs, of_repetitions, 1 - CONFIDENCE) * order
    return share_alike(told, means_order(full, pairs) * order)


# Strings that are hard to forget.


class StringOrders:
    """The order of the forget strings by epsilon, for each method and repetition of a set-up.

    `orders` is int[methods, repetitions, strings, strings], the signs of `pair_order`; the last
    method is `retrain`. Two methods are compared in different repetitions only, because two methods
    in the same repetition can share models, and so agree by chance.
    """

    def __init__(self, epsilons: pd.DataFrame):
        first = epsilons[epsilons["setup"] == epsilons["setup"].iloc[0]]
        wide = first.pivot(
            index=["method", "repetition"], columns="string_id", values="epsilon"
        ).round(TIE)
        repetitions = wide.index.unique("repetition")
        names = [name for name in wide.index.unique("method") if name not in ENDS]
        self.n_methods, self.n_strings = len(names), wide.shape[1]
        self.has_retrain = RETRAIN in wide.index.unique("method")
        chosen = [*names, *([RETRAIN] if self.has_retrain else [])]
        self.orders = np.array(
            [[pair_order(wide.loc[(name, r)]) for r in repetitions] for name in chosen]
        )

    def agreement(self, pairs: Sequence[tuple[int, int]]) -> Callable[[np.ndarray], float]:
        """A function from the indices of strings to the rank agreement of some pairs of methods.

        The agreement is Goodman and Kruskal's gamma over all pairs together: the number of
        concordant minus the number of discordant comparisons of two strings, divided by the number
        of comparisons without a tie. NaN if more than half of the comparisons are ties.
        """
        signed, untied = (self._products(of, pairs) for of in (self.orders, abs(self.orders)))
        possible = self._products(np.ones_like(self.orders), pairs)

        def of(strings: np.ndarray) -> float:
            here = np.ix_(strings, strings)
            n_untied = untied[here].sum()
            n = possible[here].sum() - np.trace(possible[here])
            return signed[here].sum() / n_untied if n_untied >= FEWEST_UNTIED * n > 0 else np.nan

        return of

    @staticmethod
    def _products(orders: np.ndarray, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
        """Sum int[strings, strings], over pairs of methods, of the products of their orders.

        A product takes the two methods' orders from two different repetitions.
        """
        total = orders.sum(axis=1)
        return sum(
            total[one] * total[other] - (orders[one] * orders[other]).sum(axis=0)
            for one, other in pairs
        )

    @property
    def between(self) -> Pairs:
        """Every two methods."""
        return list(itertools.combinations(range(self.n_methods), 2))

    @property
    def within(self) -> Pairs:
        """Every method and itself."""
        return [(method, method) for method in range(self.n_methods)]

    @property
    def with_retrain(self) -> Pairs:
        """Every method and `retrain`."""
        return [(method, self.n_methods) for method in range(self.n_methods)]

    def difference(self, pairs: Pairs, others: Pairs) -> Interval:
        """Agreement of `pairs` minus agreement of `others`, with its interval over the strings."""
        n_repetitions = self.orders.shape[1] if self.orders.size else 0
        if not pairs or not others or n_repetitions < 2:
            return UNDEFINED
        one, other = self.agreement(pairs), self.agreement(others)
        return jackknife(lambda strings: one(strings) - other(strings), self.n_strings)


def hard_for_all(epsilons: pd.DataFrame) -> Interval:
    """Agreement of methods on which strings are hard, minus their agreement with `retrain`.

    No string is hard for `retrain`, so it agrees with methods by chance only. There is such chance,
    because all methods are compared with the same retrained models.
    """
    orders = StringOrders(epsilons)
    return orders.difference(orders.between, orders.with_retrain if orders.has_retrain else [])


def hard_for_some(epsilons: pd.DataFrame) -> Interval:
    """Agreement of a method with itself in another repetition, minus agreement with other methods.

    The expected value is 0 if all methods find the same strings hard, whatever the noise in the
    epsilons.
    """
    orders = StringOrders(epsilons)
    return orders.difference(orders.within, orders.between)


# Other metrics.


def ordered_as_by_quality(metrics: pd.DataFrame, effects: pd.DataFrame, metric: str) -> Interval:
    """Share of pairs of methods that a gap puts in the same order as the forgetting quality.

    A smaller gap to retrained models is better. Two gaps differ if their intervals over the models
    do not overlap. The forgetting quality is under held-out attackers.
    """
    gaps = metrics[metrics["metric"] == metric].set_index("method")
    quality = qualities(effects)
    pairs = pairs_of([name for name in own(quality) if name in gaps.index])
    if not pairs:
        return UNDEFINED
    alpha = (1 - CONFIDENCE) / 2
    names = sorted(set(itertools.chain.from_iterable(pairs)))
    low, high = _widened(gaps.loc[names], alpha / len(names))
    nearer = [int(high[one] < low[other]) - int(high[other] < low[one]) for one, other in pairs]
    told = signs(quality, pairs, of_splits, alpha) * np.array(nearer)
    seen = means_order(quality, pairs) * -means_order(gaps[["estimate"]].T, pairs)
    return share_alike(told, seen)


def _widened(gaps: pd.DataFrame, alpha: float) -> tuple[pd.Series, pd.Series]:
    """Ends of the intervals of gaps, with an error rate of `alpha` instead of 5 %."""
    from scipy.special import stdtrit

    freedom = gaps["n_models"] - 1
    factor = stdtrit(freedom, 1 - alpha / 2) / stdtrit(freedom, (1 + CONFIDENCE) / 2)
    # A gap is an absolute value: folding at 0 may move the lower end, but not the upper end.
    reach = (gaps["upper"] - gaps["estimate"]) * factor
    return (gaps["estimate"] - reach).clip(lower=0), gaps["estimate"] + reach
