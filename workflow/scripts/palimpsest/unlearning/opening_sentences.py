"""The sentences that open the report's chapter on unlearning: what can be said, and how surely.

Every sentence is about one model and language, over its problems. It has its numbers, an interval
or a p-value, and the same number for placebos or retraining. A sentence never says more than that.
"""

import math
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.estimates import with_interval
from palimpsest.number_format import in_words, number, percent, plural
from palimpsest.statistics import Interval
from palimpsest.unlearning.attacks.permutation import N_RELABELLINGS
from palimpsest.unlearning.evaluate import residual_memorisation
from palimpsest.unlearning.evaluate.outcomes import Outcome
from palimpsest.unlearning.evaluate.placebos import FORGET, PLACEBO
from palimpsest.unlearning.evaluate.verdicts import ALPHA, KEEPS
from palimpsest.unlearning.run.setups import NONE, RETRAIN

MOST_LISTED = 5  # more p-values are given by the lowest and the highest
MAIN = "counterfactual"  # the measure of the opening, which can answer for all strings


def sentences(found: Sequence[Outcome], memorised: pd.DataFrame) -> list[str]:
    """The opening of one model and language.

    Parameters
    ----------
    found : the result of `outcomes`
    memorised : rows of `unlearning_memorisation` of this model and language; may be empty
    """
    ends = {one.name: one for one in found if one.is_end}
    methods = [one for one in found if not one.is_end]
    nearest = nearest_of(methods)
    return [
        about_problems(max(one.n_problems for one in found), has_one_forget_set(memorised)),
        *about_tests(found),
        *about_shares(methods, nearest, ends.get(RETRAIN)),
        *about_bounds(nearest, ends),
        *about_memorised(memorised, nearest),
    ]


def nearest_of(methods: Iterable[Outcome]) -> Outcome | None:
    """The method nearest to retraining of those within the cut-off; None if there is no share."""
    known = [one for one in methods if not one.slow and not math.isinf(one.distance)]
    return min(known, key=lambda one: one.distance, default=None)


def has_one_forget_set(memorised: pd.DataFrame) -> bool:
    """Whether all problems have the same forget set, as when a file names it."""
    forget = memorised[memorised["string_role"] == FORGET]
    return forget.groupby("seed")["string_id"].agg(frozenset).nunique() == 1


def about_problems(n: int, has_one_forget_set: bool = False) -> str:
    if n > 1 and has_one_forget_set:
        return (
            f"There are {in_words(n)} problems, all with the same forget set, and each with its "
            "own models. Intervals are over the problems (95 %, Student), so they speak of other "
            "trainings, and not of other forget sets."
        )
    if n > 1:
        return (
            f"There are {in_words(n)} problems, each with its own training strings, forget set and "
            "models. Intervals (95 %, Student) are over these, so they speak of other forget sets, "
            "too."
        )
    return (
        "There is only one problem, so nothing can be said of other forget sets. Intervals are "
        "over the strings and models of this problem (95 %); other means have none."
    )


def about_tests(found: Sequence[Outcome]) -> list[str]:
    n_models = min((one.n_models for one in found if one.n_models), default=None)
    if n_models is not None and not can_tell(n_models):
        return [
            "Cannot tell any method, nor doing nothing, from retraining: with "
            f"{n_models} models of each kind, the smallest possible p-value is "
            f"{number(smallest_p(n_models))}, too large for two tests."
        ]
    by_name = {one.name: one for one in found}
    methods = [one for one in found if not one.is_end]
    return [
        about_retraining(by_name.get(RETRAIN)),
        *about_nothing(by_name.get(NONE)),
        *about_methods(methods),
    ]


def smallest_p(n_models: int) -> float:
    """The smallest p-value of a test by relabelling, about; exchanged labels give the same."""
    return max(1 / (N_RELABELLINGS + 1), 2 / math.comb(2 * n_models, n_models))


def at_floor(one: Outcome, p: float) -> bool:
    """Whether a p-value, corrected for the two tests, is the smallest possible."""
    return bool(p < 1.01 * 2 * smallest_p(one.n_models))


