"""The statistics that test the claims on forgetting and on utility.

A statistic takes the tables of one language and gives one value per problem: a model, a size of the
training set and a seed. Every seed has training strings, forget strings and models of its own, so
problems with different seeds are independent. `over_problems` makes an estimate of the values, with
Student's interval over the seeds. The interval therefore covers other forget sets and other
trainings. What models of one problem share (the retrained models, for example) is in the spread
between seeds. All statistics rest on retraining.

`none` (the original models) and `retrain` (further retrained models) are in no mean over methods
and in no pair of methods.

A statistic is NaN for a problem in which it is undefined.
"""

import itertools
from collections.abc import Callable, Mapping
from functools import partial, wraps

import numpy as np
import pandas as pd

from palimpsest import claims
from palimpsest.claims import DIFFERENCE, RETRAINING
from palimpsest.estimates import Estimate, largest_size, lowest, mean_remarks, over_seeds
from palimpsest.statistics import DECIMALS, rank_association
from palimpsest.unlearning.evaluate.placebos import CONTROLS, FORGET, PLACEBO
from palimpsest.unlearning.evaluate.samples import PROBLEM_KEYS
from palimpsest.unlearning.run.setups import ENDS, INNOCENT, RETRAIN

FEWEST_METHODS = 3  # two methods have the same ranking by chance in half of all cases
ALPHA = 0.05
SEEDS_OF_METHODS = "seeds, in every method"

Values = Callable[..., pd.Series]  # from tables to values; the index has the PROBLEM_KEYS


# From values to an estimate.


def over_problems(
    of_problems: Values, arguments: Mapping, *frames: pd.DataFrame, context: Mapping | None = None
) -> Estimate:
    """An estimate of the values of some problems, with an interval over the seeds.

    `context` holds values by which to read the estimate, by their names for a reader. Their means
    are remarks of the estimate. They affect no verdict.
    """
    values = of_problems(*frames, **arguments)
    if values.isna().all():
        return Estimate()
    remarks = mean_remarks({name: of(*frames) for name, of in (context or {}).items()})
    return over_seeds(values, units="problems", remarks=remarks, decimals=DECIMALS)


statistic = partial(claims.statistic, evidence=RETRAINING, estimator=over_problems)


def per_problem(of_problem: Callable[..., float]) -> Values:
    """The values of all problems, by a function of one problem's tables.

    Problems that are not in all tables are left out.
    """

    @wraps(of_problem, assigned=("__module__", "__name__", "__doc__"))
    def of_problems(*frames: pd.DataFrame, **settings) -> pd.Series:
        first, *others = [dict(list(frame.groupby(PROBLEM_KEYS))) for frame in frames]
        keys = [key for key in first if all(key in tables for tables in others)]
        values = [of_problem(first[key], *(t[key] for t in others), **settings) for key in keys]
        return by_problem(keys, values)

    return of_problems


def by_problem(keys: list[tuple], values: list[float]) -> pd.Series:
    index = pd.MultiIndex.from_frame(pd.DataFrame(keys, columns=PROBLEM_KEYS))
    return pd.Series(values, index=index, dtype=float)


def largest_of_previous_seed(by_seed: pd.DataFrame) -> pd.Series:
    """The largest difference, chosen on another seed than that on which it is measured.

    A largest difference of noisy values is never 0, even if all true differences are. So for every
    seed, the seed before (for the first, the last) chooses the column with the largest value in
    absolute value, and its sign. The result is the seed's own value of this column with this sign.
    If all true differences are 0, the expected value is 0, and the results of two seeds are
    uncorrelated; they would be correlated if all other seeds chose. Otherwise, the expected value
    is at most the largest true difference.

    `by_seed` is float[seeds, columns]. The result is float[seeds]; NaN if there are fewer than
    three seeds or if any value is undefined.
    """
    values = by_seed.to_numpy(dtype=float)
    n_seeds, n_columns = values.shape
    if n_seeds < 3 or n_columns == 0 or np.isnan(values).any():
        return pd.Series(np.nan, index=by_seed.index)
    before = np.roll(values, 1, axis=0)
    chosen = abs(before).argmax(axis=1)
    each = np.arange(n_seeds)
    return pd.Series(np.sign(before[each, chosen]) * values[each, chosen], index=by_seed.index)


