"""The claims of the paper, each with the statistic that tests it and the verdict of this study.

One rule judges all: the statistic is computed for every seed (averaged over the models), its mean
has a 95 % interval over the seeds (Student t), and the study agrees if the whole interval lies in
the region in which the claim holds, disagrees if the whole interval lies outside, and else cannot
tell. Where every training string was retrained without and there is only one seed, the interval is
over the strings (bootstrap), and then says nothing of other seeds. That strings are memorised is a
claim about training: where a measure can be applied to strings that were never trained on, only
what it finds beyond that counts. A claim is added by adding one `Claim` to `CLAIMS`.

Source: Learning Without Memorizing Considered Infeasible; the claims stand in the order in which
the paper makes them, question by question; those on false alarms, on ranks and on the Bayes
threshold are Palimpsest's own. Where the paper gives a word ("strongly", "almost all"), the number
for it is the choice of the margins below.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from palimpsest import tables

UNIT = ["model", "size", "seed"]
CONFIDENCE = 0.95

STRONG = 0.5  # rank association called strong; below it, or inverse, called uncorrelated
ALMOST_ALL = 0.9  # share of strings called almost all
NEXT_TO_NONE = 0.1  # share of strings called none, or too few to be sizable
NEARLY_EQUAL = 0.1  # difference of shares or scores, or relative difference of losses
USUALLY = 0.5  # share of cases called usual, typical or often
RARE = 0.05  # share of cases called rare
SAME_ORDER = 0.9  # rank correlation at which two orders are called the same


class Region(NamedTuple):
    """The closed interval of a statistic in which a claim holds, and how a reader is told."""

    low: float
    high: float
    text: str


def above(bound: float) -> Region:
    """Strictly above: the closed interval begins at the next number."""
    return Region(np.nextafter(bound, np.inf), np.inf, f"> {bound:g}")


def below(bound: float) -> Region:
    """Strictly below."""
    return Region(-np.inf, np.nextafter(bound, -np.inf), f"< {bound:g}")


def at_least(bound: float) -> Region:
    """The bound or above."""
    return Region(bound, np.inf, f">= {bound:g}")


def at_most(bound: float) -> Region:
    """The bound or below."""
    return Region(-np.inf, bound, f"<= {bound:g}")


def between(low: float, high: float) -> Region:
    """From one bound to the other, both included."""
    return Region(low, high, f"{low:g} to {high:g}")


@dataclass(frozen=True)
class Claim:
    """One claim that a study can test.

    `value` takes the study's table of one language and returns a Series of the statistic, whose
    index has a level `seed` beside others (model, family, size). `language` says on which it is
    tested: on each, on that of the highest or lowest entropy, or as the difference of the two.
    `by_construction` says that the definitions alone put the statistic where the claim holds.
    `ends` gives, as `value` does, the ends of an interval over the strings of a seed; it judges
    where there is one seed only.
    """

    question: str
    claim: str
    study: str
    statistic: str
    region: Region
    value: Callable[[pd.DataFrame], pd.Series] = field(repr=False)
    language: Literal["each", "high", "low", "low - high"] = "each"
    by_construction: bool = False
    ends: tuple[Callable, Callable] | None = field(default=None, repr=False)

    def interval(self, table: pd.DataFrame) -> tuple[float, float]:
        """The interval over the strings, its ends averaged over models; NaN if there is none."""
        if self.ends is None:
            return np.nan, np.nan
        return tuple(by_seed(end(table)).mean() for end in self.ends)


def claims(
    studies: dict[str, pd.DataFrame],
    agreement: pd.DataFrame | None = None,
    approximation: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The table `claims`: a row for every claim and language on which it was tested.

    Parameters
    ----------
    studies : dict of study tables
        Keys among tradeoff, frequency, deduplication, training_size, model_size and disagreement.
        A claim whose study is absent has one row, without a language: cannot tell.
    agreement : `agreement` tables, stacked over models and languages
    approximation : `approximation` tables, likewise
    """
    given = {**studies, "agreement": agreement, "approximation": approximation}
    rows = [
        {
            "question": claim.question,
            "claim": claim.claim,
            "statistic": claim.statistic,
            "agrees_if": claim.region.text,
            "language": language,
            "n_models": n_models,
            **judge(values, claim.region, over_strings),
            # A start at the first crossing leaves more open: a value outside was not decided.
            "by_construction": claim.by_construction
            and bool(values.between(claim.region.low, claim.region.high).all()),
        }
        for claim in CLAIMS
        for language, n_models, values, over_strings in tested(claim, given.get(claim.study))
    ]
    return pd.DataFrame(rows, columns=tables.KINDS["claims"].schema.names)


NO_INTERVAL = (np.nan, np.nan)


def tested(
    claim: Claim, table: pd.DataFrame | None
) -> list[tuple[str, int, pd.Series, tuple[float, float]]]:
    """Language, number of models, the statistic by seed and its interval over the strings.

    One for every language, or pair of them, on which the claim can be tested.
    """
    # A null seed is the mean over the seeds, which has no spread of its own.
    rows = pd.DataFrame() if table is None else table[table["seed"].notna()]
    frames = {} if rows.empty else dict(list(rows.groupby("language")))
    if claim.language == "each" and frames:
        return [
            (
                language,
                frame["model"].nunique(),
                by_seed(claim.value(frame)),
                claim.interval(frame),
            )
            for language, frame in frames.items()
        ]
    if claim.language == "each" or len(frames) < 2:
        return [("", 0, pd.Series(dtype=float), NO_INTERVAL)]
    low, high = extremes_of_entropy(rows)
    if claim.language == "low - high":
        difference = claim.value(frames[low]) - claim.value(frames[high])
        models = set(frames[low]["model"]) & set(frames[high]["model"])
        return [(f"{low} - {high}", len(models), by_seed(difference), NO_INTERVAL)]
    chosen = frames[{"low": low, "high": high}[claim.language]]
    values = by_seed(claim.value(chosen))
    return [(chosen["language"].iloc[0], chosen["model"].nunique(), values, NO_INTERVAL)]