def corrected_p(one: Outcome, p: float) -> str:
    return f"{number(p)}, the smallest possible" if at_floor(one, p) else number(p)


def can_tell(n_models: int) -> bool:
    """Whether the smallest p-value is below 5 % after the correction for two tests."""
    return 2 * smallest_p(n_models) < ALPHA


def about_retraining(retrain: Outcome | None) -> str:
    if retrain is None or not retrain.verdict.n_problems:
        return (
            "Retraining itself was not tested, so nothing here shows that the tests are right "
            "where there is no difference."
        )
    n, told = retrain.verdict.n_problems, retrain.verdict.n_told
    tests = retrain.tests
    p = (
        f"p = {listed_p(tests['p_value'])} by the forgetting quality, {listed_p(tests['joint_p'])} "
        "by the joint attacker"
    )
    gap = about_goal(retrain.closed)
    if not told:
        return f"Retraining is not told from retraining ({p}), as it must be.{gap}"
    return (
        f"Retraining is told from retraining in {told} of {n} problems ({p}). That must not be: by "
        "chance alone, it happens in at most 5 % of such studies. Trust no other test here before "
        f"this is explained.{gap}"
    )


def about_goal(closed: Interval) -> str:
    if np.isnan(closed.mean):
        return ""
    text = f" It closes {in_percent(closed)} of the gap"
    _, lower, upper = as_shown(closed)
    if lower > 1 or upper < 1:
        return f"{text}; the interval should contain 100\u00a0%, and it does not."
    return f"{text}; 100\u00a0% is right."


def about_reference(retrain: Outcome | None, methods: Sequence[Outcome]) -> list[str]:
    if all(np.isnan(one.placebo.mean) for one in methods):
        return []
    if retrain is None or np.isnan(retrain.placebo.mean):
        return [
            "Retraining was not measured on placebos, so methods are compared with 0\u00a0% there."
        ]
    return [
        f"On placebos, retraining closes {in_percent(retrain.placebo)} of the gap, because "
        "retrained models had fewer strings and steps; this share, and not 0\u00a0%, is the goal "
        "there."
    ]


def about_nothing(none: Outcome | None) -> list[str]:
    if none is None or not none.verdict.n_problems:
        return []
    n, told = none.verdict.n_problems, none.verdict.n_told
    highest = f"p at most {corrected_p(none, none.p_values.max())}"
    if told == n:
        where = "in every problem" if n > 1 else "here"
        return [f"Doing nothing is told from retraining {where} ({highest}), as it should be."]
    return [
        f"Doing nothing is told from retraining in {told} of {n} problems "
        f"(p = {listed_p(none.p_values)}). Where it is not, the tests are too weak to find even "
        "what training left, so “not told” means little there."
    ]


def about_methods(methods: Sequence[Outcome]) -> list[str]:
    tested = [one for one in methods if one.verdict.n_problems]
    if not tested:
        return []
    every = told_in_every(tested)
    never = [one for one in tested if not one.verdict.n_told]
    rest = [one for one in tested if one.name not in every and one not in never]
    where = "in every problem" if tested[0].verdict.n_problems > 1 else "in the only problem"
    if every:
        largest = max(p for one in tested if one.name in every for p in one.p_values)
        p = f"p at most {number(max(every.values()))}, corrected over the methods"
        if at_floor(tested[0], largest):
            p += f"; before that, {corrected_p(tested[0], largest)}"
        text = f"{len(every)} of {of_methods(len(tested))} told from retraining {where} ({p})."
    else:
        lowest = min(corrected(tested).values())
        text = (
            f"No method is told from retraining {where} (p = {number(lowest)} or more, corrected "
            "over the methods)."
        )
    if rest:
        counts = [f"{one.name} in {one.verdict.n_told} of {one.verdict.n_problems}" for one in rest]
        text += f" Without this correction: {listed(counts)} problems."
    if never:
        names = [one.name for one in never]
        lowest = min(one.p_values.min() for one in never)
        text += (
            f" Not told in any problem: {listed(names)} (smallest p = {number(lowest)}); that no "
            "difference was found does not show that there is none."
        )
    return [text]