def by_problem_and_column(
    of_problem: Callable[..., pd.Series], table: pd.DataFrame, **settings
) -> pd.DataFrame:
    """Values float[problems, columns] from a function of one problem's table."""
    problems = list(table.groupby(PROBLEM_KEYS))
    rows = [of_problem(rows, **settings) for _, rows in problems]
    keys = [key for key, _ in problems]
    return pd.DataFrame(rows).set_axis(by_problem(keys, [np.nan] * len(keys)).index)


def largest(of_problem: Callable[..., pd.Series]) -> Values:
    """`largest_of_previous_seed`, separately for each model and size.

    `of_problem` gives the values of one problem by the names of columns.
    """

    @wraps(of_problem)
    def of_problems(table: pd.DataFrame, **settings) -> pd.Series:
        wide = by_problem_and_column(of_problem, table, **settings)
        parts = wide.groupby(level=["model", "language", "size"])
        return pd.concat([largest_of_previous_seed(part) for _, part in parts])

    return of_problems


def within_in_every_method(
    of_problem: Callable[..., pd.Series], arguments: Mapping, table: pd.DataFrame
) -> Estimate:
    """The largest distance from 0 of the methods' means over the seeds.

    `of_problem` gives one value per method.
    """
    wide = by_problem_and_column(of_problem, table, **arguments)
    found = largest_size(by_method(wide), SEEDS_OF_METHODS, needs_spread=True, decimals=DECIMALS)
    if not found.values:
        return found
    models = wide.groupby(level="model").mean().abs().max(axis=1)
    return found._replace(models=models.to_dict())


def lowest_of_methods(
    of_problem: Callable[..., pd.Series], arguments: Mapping, table: pd.DataFrame
) -> Estimate:
    """The lowest of the methods' means over the seeds; a remark names the method.

    `of_problem` gives one value per method.
    """
    wide = by_problem_and_column(of_problem, table, **arguments)
    parts = by_method(wide)
    found = lowest(parts, SEEDS_OF_METHODS, decimals=DECIMALS)
    if not found.values:
        return found
    means = pd.Series({own.name: own.mean() for own in parts})
    models = wide.groupby(level="model").mean().min(axis=1)
    weakest = f"weakest: {means.round(DECIMALS).idxmin()}"
    return found._replace(models=models.to_dict(), remarks=(weakest,))


def by_method(wide: pd.DataFrame) -> list[pd.Series]:
    """Values float[seeds] of each method; no method if one is undefined in all models of a seed."""
    by_seed = wide.groupby(level="seed").mean()
    return [] if by_seed.isna().any(axis=None) else [own for _, own in by_seed.items()]


# Methods.


def own(values: pd.Series) -> pd.Series:
    """The values of the methods, without the ends; `values` has one per method."""
    return values[~values.index.isin((*ENDS, INNOCENT))]


def mean_of_own(values: pd.Series) -> float:
    """Mean over the methods; NaN if a method is undefined, or if there is no method."""
    return own(values).mean(skipna=False)


def of_first_setup(scores: pd.DataFrame, column: str) -> pd.DataFrame:
    """A column of `unlearning_scores` under the first set-up, float[repetitions, methods]."""
    rows = scores[scores["setup"] == scores["setup"].iloc[0]]
    return rows.pivot(index="repetition", columns="method", values=column)


# Forgetting.


def beyond_controls(summary: pd.DataFrame) -> pd.Series:
    """Share of the gap that each method closes on forget strings, minus the larger on controls.

    The controls are placebos and retained strings. It counts as -1 or 1 if it is beyond. Otherwise,
    one method that overshoots would decide a mean.
    """
    wide = summary.pivot(index="method", columns="string_role", values="share")
    wide = wide.reindex(columns=[FORGET, *CONTROLS])
    return (wide[FORGET] - wide[list(CONTROLS)].max(axis=1)).clip(-1, 1)