def extremes_of_entropy(table: pd.DataFrame) -> tuple[str, str]:
    """The languages of the lowest and of the highest entropy per token, by Bayes-optimal loss."""
    entropy = table.groupby("language")["optimal_test_loss"].mean()
    return entropy.idxmin(), entropy.idxmax()


def by_seed(values: pd.Series) -> pd.Series:
    """The statistic by seed, averaged over models and sizes; undefined ones are left out."""
    values = values.astype(float)
    finite = values[np.isfinite(values)]
    return finite.groupby(level="seed").mean()


def judge(
    values: pd.Series, region: Region, over_strings: tuple[float, float] = NO_INTERVAL
) -> dict:
    """Estimate, interval and verdict of a statistic by seed; of one seed, over its strings."""
    estimate = round(values.mean(), 12) if len(values) else np.nan
    lower, upper = np.round(over_strings, 12) if len(values) == 1 else NO_INTERVAL
    if len(values) > 1:
        reach = stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2) * values.sem()
        # Rounded: seeds that all give 0.1 must not be told from 0.1 by their last digit.
        lower, upper = np.round([estimate - reach, estimate + reach], 12)
    if region.low <= lower and upper <= region.high:
        verdict = "agrees"
    elif upper < region.low or lower > region.high:
        verdict = "disagrees"
    else:
        verdict = "cannot tell"
    return {
        "n_seeds": len(values),
        "estimate": estimate,
        "lower": lower,
        "upper": upper,
        "verdict": verdict,
    }


# Statistics. Each takes the study's table of one language and returns one value per unit.


def per_unit(
    frame: pd.DataFrame, statistic: Callable[[pd.DataFrame], float], unit: list[str] = UNIT
) -> pd.Series:
    """A number for the rows of every unit, by default every model, size and seed."""
    groups = list(frame.groupby(unit))
    index = pd.MultiIndex.from_frame(pd.DataFrame([key for key, _ in groups], columns=unit))
    return pd.Series([statistic(group) for _, group in groups], index=index, dtype=float)


def rank_association(x: np.ndarray, y: np.ndarray) -> float:
    """Somers' D of y given x, in [-1, 1]: ordered alike minus ordered otherwise, of the pairs.

    Pairs of equal x do not count, pairs of equal y count as neither; NaN if all x are equal.
    """
    x_order, y_order = pair_order(x), pair_order(y)
    comparable = np.count_nonzero(x_order)
    return (x_order * y_order).sum() / comparable if comparable else np.nan


def pair_order(values: np.ndarray) -> np.ndarray:
    """Sign int[n, n] of the difference of every pair; inf is a value like any other."""
    rank = np.unique(np.asarray(values, dtype=float), return_inverse=True)[1]
    return np.sign(rank[:, None] - rank)


# ... of the targets: one row per target, or per target and epoch.


def curves(exact: pd.DataFrame, measure: str, evidence: str = "retraining") -> pd.DataFrame:
    """Rows of one measure; recollection needs no retraining, so its evidence is constant."""
    if measure.startswith("recollection"):
        evidence = "constant"
    return exact[(exact["measure"] == measure) & (exact["evidence"] == evidence)]