def told_in_every(tested: Sequence[Outcome]) -> dict[str, float]:
    return {name: p for name, p in corrected(tested).items() if p < ALPHA}


def corrected(tested: Sequence[Outcome]) -> dict[str, float]:
    """P-values of "told from retraining in every problem", by method.

    A method's p-value is its largest over the problems, because it has to be told in all of them.
    It is corrected over the methods (Benjamini and Hochberg), so at most 5 % of the methods that
    are named are wrong on average. The p-values of Holm's correction could not be small enough for
    many methods: the smallest p-value of a test is 1 / 401.
    """
    from scipy.stats import false_discovery_control

    p_values = false_discovery_control([one.p_values.max() for one in tested])
    return {one.name: float(p) for one, p in zip(tested, p_values, strict=True)}


def about_shares(
    methods: Sequence[Outcome], nearest: Outcome | None, retrain: Outcome | None
) -> list[str]:
    if not methods:
        return []
    if nearest is None:
        if all(one.slow for one in methods):
            return ["No method is within the cut-off on steps, so none is named as the nearest."]
        return [
            "No share of the gap can be given: no forget string has a clear gap between original "
            "and retrained models. There was too little to forget, or the models are too few to "
            "see it."
        ]
    return [
        *about_reference(retrain, methods),
        about_nearest(nearest, retrain, len(methods)),
        about_overshooting(methods),
        about_utility(methods),
    ]


def about_nearest(nearest: Outcome, retrain: Outcome | None, n_methods: int) -> str:
    which = "The only method" if n_methods == 1 else "The method nearest to retraining"
    clear = f"the {nearest.n_clear} of {nearest.n_strings} forget strings with a clear gap"
    spread = spread_in_words(nearest)
    if retrain is not None and not np.isnan(retrain.spread[0]):
        spread += f" (retraining: {spread_in_words(retrain)})"
    return (
        f"{which}, {nearest.name}, closes {in_percent(nearest.closed)} of the gap; "
        f"over {clear}, the middle half of the shares is {spread}. {about_placebos(nearest)}"
    )


def about_placebos(one: Outcome) -> str:
    if np.isnan(one.placebo.mean):
        return "There are no placebos, so forgetting cannot be told from general damage."
    text, size = f"On placebos, it closes {in_percent(one.placebo)}", "the difference"
    if not np.isnan(one.retained.mean):
        text += f", and on retained strings {in_percent(one.retained)}"
        size += " to the larger of the two"
    beyond = one.verdict.beyond
    if np.isnan(beyond.lower):
        return f"{text}; {size} has no interval."
    size += f" is {in_percent(beyond)}"
    if as_shown(beyond).lower > 0:
        text += f"; {size}, so it does more to the forget strings than to others."
    else:
        text += f"; {size}, so forgetting cannot be told from general damage."
    return f"{text} {about_damage(one)}"


def about_damage(one: Outcome) -> str:
    of = "0\u00a0%" if np.isnan(one.reference.mean) else "that of retraining"
    text = f"Its share on placebos minus {of} is {in_percent(one.verdict.damage)}"
    _, lower, upper = as_shown(one.verdict.damage)
    if np.isnan(lower):
        return f"{text}, without an interval."
    if lower > 0:
        return f"{text}, so it damages unseen strings."
    if upper < 0:
        return f"{text}, so it does less to them than retraining."
    more = "damage" if np.isnan(one.reference.mean) else "more damage than by retraining"
    return f"{text}, so no {more} is shown."


def about_overshooting(methods: Sequence[Outcome]) -> str:
    over = [one for one in methods if as_shown(one.closed).lower > 1]
    if not over:
        return "No method overshoots by its whole interval."
    shares = [
        f"{one.name} closes {in_percent(one.closed)}, and {in_percent(one.placebo)} on placebos"
        for one in over
    ]
    return (
        f"{len(over)} of {plural(len(methods), 'method')} overshot, by the whole interval: "
        f"{'; '.join(shares)}. Models then know less of the forget strings than retrained ones."
    )