GAP_CLOSED = (
    "share of the gap closed on forget strings, minus the larger of those on "
    "placebos and on retained strings (at most 1), "
)


@statistic("unlearning_gap_summary", f"{GAP_CLOSED}mean over the methods", limits=DIFFERENCE)
@per_problem
def forgets(summary: pd.DataFrame) -> float:
    return mean_of_own(beyond_controls(summary))


@statistic(
    "unlearning_gap_summary",
    f"{GAP_CLOSED}of the method with the lowest",
    limits=DIFFERENCE,
    estimator=lowest_of_methods,
)
def forgotten(summary: pd.DataFrame) -> pd.Series:
    return own(beyond_controls(summary))


@statistic(
    "unlearning_tests",
    "forgetting quality of relabelled models minus that of the method's, mean over the methods",
    limits=DIFFERENCE,
)
@per_problem
def short_of_retraining(tests: pd.DataFrame) -> float:
    """Forgetting quality of relabelled models minus that of the method; mean over the methods.

    If unlearned models are like retrained models, the true labels are as good as any others, so the
    expected value is 0.
    """
    tests = tests.set_index("method")
    return mean_of_own(tests["null_quality"] - tests["forgetting_quality"])


@per_problem
def share_told_by_joint_attack(tests: pd.DataFrame) -> float:
    """Share of the methods whose models the joint attacker tells from retrained models."""
    p_values = tests.set_index("method")["joint_p"]
    return mean_of_own((p_values < ALPHA).astype(float).mask(p_values.isna()))


@statistic(
    "unlearning_tests",
    "the joint attacker's share of errors on further retrained models, minus the mean over the "
    "methods",
    limits=DIFFERENCE,
    estimator=partial(
        over_problems, context={"share of the methods that are told": share_told_by_joint_attack}
    ),
)
@per_problem
def joint_attack_error(tests: pd.DataFrame) -> float:
    """Share of errors of the joint attacker on `retrain`, minus the mean over the methods.

    The attacker's share of errors on models that are all alike is not 0.5 (leaving one model out
    makes the other kind more frequent). So it is compared with `retrain`, for which it is the same.
    """
    tests = tests.set_index("method")
    errors = tests["joint_errors"] / tests["joint_models"]
    return errors.get(RETRAIN, np.nan) - mean_of_own(errors)


@statistic(
    "unlearning_scores",
    "forgetting quality of {method} with the repair phase of {repair}, minus that with its own",
    limits=DIFFERENCE,
)
@per_problem
def repaired_by_another(scores: pd.DataFrame, method: str, repair: str) -> float:
    """The two methods together have the name `method`-`repair` in the table of methods."""
    quality = of_first_setup(scores, "forgetting_quality").mean()
    return quality.get(f"{method}-{repair}", np.nan) - quality.get(method, np.nan)


@statistic(
    "unlearning_gaps",
    "middle half of the strings' shares of the gap closed, from its lowest to its highest, minus "
    "that of further retrained models with the method's uncertainty; mean over the methods",
)
@per_problem
def unevenness(gaps: pd.DataFrame) -> float:
    """Spread over the forget strings of the share of the gap closed, beyond noise.

    The spread is the range of the middle half of the strings; mean over the methods. For `retrain`,
    the spread is only noise, because retrained models close the whole gap of every string. So the
    spread of `retrain` is subtracted. It is first multiplied by the ratio of uncertainties: the
    median over the strings of the method's width of the interval, divided by that of `retrain`.
    """
    rows = gaps[gaps["string_role"] == FORGET]
    rows = rows.assign(width=rows["upper"] - rows["lower"])
    share, width = (
        rows.pivot(index="string_id", columns="method", values=name) for name in ("share", "width")
    )
    if RETRAIN not in share or share[RETRAIN].notna().sum() < 2:
        return np.nan
    spread = share.quantile(0.75) - share.quantile(0.25)
    noise = width.div(width[RETRAIN], axis=0).median() * spread[RETRAIN]
    return mean_of_own(spread - noise)


