"""The statistics that test the claims on memorisation.

A statistic takes a study's table for one language and returns a Series with one value per unit; a
unit is usually a model, a training size and a seed. `estimator` turns a statistic into an estimate
with an interval over the seeds (`palimpsest.estimates`).
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.claims import (
    DIFFERENCE,
    NOT_NEGATIVE,
    SHARE,
    Case,
    Claim,
    Region,
    at_least,
    each_language,
)
from palimpsest.estimates import (
    MARKED,
    VOIDS,
    Estimate,
    lowest,
    mean_by,
    mean_marks,
    over_seeds,
)
from palimpsest.memorisation.joins import RUN
from palimpsest.statistics import (
    DECIMALS,
    chance_of_equal_orders,
    off_diagonal_mean,
    pair_order,
    rank_association,
)

UNIT = ["model", "size", "seed"]
SEEDS_OF_MODELS = "seeds, in every model"
CASES = "cases, which are left out"

Statistic = Callable[..., pd.Series]  # takes a table; the index of the result has a level "seed"


# From a statistic to an estimate.


def estimator(
    statistic: Statistic,
    ends: tuple[Statistic, ...] = (),
    variants: tuple[str, ...] = (),
    beside: Mapping[str, Statistic] | None = None,
    undefined: str = MARKED,
    remark: Callable[[pd.DataFrame], str] | None = None,
    at_least: Statistic | None = None,
    **settings,
) -> Callable[[pd.DataFrame], Estimate]:
    """A function from a table to an estimate of a statistic, with an interval over the seeds.

    Parameters
    ----------
    ends : two statistics, the ends of an interval over the training strings of a seed
        They are used if there is only one seed; such an interval does not cover other seeds.
    variants : the variants of the data that the statistic uses; by default, all rows are used
    beside : statistics that help to read the estimate, by the names that a reader sees
        Their means are marks of the estimate. They affect no verdict.
    undefined : what a case does in which the statistic is undefined, see `estimates`
        `VOIDS` if the value itself decides that it is undefined: the others are biased.
    remark : function from the rows that are used to one more mark
    at_least : a lower bound of the statistic, where the end of training makes it undefined
        If the bound is used in any case, the interval has no upper end, so the claim can only lie
        above a bound.
    settings : passed to the statistic
    """

    def estimate(table: pd.DataFrame) -> Estimate:
        rows = used(table, variants)
        if rows.empty:
            return Estimate()
        known = statistic(rows, **settings)
        bounded = known if at_least is None else known.fillna(at_least(rows, **settings))
        n_bounds = int((known.isna() & bounded.notna()).sum())
        values = finite(bounded)
        found = over_seeds(values, undefined, units=CASES, decimals=DECIMALS)
        marks = [*found.marks]
        if n_bounds:
            cut = f"{n_bounds} of {len(values)} values are lower bounds"
            marks.append(f"{cut}: the end of training cuts a band")
            if undefined != VOIDS or values.notna().all():
                found = found._replace(upper=np.inf)
        if len(found.values) == 1 and ends:
            lower, upper = (mean_by("seed", finite(end(rows))).mean() for end in ends)
            found = found._replace(lower=lower, upper=upper, over="training strings")
        if remark is not None:
            marks.append(remark(rows))
        marks += mean_marks({name: finite(of(rows)) for name, of in (beside or {}).items()})
        return about_rows(found._replace(marks=tuple(marks)), rows, settings.get("measure"))

    return estimate


def low_minus_high(
    statistic: Statistic, at_least: Statistic | None = None, **settings
) -> Callable[[pd.DataFrame], Estimate]:
    """`estimator` of the difference: language of low entropy minus its counterpart.

    `at_least` is a lower bound of the statistic in the language of low entropy.
    """

    def minus_high(of_low: Statistic, table: pd.DataFrame, **settings) -> pd.Series:
        ((low, high),) = pairs_of_entropy(table)
        sides = [table[table["language"] == language] for language in (low, high)]
        return of_low(sides[0], **settings) - statistic(sides[1], **settings)

    bound = None if at_least is None else partial(minus_high, at_least)
    return estimator(partial(minus_high, statistic), at_least=bound, **settings)


def in_lowest_model(statistic: Statistic, **settings) -> Callable[[pd.DataFrame], Estimate]:
    """`estimates.lowest` of the models' means over the seeds.

    If a model has one seed, or all its seeds give the same value, there is no interval.
    """

    def estimate(table: pd.DataFrame) -> Estimate:
        rows = used(table)
        values = finite(statistic(rows, **settings)).dropna()
        parts = [mean_by("seed", own) for _, own in values.groupby("model")]
        found = lowest(parts, SEEDS_OF_MODELS, needs_spread=True, decimals=DECIMALS)
        if not found.values:
            return found
        found = found._replace(models=mean_by("model", values).to_dict())
        return about_rows(found, rows, settings.get("measure"))

    return estimate


def finite(values: pd.Series) -> pd.Series:
    """The values as floats; infinite ones are undefined."""
    values = values.astype(float)
    return values.where(np.isfinite(values))


def used(table: pd.DataFrame, variants: tuple[str, ...] = ()) -> pd.DataFrame:
    rows = table[table["seed"].notna()]  # a null seed is a mean over the seeds
    return rows[rows["variant"].isin(variants)] if variants else rows


def about_rows(found: Estimate, rows: pd.DataFrame, measure: str | None) -> Estimate:
    """The estimate with its coverage and a mark, from rows of `measure` (None: of all measures)."""
    if measure is not None and "measure" in rows:
        rows = rows[rows["measure"] == measure]
    coverage = rows["coverage"].min() if "coverage" in rows else np.nan
    return found._replace(coverage=coverage, marks=(*still_learning(rows), *found.marks))


def still_learning(rows: pd.DataFrame) -> tuple[str, ...]:
    """A mark that some runs may still be learning; none if the table does not say so."""
    if "still_learning" not in rows:
        return ()
    runs = rows.drop_duplicates([key for key in RUN if key in rows])["still_learning"]
    return (f"{runs.sum()} of {len(runs)} runs may still be learning",) if runs.any() else ()


# The languages on which a claim is tested.


def pairs_of_entropy(study: pd.DataFrame) -> list[tuple[str, str]]:
    """The pairs of languages in a table: a language, and its counterpart of higher entropy.

    A pair has the same rules with other probabilities, so the languages differ in nothing else.
    """
    named = study.dropna(subset="counterpart").drop_duplicates("language")
    there = set(study["language"])
    pairs = zip(named["language"], named["counterpart"], strict=True)
    return [(low, high) for low, high in pairs if high in there]


def low_and_high_entropy(study: pd.DataFrame) -> list[Case]:
    """One case for each pair of languages, with both languages; [] if there is no pair."""
    cases = []
    for low, high in pairs_of_entropy(study):
        both = study[study["language"].isin([low, high])]
        n_models = both.groupby("model")["language"].nunique().eq(2).sum()
        cases.append(Case(f"{low} - {high}", int(n_models), (both,)))
    return cases


def low_entropy(study: pd.DataFrame) -> list[Case]:
    return _each(study, [low for low, _ in pairs_of_entropy(study)])


def high_entropy(study: pd.DataFrame) -> list[Case]:
    return _each(study, [high for _, high in pairs_of_entropy(study)])


def _each(study: pd.DataFrame, languages: list[str]) -> list[Case]:
    chosen = [study[study["language"] == name] for name in dict.fromkeys(languages)]
    return [Case(rows["language"].iloc[0], rows["model"].nunique(), (rows,)) for rows in chosen]


# Rows and units.


def per_unit(
    frame: pd.DataFrame, statistic: Callable[[pd.DataFrame], float], unit: list[str] = UNIT
) -> pd.Series:
    """One number per unit, from the unit's rows; by default, a unit is a model, size and seed."""
    groups = list(frame.groupby(unit))
    index = pd.MultiIndex.from_frame(pd.DataFrame([key for key, _ in groups], columns=unit))
    return pd.Series([statistic(group) for _, group in groups], index=index, dtype=float)