def about_utility(methods: Sequence[Outcome]) -> str:
    kept = {one.name: min(one.values["retain"], one.values["test"]) for one in methods}
    what = "the probability that retrained models give to retained or test strings"
    worse = [one.name for one in methods if one.verdict.lost]
    if not worse:
        name = min(kept, key=lambda name: kept[name].mean)
        return (
            f"On average, every method keeps {percent(KEEPS)} or more of {what}; the least is "
            f"{in_percent(kept[name])} ({name})."
        )
    least = min(worse, key=lambda name: kept[name].mean)
    return (
        f"On average, {len(worse)} of {plural(len(methods), 'method')} kept less than "
        f"{percent(KEEPS)} of {what}; the least, {least}, {in_percent(kept[least])}."
    )


def about_bounds(nearest: Outcome | None, ends: dict[str, Outcome]) -> list[str]:
    if nearest is None or not len(nearest.tests):
        return []
    compared = [
        f"{bounded(ends[end])} for {word}"
        for end, word in ((NONE, "doing nothing"), (RETRAIN, "retraining"))
        if end in ends and len(ends[end].tests)
    ]
    against = f", against {' and '.join(compared)}" if compared else ""
    told = f"{int(nearest.tests['n_told'].sum())} of {nearest.n_tested}"
    return [
        f"After {nearest.name}, the 95 % lower bound of epsilon is above 0 for {bounded(nearest)} "
        f"forget strings{against}; one bound in twenty may be wrong. By their epsilons, "
        f"{told} strings tell its models from retrained ones, with a false discovery rate of 5 % "
        "in each problem."
    ]


def bounded(one: Outcome) -> str:
    return f"{int(one.tests['n_bounded'].sum())} of {one.n_tested}"


def about_memorised(memorised: pd.DataFrame, nearest: Outcome | None) -> list[str]:
    if nearest is None or memorised.empty:
        return []
    forget, placebo = (
        residual_memorisation.of_method(memorised, MAIN, strings, nearest.name)
        for strings in (FORGET, PLACEBO)
    )
    if np.isnan(forget["after"].mean):
        return []
    text = (
        f"What remains: after {nearest.name}, {in_percent(forget['after'])} of the forget "
        "strings are still memorised (counterfactual); before, it was "
        f"{in_percent(forget['before'])}, and retrained models have "
        f"{in_percent(forget['retrained'])}, where 5 % are meant."
    )
    text += f" {about_excess(forget['excess'])}"
    if np.isnan(placebo["after"].mean):
        return [f"{text} There are no placebos."]
    return [
        f"{text} On placebos, the shares are {in_percent(placebo['after'])} after, "
        f"{in_percent(placebo['before'])} before and {in_percent(placebo['retrained'])} in "
        "retrained models."
    ]


def about_excess(excess: Interval) -> str:
    shown = in_percent(excess)
    if np.isnan(excess.lower):
        return f"The excess over retraining is {shown}, without an interval."
    _, lower, upper = as_shown(excess)
    if lower > 0:
        return f"The excess over retraining is {shown}."
    if upper < 0:
        return f"That is less than retraining has: the difference is {shown}."
    return f"The excess over retraining is {shown}, so it may be none."


# Words and numbers


def whole_percent(share: float) -> str:
    """A whole percentage; a share that rounds to 0 has no sign."""
    return percent(round(share, 2) + 0.0)  # -0 becomes 0


in_percent = partial(with_interval, form=whole_percent)


def as_shown(found: Interval) -> Interval:
    """Rounded to whole percentages, as shown: words must agree with the numbers next to them."""
    return Interval(*(round(value, 2) + 0.0 for value in found))  # -0 becomes 0


def spread_in_words(one: Outcome) -> str:
    return " to ".join(map(whole_percent, one.spread))


def listed_p(p_values: Iterable[float]) -> str:
    """P-values in words: 0.31, 0.77 and 0.64; from the lowest to the highest if there are many."""
    p_values = list(p_values)
    if len(p_values) > MOST_LISTED:
        return f"{number(min(p_values))} to {number(max(p_values))}"
    return listed([number(p) for p in p_values])


def listed(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def of_methods(n: int) -> str:
    """The end of "k of ... told"."""
    return "1 method is" if n == 1 else f"{n} methods are"