def beyond_retrained(memorisation: pd.DataFrame, when: str) -> pd.Series:
    """Share of models that memorise a forget string, minus the same on placebos; by method.

    Memorisation is counterfactual. The share of retrained models that seem to memorise the string
    is subtracted first. `when` is "before" or "after" the unlearning.
    """
    rows = memorisation[(memorisation["measure"] == "counterfactual") & memorisation["answerable"]]
    excess = (rows[when] - rows["retrained"]).groupby([rows["method"], rows["string_role"]]).mean()
    wide = excess.unstack().reindex(columns=[FORGET, PLACEBO])
    return wide[FORGET] - wide[PLACEBO]


@per_problem
def memorised_before(memorisation: pd.DataFrame) -> float:
    return mean_of_own(beyond_retrained(memorisation, "before"))


@statistic(
    "unlearning_memorisation",
    "share of unlearned models that memorise a forget string counterfactually, "
    "minus that of retrained ones, beyond placebos; mean over the methods",
    limits=(-2, 2),
    estimator=partial(over_problems, context={"the same before unlearning": memorised_before}),
)
@per_problem
def still_memorised(memorisation: pd.DataFrame) -> float:
    return mean_of_own(beyond_retrained(memorisation, "after"))


# Utility.


def utility(scores: pd.DataFrame) -> pd.Series:
    """Utility of each method under the first set-up, mean over the repetitions.

    Utility is the mean probability of tokens on retained strings times that on test strings, each
    divided by the probability that retrained models give.
    """
    kept = {
        name: of_first_setup(scores, f"{name}_probability")
        / of_first_setup(scores, f"{name}_probability_retrained")
        for name in ("retain", "test")
    }
    return (kept["retain"] * kept["test"]).mean()


@statistic(
    "unlearning_scores",
    "difference in utility of the two methods that differ most on another seed;"
    " utility: mean probability of tokens on retained times test strings, each "
    "divided by that of retrained models",
)
@largest
def costs_differ(scores: pd.DataFrame) -> pd.Series:
    """Differences in utility between every two methods."""
    found = own(utility(scores))
    if len(found) < FEWEST_METHODS:
        return pd.Series({"no pairs": np.nan})
    return pd.Series(
        {
            f"{one} - {other}": found[one] - found[other]
            for one, other in itertools.combinations(found.index, 2)
        }
    )


@statistic(
    "unlearning_gap_summary unlearning_scores",
    "rank association over the methods of the share of the gap closed (forget strings minus the "
    "larger of placebos and retained strings) with the loss of utility",
    limits=DIFFERENCE,
)
@per_problem
def trade(summary: pd.DataFrame, scores: pd.DataFrame) -> float:
    """Rank association over the methods of the gap closed with the loss of utility.

    The gap closed is that of forget strings minus that of placebos: damage to all strings alike is
    a cost, and not forgetting.
    """
    forgotten, cost = own(beyond_controls(summary)), 1 - own(utility(scores))
    forgotten, cost = forgotten.dropna().align(cost.dropna(), join="inner")
    if len(cost) < FEWEST_METHODS:
        return np.nan
    return rank_association(forgotten.round(DECIMALS), cost.round(DECIMALS))


# Relearning.


@statistic(
    "unlearning_metrics",
    "steps of training on the forget strings in which retrained models reach the original models' "
    "loss on them, minus those of unlearned models, mean over the methods",
)
@per_problem
def relearned_faster(metrics: pd.DataFrame) -> float:
    """Steps that retrained models need to learn the forget strings, minus those of the methods."""
    rows = metrics[metrics["metric"] == "relearn_steps"].set_index("method")
    return mean_of_own(rows["reference"] - rows["estimate"])