def at_the_end(exact: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One row per target, at the last epoch, with `start` inf if never."""
    last = curves(exact, measure)
    last = last[last["epoch"] == last["epoch"].max()]
    return last.assign(start=last["start"].fillna(np.inf))


def frequent_earlier(exact: pd.DataFrame, measure: str) -> pd.Series:
    """Rank association of occurrence frequency with early memorisation; never is last."""
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


def off_diagonal_mean(matrix: np.ndarray) -> float:
    """Mean over the pairs of different items; NaN if there is only one item."""
    pairs = len(matrix) * (len(matrix) - 1)
    return matrix.sum() / pairs if pairs else np.nan


def start_disagreement(exact: pd.DataFrame, one: str, other: str) -> pd.Series:
    """Share of targets whose start differs between two measures."""
    return per_unit(
        beside(exact, one, other),
        lambda unit: (unit["start_one"] != unit["start_other"]).mean(),
    )


def starts_later(exact: pd.DataFrame, one: str, other: str) -> pd.Series:
    """Share of targets that one measure has start later than the other."""
    return per_unit(
        beside(exact, one, other), lambda unit: (unit["start_one"] > unit["start_other"]).mean()
    )


def beside(exact: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """The targets at the end under two measures, columns suffixed `_one` and `_other`."""
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
    """Counterfactual and contextual score of every target at every epoch, side by side."""
    scored = exact[exact["evidence"] == "retraining"]
    scores = scored.set_index([*UNIT, "role", "epoch", "measure"])["score"].unstack("measure")
    return scores.reindex(columns=["counterfactual", "contextual"]).reset_index()


def contextual_above_counterfactual(exact: pd.DataFrame) -> pd.Series:
    """Largest excess of the contextual score over the counterfactual one, to 12 decimals."""
    scores = both_scores(exact)
    excess = (scores["contextual"] - scores["counterfactual"]).round(12)
    return scores.assign(excess=excess).groupby(UNIT)["excess"].max()


def counterfactual_overestimates(exact: pd.DataFrame) -> pd.Series:
    """Share of the counterfactually memorised pairs (target, epoch) scored above contextually."""
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
    """Share of the epochs after a target's start at which its score does not fall."""
    scored = curves(exact, measure).sort_values("epoch")
    step = scored.groupby([*UNIT, "role"])["score"].diff()
    after = scored.assign(rises=step >= 0)[scored["epoch"] > scored["start"]]
    return after.groupby(UNIT)["rises"].mean()


def score_range(exact: pd.DataFrame, measure: str) -> pd.Series:
    """Largest minus smallest score of the targets at the last epoch."""
    return per_unit(at_the_end(exact, measure), lambda unit: np.ptp(unit["score"]))


def stand_in_error(exact: pd.DataFrame) -> pd.Series:
    """Mean relative distance of the stand-ins' loss from the loss without the target."""
    keys = [*UNIT, "role", "epoch"]
    retrained = curves(exact, "contextual").set_index(keys)["loss_without"]
    stand_in = curves(exact, "contextual", "same-frequency").set_index(keys)["loss_without"]
    return ((stand_in - retrained).abs() / retrained).groupby(UNIT).mean()


# ... of whole training sets.


def at_optimum(study: pd.DataFrame, column: str, measure: str) -> pd.Series:
    """A column at the epoch of optimal learning."""
    rows = study[(study["measure"] == measure) & (study["epoch"] == study["optimal_epoch"])]
    return rows.set_index(UNIT)[column]


def excess_at_optimum(study: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    """The distinct training strings' fraction or weighted memorisation, less its false alarms.

    A measure that calls as many strings memorised that were never trained on has an excess of 0.
    """
    trained = at_optimum(study, f"{quantity}_distinct", measure)
    return trained - at_optimum(study, f"{quantity}_unseen", measure)


def least_excess_at_optimum(study: pd.DataFrame) -> pd.Series:
    """The lowest excess fraction that any of the paper's three measures gives."""
    measures = ("recollection", "counterfactual", "contextual")
    excess = [excess_at_optimum(study, "fraction", measure) for measure in measures]
    # Undefined under one measure: it is not known which is the lowest.
    return pd.concat(excess, axis=1).min(axis=1, skipna=False)


def largest_fall(study: pd.DataFrame, column: str, measure: str) -> pd.Series:
    """Largest fall of a column from one epoch to the next; 0 if it never falls."""
    curve = study[study["measure"] == measure].sort_values("epoch")
    fall = -curve.groupby(UNIT)[column].diff()
    return curve.assign(fall=fall.clip(lower=0).round(12)).groupby(UNIT)["fall"].max()


def runs_of(study: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One row per run with its `last_epoch`, for columns that are the same at every epoch."""
    rows = study[study["measure"] == measure]
    last = rows.groupby(UNIT)["epoch"].max().rename("last_epoch")
    return rows.drop_duplicates(UNIT).set_index(UNIT).join(last)


def band_width(study: pd.DataFrame, measure: str) -> pd.Series:
    """Epochs from the first to the last start of memorisation, as a share of the training."""
    run = runs_of(study, measure)
    return (run["band_last"] - run["band_first"]) / run["last_epoch"]


def optimum_in_band(study: pd.DataFrame, measure: str) -> pd.Series:
    """1 if the epoch of optimal learning lies in the band, 0 if not, NaN if there is no band."""
    run = runs_of(study, measure)
    inside = run["optimal_epoch"].between(run["band_first"], run["band_last"])
    return inside.astype(float).where(run["band_first"].notna())


def cost_of_stopping_early(study: pd.DataFrame, measure: str) -> pd.Series:
    """Relative excess of the test loss over its minimum, just before any string is memorised."""
    return per_unit(study[study["measure"] == measure], _cost_of_stopping_early)


def _cost_of_stopping_early(unit: pd.DataFrame) -> float:
    unit = unit.sort_values("epoch")
    first = unit["band_first"].fillna(np.inf)
    # A string memorised from the first measurement on leaves only the untrained model.
    before = unit[unit["epoch"] < first] if (unit["epoch"] < first).any() else unit[:1]
    return before["test_loss"].min() / unit["test_loss"].min() - 1


# ... of frequent and infrequent strings.


def top_minus_bottom(study: pd.DataFrame, column: str, measure: str) -> pd.Series:
    """A column of the most frequent strings minus the least frequent, at optimal learning."""
    group = study["group"]
    top = at_optimum(study[group == "top"], column, measure)
    return top - at_optimum(study[group == "bottom"], column, measure)


def contradiction(study: pd.DataFrame) -> pd.Series:
    """How much more the frequent strings stand out by recollection than contextually."""
    column = "fraction_distinct"
    return top_minus_bottom(study, column, "recollection") - top_minus_bottom(
        study, column, "contextual"
    )


# ... of variants of the training data.


def variant(study: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of one variant."""
    return study[study["variant"] == name]


def start_delay(study: pd.DataFrame, measure: str) -> pd.Series:
    """Epochs by which the middle of the band of starts comes later under deduplication."""
    return _middle_start(study, "dedup", measure) - _middle_start(study, "base", measure)


def _middle_start(study: pd.DataFrame, name: str, measure: str) -> pd.Series:
    run = runs_of(variant(study, name), measure)
    # What never starts does so after the last epoch, at the earliest.
    return ((run["start_p10"] + run["start_p90"]) / 2).fillna(run["last_epoch"] + 1)


def band(study: pd.DataFrame, name: str, measure: str) -> pd.Series:
    """Epochs from the 10 % to the 90 % quantile of the starts of a variant."""
    run = runs_of(variant(study, name), measure)
    return run["start_p90"] - run["start_p10"]


def band_widening(study: pd.DataFrame, other: str, measure: str) -> pd.Series:
    """Width of the band under deduplication minus that of another variant, share of training."""
    epochs = runs_of(variant(study, "dedup"), measure)["last_epoch"]
    return (band(study, "dedup", measure) - band(study, other, measure)) / epochs


def optimum_delay(study: pd.DataFrame) -> pd.Series:
    """Epochs by which optimal learning comes later under deduplication."""
    dedup, base = (runs_of(variant(study, name), "contextual") for name in ("dedup", "base"))
    return dedup["optimal_epoch"] - base["optimal_epoch"]


def excess_before_optimum(study: pd.DataFrame, measure: str) -> pd.Series:
    """Fraction memorised beyond the false alarms, one measurement before optimal learning.

    Under deduplication; where the untrained model is the best there is nothing before it.
    """
    rows = variant(study, "dedup")
    before = rows[(rows["measure"] == measure) & (rows["epoch"] < rows["optimal_epoch"])]
    last = before.sort_values("epoch").groupby(UNIT).tail(1).set_index(UNIT)
    return last["fraction_distinct"] - last["fraction_unseen"]


def spread(study: pd.DataFrame, name: str) -> pd.Series:
    """Standard deviation of the loss over the test strings of a variant at optimal learning."""
    return at_optimum(variant(study, name), "test_spread", "contextual")


def spread_ratio(study: pd.DataFrame) -> pd.Series:
    """Spread of the test strings under deduplication, relative to the base."""
    return spread(study, "dedup") / spread(study, "base")


def spread_above_matched(study: pd.DataFrame) -> pd.Series:
    """Spread of the test strings under deduplication minus that of the matched data."""
    return spread(study, "dedup") - spread(study, "dedup-matched")


def slower_training(study: pd.DataFrame) -> pd.Series:
    """Training loss under deduplication minus the base's, mean over the epochs."""
    rows = study[study["measure"] == "contextual"]
    mean = rows.groupby([*UNIT, "variant"])["train_loss"].mean().unstack("variant")
    return mean.reindex(columns=["base", "dedup"]).eval("dedup - base")


# ... across training sets and models of several sizes.


def with_size(study: pd.DataFrame, column: str, measure: str = "contextual") -> pd.Series:
    """Rank association of the training size with a column, at optimal learning."""
    rows = study[(study["measure"] == measure) & study[column].notna()]
    return per_unit(
        rows, lambda unit: rank_association(unit["size"], unit[column]), ["model", "seed"]
    )


def with_test_loss(study: pd.DataFrame, measure: str) -> pd.Series:
    """Rank association of the lowest test loss with weighted memorisation, within families."""
    rows = study[(study["measure"] == measure) & (study["epoch"] == study["optimal_epoch"])]
    return per_unit(
        rows,
        lambda unit: rank_association(unit["test_loss"], unit["weighted"]),
        ["family", "size", "seed"],
    )


# ... of cheaper thresholds.


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
    column: str,
) -> pd.Series:
    """A statistic of a measure's approximation, or an end of its interval, over all strings."""
    wanted = {"group": "all", "measure": measure, "quantity": quantity, "statistic": statistic}
    chosen = (approximation[list(wanted)] == pd.Series(wanted)).all(axis=1)
    return approximation[chosen].set_index(UNIT)[column]


def of_every_string(question: str, claim: str, words: str, region: Region, **of: str) -> Claim:
    """A claim on one statistic of the approximation, as `quality` takes it, over all strings."""
    value, *ends = (partial(quality, **of, column=name) for name in ("value", "lower", "upper"))
    return Claim(question, claim, "approximation", words, region, value, ends=tuple(ends))


CLAIMS = [
    Claim(
        "RQ1",
        "The greater the frequency of a string, the earlier recollection has it memorised.",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with early start, recollection; "
        "never is last",
        above(0),
        partial(frequent_earlier, measure="recollection"),
    ),
    Claim(
        "RQ1",
        "Recollection-based memorisation is strongly correlated with occurrence frequency.",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with early start, recollection",
        at_least(STRONG),
        partial(frequent_earlier, measure="recollection"),
    ),
    Claim(
        "RQ1",
        "The correlation of frequency with the order of memorisation is the same for other "
        "recollection measures (here by accuracy).",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with early start, recollection by "
        "accuracy",
        above(0),
        partial(frequent_earlier, measure="recollection_accuracy"),
    ),
    Claim(
        "RQ1",
        "The order of counterfactual memorisation is uncorrelated, at times inversely correlated, "
        "with frequency.",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with early start, counterfactual",
        below(STRONG),
        partial(frequent_earlier, measure="counterfactual"),
    ),
    Claim(
        "RQ1",
        "The order of contextual memorisation is uncorrelated, at times inversely correlated, "
        "with frequency.",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with early start, contextual",
        below(STRONG),
        partial(frequent_earlier, measure="contextual"),
    ),
    Claim(
        "RQ1",
        "More frequent strings have a lower optimal contextual loss.",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with optimal contextual loss",
        below(0),
        frequent_threshold,
    ),
    Claim(
        "RQ1",
        "The optimal contextual loss of the mid-frequent string is close to the test loss.",
        "disagreement",
        "relative distance of the optimal contextual loss of the middle target from the lowest "
        "test loss",
        at_most(NEARLY_EQUAL),
        middle_threshold_from_test_loss,
    ),
    Claim(
        "RQ1",
        "Measures disagree on the start of memorisation of the same strings.",
        "disagreement",
        "share of targets whose start differs between recollection and contextual memorisation",
        above(0),
        partial(start_disagreement, one="recollection", other="contextual"),
    ),
    Claim(
        "RQ1",
        "Measures disagree on the order in which strings are memorised.",
        "disagreement",
        "share of pairs of targets ordered differently by recollection and contextual memorisation",
        above(0),
        partial(order_disagreement, one="recollection", other="contextual"),
    ),
    Claim(
        "RQ1",
        "Counterfactual memorisation starts no later than contextual memorisation (Lemma 1).",
        "disagreement",
        "share of targets whose counterfactual start is later; 0 by construction, as both starts "
        "follow one rule and the contextual threshold is the lower",
        at_most(0),
        partial(starts_later, one="counterfactual", other="contextual"),
        by_construction=True,
    ),
    Claim(
        "RQ1",
        "Counterfactual memorisation precedes contextual memorisation.",
        "disagreement",
        "share of targets whose contextual start is strictly later than the counterfactual one",
        at_least(USUALLY),
        partial(starts_later, one="contextual", other="counterfactual"),
    ),
    Claim(
        "RQ1",
        "The loss of a string in training is not above its counterfactual loss (the assumption "
        "in the proof of Lemma 1).",
        "disagreement",
        "share of (target, epoch) pairs whose loss is above the loss without the target",
        at_most(RARE),
        loss_above_without,
    ),
    Claim(
        "RQ2",
        "The contextual score is a lower bound of the counterfactual score (Lemma 1).",
        "disagreement",
        "largest excess of the contextual score over the counterfactual one, all targets and "
        "epochs; 0 by construction",
        at_most(0),
        contextual_above_counterfactual,
        by_construction=True,
    ),
    Claim(
        "RQ2",
        "Counterfactual memorisation often overestimates contextual memorisation.",
        "disagreement",
        "share of counterfactually memorised (target, epoch) pairs whose contextual score is lower",
        at_least(USUALLY),
        counterfactual_overestimates,
    ),
    Claim(
        "RQ2",
        "The counterfactual score usually increases with epochs.",
        "disagreement",
        "share of epochs after the start at which the score does not fall, counterfactual",
        at_least(USUALLY),
        partial(score_increases, measure="counterfactual"),
    ),
    Claim(
        "RQ2",
        "The contextual score usually increases with epochs.",
        "disagreement",
        "share of epochs after the start at which the score does not fall, contextual",
        at_least(USUALLY),
        partial(score_increases, measure="contextual"),
    ),
    Claim(
        "RQ2",
        "There is no substantial difference in counterfactual score among strings of varying "
        "frequency.",
        "disagreement",
        "largest minus smallest score of the targets at the last epoch, counterfactual",
        at_most(NEARLY_EQUAL),
        partial(score_range, measure="counterfactual"),
    ),
    Claim(
        "RQ2",
        "There is no substantial difference in contextual score among strings of varying "
        "frequency.",
        "disagreement",
        "largest minus smallest score of the targets at the last epoch, contextual",
        at_most(NEARLY_EQUAL),
        partial(score_range, measure="contextual"),
    ),
    Claim(
        "RQ2",
        "Different measures agree on the memorisation score.",
        "disagreement",
        "mean distance of the counterfactual from the contextual score at the last epoch",
        at_most(NEARLY_EQUAL),
        scores_differ,
    ),
    Claim(
        "RQ3",
        "The fraction of strings memorised by recollection increases monotonically with epochs.",
        "tradeoff",
        "largest fall of the fraction from one epoch to the next, recollection; 0 by "
        "construction if the start is after the last miss",
        at_most(0),
        partial(largest_fall, column="fraction", measure="recollection"),
        by_construction=True,
    ),
    Claim(
        "RQ3",
        "The fraction of strings memorised contextually increases monotonically with epochs.",
        "tradeoff",
        "largest fall of the fraction from one epoch to the next, contextual; 0 by construction "
        "if the start is after the last miss",
        at_most(0),
        partial(largest_fall, column="fraction", measure="contextual"),
        by_construction=True,
    ),
    Claim(
        "RQ3",
        "Memorisation is unavoidable when a language is learned optimally.",
        "tradeoff",
        "fraction of distinct training strings contextually memorised at optimal learning, minus "
        "that of test strings never trained on",
        above(0),
        partial(excess_at_optimum, quantity="fraction", measure="contextual"),
    ),
    Claim(
        "RQ3",
        "Some degree of memorisation is needed for optimal learning.",
        "tradeoff",
        "weighted contextual memorisation of distinct training strings at optimal learning, minus "
        "that of test strings never trained on",
        above(0),
        partial(excess_at_optimum, quantity="weighted", measure="contextual"),
    ),
    Claim(
        "RQ3",
        "Some strings are memorised before optimal learning whichever measure is applied.",
        "tradeoff",
        "fraction of distinct training strings memorised at optimal learning, minus that of test "
        "strings never trained on; the lowest of recollection, counterfactual and contextual "
        "memorisation",
        above(0),
        least_excess_at_optimum,
    ),
    Claim(
        "RQ3",
        "Almost all strings of the high-entropy language are contextually memorised at optimal "
        "learning.",
        "tradeoff",
        "fraction of strings contextually memorised at optimal learning, language of the highest "
        "entropy",
        at_least(ALMOST_ALL),
        partial(at_optimum, column="fraction", measure="contextual"),
        "high",
    ),
    Claim(
        "RQ3",
        "A sizable subset, not almost all, of the strings of the low-entropy language is "
        "contextually memorised at optimal learning.",
        "tradeoff",
        "fraction of strings contextually memorised at optimal learning, language of the lowest "
        "entropy",
        between(NEXT_TO_NONE, ALMOST_ALL),
        partial(at_optimum, column="fraction", measure="contextual"),
        "low",
    ),
    Claim(
        "RQ3",
        "By recollection no strings of the high-entropy language are memorised at optimal "
        "learning.",
        "tradeoff",
        "fraction of strings memorised at optimal learning by recollection, language of the "
        "highest entropy",
        at_most(NEXT_TO_NONE),
        partial(at_optimum, column="fraction", measure="recollection"),
        "high",
    ),
    Claim(
        "RQ3",
        "By recollection almost all strings of the low-entropy language are memorised at optimal "
        "learning.",
        "tradeoff",
        "fraction of strings memorised at optimal learning by recollection, language of the "
        "lowest entropy",
        at_least(ALMOST_ALL),
        partial(at_optimum, column="fraction", measure="recollection"),
        "low",
    ),
    Claim(
        "RQ3",
        "The band of starts by recollection is narrow for the high-entropy language and broad "
        "for the low-entropy one.",
        "tradeoff",
        "width of the band of starts (share of the training), recollection, lowest minus highest "
        "entropy",
        above(0),
        partial(band_width, measure="recollection"),
        "low - high",
    ),
    Claim(
        "RQ3",
        "The band of contextual starts is narrow for the high-entropy language and broad for the "
        "low-entropy one.",
        "tradeoff",
        "width of the band of starts (share of the training), contextual, lowest minus highest "
        "entropy",
        above(0),
        partial(band_width, measure="contextual"),
        "low - high",
    ),
    Claim(
        "RQ3",
        "Optimal learning typically falls within the band of starts by recollection.",
        "tradeoff",
        "share of models whose epoch of optimal learning lies in the band, recollection",
        at_least(USUALLY),
        partial(optimum_in_band, measure="recollection"),
    ),
    Claim(
        "RQ3",
        "Optimal learning typically falls within the band of contextual starts.",
        "tradeoff",
        "share of models whose epoch of optimal learning lies in the band, contextual",
        at_least(USUALLY),
        partial(optimum_in_band, measure="contextual"),
    ),
    Claim(
        "RQ3",
        "Stopping before any string is memorised is acceptable for the high-entropy language.",
        "tradeoff",
        "relative excess of the test loss over its minimum just before the first contextual "
        "start, language of the highest entropy",
        at_most(NEARLY_EQUAL),
        partial(cost_of_stopping_early, measure="contextual"),
        "high",
    ),
    Claim(
        "RQ3",
        "Stopping before any string is memorised is highly sub-optimal for the low-entropy "
        "language.",
        "tradeoff",
        "relative excess of the test loss over its minimum just before the first contextual "
        "start, language of the lowest entropy",
        above(NEARLY_EQUAL),
        partial(cost_of_stopping_early, measure="contextual"),
        "low",
    ),
    Claim(
        "RQ4",
        "By recollection, frequent strings are memorised more than infrequent ones.",
        "frequency",
        "fraction memorised at optimal learning, most minus least frequent strings, recollection",
        above(0),
        partial(top_minus_bottom, column="fraction_distinct", measure="recollection"),
    ),
    Claim(
        "RQ4",
        "Frequent and infrequent strings are almost equally susceptible to contextual "
        "memorisation.",
        "frequency",
        "fraction memorised at optimal learning, most minus least frequent strings, contextual",
        between(-NEARLY_EQUAL, NEARLY_EQUAL),
        partial(top_minus_bottom, column="fraction_distinct", measure="contextual"),
    ),
    Claim(
        "RQ4",
        "Frequent and infrequent strings are almost equally susceptible to counterfactual "
        "memorisation.",
        "frequency",
        "fraction memorised at optimal learning, most minus least frequent strings, counterfactual",
        between(-NEARLY_EQUAL, NEARLY_EQUAL),
        partial(top_minus_bottom, column="fraction_distinct", measure="counterfactual"),
    ),
    Claim(
        "RQ4",
        "Frequent strings are, if anything, contextually memorised less.",
        "frequency",
        "weighted memorisation at optimal learning, most minus least frequent strings, contextual",
        at_most(0),
        partial(top_minus_bottom, column="weighted_distinct", measure="contextual"),
    ),
    Claim(
        "RQ4",
        "Contextual memorisation contradicts recollection on the impact of frequency.",
        "frequency",
        "most minus least frequent strings' fraction memorised at optimal learning: recollection "
        "minus contextual",
        above(0),
        contradiction,
    ),
    Claim(
        "RQ4",
        "Deduplication delays memorisation by recollection.",
        "deduplication",
        "epochs by which the middle of the 10 % to 90 % band of starts is later than the base's, "
        "recollection; never is after the last epoch",
        above(0),
        partial(start_delay, measure="recollection"),
    ),
    Claim(
        "RQ4",
        "Deduplication delays contextual memorisation.",
        "deduplication",
        "epochs by which the middle of the 10 % to 90 % band of starts is later than the base's, "
        "contextual; never is after the last epoch",
        above(0),
        partial(start_delay, measure="contextual"),
    ),
    Claim(
        "RQ4",
        "Deduplication delays learning.",
        "deduplication",
        "epochs by which optimal learning is later than the base's",
        above(0),
        optimum_delay,
    ),
    Claim(
        "RQ4",
        "Deduplication cannot avoid memorisation completely at optimal learning.",
        "deduplication",
        "fraction of distinct training strings contextually memorised at optimal learning, minus "
        "that of test strings never trained on, deduplicated",
        above(0),
        lambda study: excess_at_optimum(variant(study, "dedup"), "fraction", "contextual"),
    ),
    Claim(
        "RQ4",
        "Deduplication does not narrow the band of starts by recollection.",
        "deduplication",
        "width of the 10 % to 90 % band of starts minus the base's (share of the training), "
        "recollection",
        at_least(-RARE),
        partial(band_widening, other="base", measure="recollection"),
    ),
    Claim(
        "RQ4",
        "Deduplication does not narrow the band of contextual starts.",
        "deduplication",
        "width of the 10 % to 90 % band of starts minus the base's (share of the training), "
        "contextual",
        at_least(-RARE),
        partial(band_widening, other="base", measure="contextual"),
    ),
    Claim(
        "RQ5",
        "Optimal learning improves with the training size.",
        "training_size",
        "rank association (Somers' D) of training size with lowest test loss",
        below(0),
        partial(with_size, column="test_loss"),
    ),
    Claim(
        "RQ5",
        "Repetition increases with the training size.",
        "training_size",
        "rank association (Somers' D) of training size with the number of repeated strings",
        above(0),
        partial(with_size, column="n_repeated"),
    ),
    *[
        Claim(
            "RQ5",
            f"A larger training set {verb} {adjective} memorisation of {strings}.",
            "training_size",
            "rank association (Somers' D) of training size with the mean score of "
            f"{strings} at optimal learning, {measure}",
            region,
            partial(with_size, column=column, measure=measure),
        )
        for column, strings in (
            ("weighted", "the training strings"),
            ("weighted_repeated", "repeated strings"),
        )
        for measure, adjective, verb, region in (
            ("recollection", "recollection-based", "increases", above(0)),
            ("counterfactual", "counterfactual", "does not increase", at_most(0)),
            ("contextual", "contextual", "does not increase", at_most(0)),
        )
    ],
    *[
        Claim(
            "RQ5",
            f"Improved learning by models of other sizes comes with less {measure} memorisation.",
            "model_size",
            "rank association (Somers' D) of lowest test loss with weighted memorisation at "
            f"optimal learning, within families, {measure}",
            above(0),
            partial(with_test_loss, measure=measure),
        )
        for measure in ("counterfactual", "contextual")
    ],
    Claim(
        "RQ8",
        "Under deduplication the training loss decreases more slowly.",
        "deduplication",
        "training loss minus the base's, mean over the epochs, nats per token",
        above(0),
        slower_training,
    ),
    Claim(
        "RQ8",
        "Deduplication does not lead to an equal learning of test strings.",
        "deduplication",
        "standard deviation of the loss over test strings at optimal learning, deduplicated "
        "relative to base",
        at_least(1 - 2 * NEARLY_EQUAL),
        spread_ratio,
    ),
    Claim(
        "RQ8",
        "Training on matched data of high entropy, unlike deduplication, lets the test strings be "
        "learned equally.",
        "deduplication",
        "standard deviation of the loss over test strings at optimal learning, deduplicated "
        "minus dedup-matched, nats per token",
        above(0),
        spread_above_matched,
    ),
    Claim(
        "RQ9",
        "Under deduplication strings are memorised at different epochs by recollection.",
        "deduplication",
        "epochs in the 10 % to 90 % band of starts, deduplicated, recollection",
        above(1),
        partial(band, name="dedup", measure="recollection"),
    ),
    Claim(
        "RQ9",
        "Under deduplication strings are contextually memorised at different epochs.",
        "deduplication",
        "epochs in the 10 % to 90 % band of starts, deduplicated, contextual",
        above(1),
        partial(band, name="dedup", measure="contextual"),
    ),
    Claim(
        "RQ9",
        "Deduplication does not make memorisation as simultaneous as matched data of high "
        "entropy does.",
        "deduplication",
        "width of the 10 % to 90 % band of starts minus that of dedup-matched (share of the "
        "training), contextual",
        above(0),
        partial(band_widening, other="dedup-matched", measure="contextual"),
    ),
    Claim(
        "RQ9",
        "Under deduplication contextual memorisation starts before optimal learning.",
        "deduplication",
        "fraction of distinct training strings contextually memorised at the last measurement "
        "before optimal learning, minus that of test strings never trained on, deduplicated",
        above(0),
        partial(excess_before_optimum, measure="contextual"),
    ),
    Claim(
        "approximation",
        "Strings of similar frequency yield similar losses.",
        "disagreement",
        "mean relative distance of the stand-ins' loss from the loss without the target",
        at_most(NEARLY_EQUAL),
        stand_in_error,
    ),
    *[
        Claim(
            "approximation",
            f"The same-frequency approximation gives the verdicts of exact {measure} memorisation.",
            "agreement",
            "share of epochs of the targets with the same verdict",
            at_least(ALMOST_ALL),
            partial(agreement_mean, column="same_verdict", measure=measure),
        )
        for measure in ("counterfactual", "contextual")
    ],
    Claim(
        "approximation",
        "The same-frequency threshold is that of exact contextual memorisation.",
        "agreement",
        "mean distance of the threshold from the exact one, nats per token",
        at_most(RARE),
        partial(agreement_mean, column="threshold_error", measure="contextual", absolute=True),
    ),
    of_every_string(
        "approximation",
        "Strings of similar frequency yield similar losses, over a whole training set.",
        "mean relative distance of the stand-ins' loss from the loss without the string, all "
        "training strings and epochs",
        at_most(NEARLY_EQUAL),
        measure="counterfactual",
        quantity="threshold",
        statistic="mean_relative_error",
    ),
    of_every_string(
        "approximation",
        "The same-frequency approximation ranks the training strings by optimal contextual loss "
        "as retraining does.",
        "rank correlation (Spearman) of the optimal contextual loss, all training strings",
        at_least(SAME_ORDER),
        measure="contextual",
        quantity="threshold",
        statistic="correlation",
    ),
    *[
        of_every_string(
            "approximation",
            f"The same-frequency approximation ranks the training strings by {ranked} of "
            f"{measure} memorisation as retraining does.",
            f"rank correlation (Spearman) of the {text}, {measure}, all training strings",
            at_least(SAME_ORDER),
            measure=measure,
            quantity=quantity,
            statistic="correlation",
        )
        for quantity, ranked, text in (
            ("start", "the start", "start; never is last"),
            ("score_at_optimum", "the score", "score at optimal learning"),
        )
        for measure in ("counterfactual", "contextual")
    ],
    *[
        of_every_string(
            "approximation",
            f"The same-frequency approximation gives the verdicts of exact {measure} memorisation "
            "over a whole training set.",
            "share of the training strings with the same verdict at optimal learning",
            at_least(ALMOST_ALL),
            measure=measure,
            quantity="score_at_optimum",
            statistic="same_verdict",
        )
        for measure in ("counterfactual", "contextual")
    ],
    of_every_string(
        "approximation",
        "The same-frequency threshold is that of exact contextual memorisation, over a whole "
        "training set.",
        "mean distance of the threshold from the exact one, all training strings, nats per token",
        at_most(RARE),
        measure="contextual",
        quantity="threshold",
        statistic="mean_absolute_error",
    ),
    Claim(
        "approximation",
        "Contextual memorisation by the same-frequency approximation is no false alarm: strings "
        "never trained on rarely count as memorised.",
        "tradeoff",
        "share of the test strings never trained on called memorised at optimal learning, "
        "contextual; the other ones stand in for each",
        at_most(RARE),
        partial(at_optimum, column="fraction_unseen", measure="contextual"),
    ),
    Claim(
        "bayes",
        "A loss below the Bayes-optimal loss betrays memorisation: strings never trained on "
        "rarely fall below it.",
        "tradeoff",
        "share of the test strings never trained on whose loss is below the Bayes-optimal one at "
        "optimal learning, whether or not it stays there",
        at_most(RARE),
        partial(at_optimum, column="below_unseen", measure="bayes"),
    ),
    Claim(
        "bayes",
        "Memorisation by the Bayes threshold is no false alarm: strings never trained on rarely "
        "count as memorised.",
        "tradeoff",
        "share of the test strings never trained on called memorised at optimal learning, bayes",
        at_most(RARE),
        partial(at_optimum, column="fraction_unseen", measure="bayes"),
    ),
    Claim(
        "bayes",
        "The language's exact probabilities give the verdicts of exact contextual memorisation.",
        "agreement",
        "share of epochs of the targets with the same verdict",
        at_least(ALMOST_ALL),
        partial(agreement_mean, column="same_verdict", measure="bayes"),
    ),
    Claim(
        "bayes",
        "The Bayes-optimal loss is the threshold of exact contextual memorisation.",
        "agreement",
        "mean distance of the threshold from the exact one, nats per token",
        at_most(RARE),
        partial(agreement_mean, column="threshold_error", measure="bayes", absolute=True),
    ),
    of_every_string(
        "bayes",
        "The Bayes-optimal loss ranks the training strings as the optimal contextual loss does.",
        "rank correlation (Spearman) of the two, all training strings",
        at_least(SAME_ORDER),
        measure="bayes",
        quantity="threshold",
        statistic="correlation",
    ),
    of_every_string(
        "bayes",
        "The language's exact probabilities give the verdicts of exact contextual memorisation "
        "over a whole training set.",
        "share of the training strings with the same verdict at optimal learning",
        at_least(ALMOST_ALL),
        measure="bayes",
        quantity="score_at_optimum",
        statistic="same_verdict",
    ),
    of_every_string(
        "bayes",
        "The Bayes-optimal loss is the threshold of exact contextual memorisation, over a whole "
        "training set.",
        "mean distance of the threshold from the exact one, all training strings, nats per token",
        at_most(RARE),
        measure="bayes",
        quantity="threshold",
        statistic="mean_absolute_error",
    ),
]