def at_optimum(study: pd.DataFrame, column: str, measure: str) -> pd.Series:
    rows = study[(study["measure"] == measure) & (study["epoch"] == study["optimal_epoch"])]
    return rows.set_index(UNIT)[column]


# Statistics of the targets: one row per target, or per target and epoch.


def curves(exact: pd.DataFrame, measure: str, evidence: str = "retraining") -> pd.DataFrame:
    """Rows of one measure; the evidence of recollection is always `constant`."""
    if measure.startswith("recollection"):
        evidence = "constant"
    return exact[(exact["measure"] == measure) & (exact["evidence"] == evidence)]


def at_the_end(exact: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One row per target, at the last epoch; `start` is inf if memorisation never starts."""
    last = curves(exact, measure)
    last = last[last["epoch"] == last["epoch"].max()]
    return last.assign(start=last["start"].fillna(np.inf))


def equal_by_chance(exact: pd.DataFrame) -> str:
    """The probability of equal rank associations in all seeds if targets come in random order."""
    n_targets, n_seeds, n_models = (exact[key].nunique() for key in ("role", "seed", "model"))
    chance = chance_of_equal_orders(n_targets, n_seeds, n_models)
    return (
        f"if the {n_targets} targets came in random order, the {n_seeds} seeds would give the same "
        f"value in {100 * chance:.2g} % of cases"
    )


def frequent_earlier(exact: pd.DataFrame, measure: str) -> pd.Series:
    """Rank association of occurrence frequency with early start; targets without start are last."""
    return per_unit(
        at_the_end(exact, measure), lambda unit: rank_association(unit["count"], -unit["start"])
    )


def frequent_threshold(exact: pd.DataFrame) -> pd.Series:
    """Rank association of occurrence frequency with the optimal contextual loss."""
    return per_unit(
        at_the_end(exact, "contextual"),
        lambda unit: rank_association(unit["count"], unit["threshold"]),
    )


def order_disagreement(exact: pd.DataFrame, one: str, other: str) -> pd.Series:
    """Share of pairs of targets whose order of start differs between two measures."""
    return per_unit(
        beside(exact, one, other),
        lambda unit: off_diagonal_mean(
            pair_order(unit["start_one"]) != pair_order(unit["start_other"])
        ),
    )


def start_disagreement(exact: pd.DataFrame, one: str, other: str) -> pd.Series:
    """Share of targets whose start differs between two measures."""
    return per_unit(
        beside(exact, one, other),
        lambda unit: (unit["start_one"] != unit["start_other"]).mean(),
    )


def starts_later(exact: pd.DataFrame, one: str, other: str) -> pd.Series:
    """Share of targets whose start is later by the measure `one` than by the measure `other`."""
    return per_unit(
        beside(exact, one, other), lambda unit: (unit["start_one"] > unit["start_other"]).mean()
    )


def beside(exact: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """The targets at the last epoch under two measures; columns end in `_one` and `_other`."""
    return at_the_end(exact, one).merge(
        at_the_end(exact, other), on=[*UNIT, "role"], suffixes=("_one", "_other")
    )


def loss_above_without(exact: pd.DataFrame) -> pd.Series:
    """Share of (target, epoch) pairs whose loss is above the loss without the target."""
    return at_the_end(exact, "counterfactual").groupby(UNIT)["assumption_broken"].mean()


def middle_threshold_from_test_loss(exact: pd.DataFrame) -> pd.Series:
    """Relative distance of the mid-frequent target's optimal contextual loss from test loss."""
    return per_unit(curves(exact, "contextual"), _middle_threshold_from_test_loss)


def _middle_threshold_from_test_loss(unit: pd.DataFrame) -> float:
    targets = unit.drop_duplicates("role").sort_values("count", ascending=False, kind="stable")
    middle = targets["role"].iloc[len(targets) // 2]
    target = unit[unit["role"] == middle]
    return abs(target["threshold"].iloc[0] / target["test_loss"].min() - 1)


def both_scores(exact: pd.DataFrame) -> pd.DataFrame:
    scored = exact[exact["evidence"] == "retraining"]
    scores = scored.set_index([*UNIT, "role", "epoch", "measure"])["score"].unstack("measure")
    return scores.reindex(columns=["counterfactual", "contextual"]).reset_index()


def contextual_above_counterfactual(exact: pd.DataFrame) -> pd.Series:
    """Largest excess of the contextual over the counterfactual score, rounded to 12 decimals."""
    scores = both_scores(exact)
    excess = (scores["contextual"] - scores["counterfactual"]).round(12)
    return scores.assign(excess=excess).groupby(UNIT)["excess"].max()


def counterfactual_overestimates(exact: pd.DataFrame) -> pd.Series:
    """Share of pairs (target, epoch) whose counterfactual score is above the contextual score.

    Only pairs that are memorised counterfactually count.
    """
    scores = both_scores(exact)
    scores = scores[scores["counterfactual"] > 0]
    above_contextual = scores["counterfactual"] > scores["contextual"]
    return scores.assign(above=above_contextual).groupby(UNIT)["above"].mean()


def scores_differ(exact: pd.DataFrame) -> pd.Series:
    """Mean distance of the counterfactual from the contextual score at the last epoch."""
    scores = both_scores(exact)
    scores = scores[scores["epoch"] == scores["epoch"].max()]
    distance = (scores["counterfactual"] - scores["contextual"]).abs()
    return scores.assign(distance=distance).groupby(UNIT)["distance"].mean()


def score_increases(exact: pd.DataFrame, measure: str) -> pd.Series:
    """Rank association of the epoch with a target's score from its start on, mean over targets.

    Single steps would not do: where the score is saturated, half of its steps fall by chance.
    """
    scored = curves(exact, measure)
    started = scored[scored["epoch"] >= scored["start"]]
    by_target = per_unit(
        started, lambda rows: rank_association(rows["epoch"], rows["score"]), [*UNIT, "role"]
    )
    return by_target.groupby(UNIT).mean()


def score_range(exact: pd.DataFrame, measure: str) -> pd.Series:
    return per_unit(at_the_end(exact, measure), lambda unit: np.ptp(unit["score"]))


def stand_in_error(exact: pd.DataFrame) -> pd.Series:
    """Mean relative distance of the stand-ins' loss from the loss without the target."""
    keys = [*UNIT, "role", "epoch"]
    retrained = curves(exact, "contextual").set_index(keys)["loss_without"]
    stand_in = curves(exact, "contextual", "same-frequency").set_index(keys)["loss_without"]
    return ((stand_in - retrained).abs() / retrained).groupby(UNIT).mean()


# Statistics of cheaper thresholds.


def agreement_mean(
    agreement: pd.DataFrame, column: str, measure: str, absolute: bool = False
) -> pd.Series:
    """Mean over the targets of a column of `agreement`, or of its absolute value."""
    rows = agreement[agreement["measure"] == measure].set_index(UNIT)[column]
    return (rows.abs() if absolute else rows).groupby(UNIT).mean()


def quality(
    approximation: pd.DataFrame,
    measure: str,
    quantity: str,
    statistic: str,
    column: str = "value",
    replicate: bool = False,
) -> pd.Series:
    """A statistic of a measure's approximation over all strings, or an end of its interval.

    With `replicate`, it is the statistic of retraining once more, in place of an approximation.
    """
    wanted = {"group": "all", "measure": measure, "quantity": quantity, "statistic": statistic}
    chosen = (approximation[list(wanted)] == pd.Series(wanted)).all(axis=1)
    chosen &= (approximation["evidence"] == "replicate") == replicate
    return approximation[chosen].set_index(UNIT)[column]


def minus_ceiling(
    approximation: pd.DataFrame, measure: str, quantity: str, statistic: str
) -> pd.Series:
    """A statistic of agreement with retraining, minus that of retraining once more.

    Two equal retrainings agree only as far as chance in training allows. This is a mild standard:
    an approximation without any noise agrees better with a retraining than another retraining does
    (the square root of a correlation of two replicates, for correlations).
    """
    found = quality(approximation, measure, quantity, statistic)
    return found - ceiling(approximation, measure, quantity, statistic)


def ceiling(approximation: pd.DataFrame, measure: str, quantity: str, statistic: str) -> pd.Series:
    """A statistic of how well retraining once more agrees with retraining.

    The Bayes-optimal loss is compared with contextual memorisation, so it has the same ceiling.
    """
    exactly = "contextual" if measure == "bayes" else measure
    return quality(approximation, exactly, quantity, statistic, replicate=True)


LIMITS = {"correlation": DIFFERENCE, "same_verdict": SHARE}  # all other statistics are errors


def of_every_string(
    question: str, claim: str, words: str, region: Region, evidence: tuple[str, ...], **of
) -> Claim:
    """A claim on a statistic of the approximation over all strings; `of` goes to `quality`."""
    value, *ends = (partial(quality, **of, column=name) for name in ("value", "lower", "upper"))
    estimate = estimator(value, tuple(ends))
    limits = LIMITS.get(of["statistic"], NOT_NEGATIVE)
    return Claim(
        question, claim, "approximation", words, region, estimate, limits=limits, evidence=evidence
    )


def defined_languages(approximation: pd.DataFrame, **of) -> list[Case]:
    """One case for each language on which a statistic of `quality` is defined in any run."""
    return [
        case
        for case in each_language(approximation)
        if np.isfinite(quality(*case.tables, **of).astype(float)).any()
    ]


def agrees_as_replicate(
    question: str, claim: str, words: str, margin: float, evidence: tuple[str, ...], **of
) -> Claim:
    """A claim that an approximation agrees with retraining nearly as well as retraining itself.

    `margin` is how far below the ceiling it may be; `of` goes to `minus_ceiling`. The claim is not
    tested on a language on which the statistic cannot be defined: if all strings are equally
    probable, the approximation gives all of them the same value.
    """
    return Claim(
        question,
        claim,
        "approximation",
        f"{words}, minus that of retraining once more with other initial weights (the ceiling)",
        at_least(-margin),
        estimator(
            partial(minus_ceiling, **of),
            beside={
                "the approximation's": partial(quality, **of),
                "that of retraining once more": partial(ceiling, **of),
            },
        ),
        partial(defined_languages, **of),
        limits=(-2, 2),
        evidence=evidence,
    )
