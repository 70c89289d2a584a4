"""The studies of the paper: memorisation tables of many runs, laid side by side for one question.

A study takes tables that are stacked over models, seeds, sizes and variants, and returns its own.
One of them, disagreement, is the `target_scores` tables of its models, stacked as they are.

Source: Learning Without Memorizing Considered Infeasible, section 4 and appendices F and G.
"""

import pandas as pd

from palimpsest.errors import UserError, nearest
from palimpsest.memorisation.leave_one_out import side_by_side

RUN = ["model", "language", "size", "seed", "variant"]
EPOCH = [*RUN, "epoch"]
CURVE = [*RUN, "measure", "epoch"]
DISTINCT = ["fraction_distinct", "weighted_distinct"]
UNSEEN = ["fraction_unseen", "weighted_unseen", "below_unseen"]


def disagreement(*, target_scores: pd.DataFrame) -> pd.DataFrame:
    """Exact retraining with and without the target strings, as it is.

    Source: section 3.2, RQ1 and RQ2, figures 1, 2 and 13 to 17.
    """
    return target_scores


def exact(*, leave_one_out: pd.DataFrame, approximation: pd.DataFrame) -> pd.DataFrame:
    """Approximations of memorisation beside exact retraining, for every training string.

    Source: section 3.3, whose hypothesis it tests.
    """
    keys = ["model", "language", "size", "seed", "measure", "evidence", "quantity"]
    whole = approximation[approximation["group"] == "all"]
    correlation = whole[whole["statistic"] == "correlation"].rename(
        columns={"value": "correlation"}
    )
    pairs = side_by_side(leave_one_out).drop(columns=["distance", "ratio"])
    joined = pairs.merge(correlation[[*keys, "correlation"]], on=keys)
    if len(joined) != len(pairs):
        raise UserError(
            f"{len(pairs)} rows of memorisation, {len(joined)} with their correlation: the tables "
            "are not of the same runs; make both anew"
        )
    return joined


def tradeoff(*, dataset: pd.DataFrame, learning: pd.DataFrame) -> pd.DataFrame:
    """Memorisation of the training set beside its false alarms and learning, epoch by epoch.

    Source: section 4, RQ3, figures 3, 18 to 20 and 23 to 30.
    """
    memorised = dataset[
        [*CURVE, "fraction", "weighted", *DISTINCT, *UNSEEN, "band_first", "band_last"]
    ]
    losses = ["train_loss", "test_loss", "optimal_test_loss", "optimal_epoch"]
    return beside_learning(memorised, learning, losses)


def frequency(
    *,
    starts: pd.DataFrame,
    scores: pd.DataFrame,
    learning: pd.DataFrame,
    share: float = 0.1,
) -> pd.DataFrame:
    """Memorisation of the most and the least frequent distinct training strings.

    Parameters
    ----------
    share : float in (0, 0.5], of a run's distinct training strings in either group
        Rounded to whole strings, at least one.

    Source: section 4, RQ4, figures 4, 21 and 22.
    """
    if not 0 < share <= 0.5:
        raise UserError(f"share {share}: the groups must be a share above 0, at most 0.5")
    groups = frequency_groups(starts, share)
    members = scores.merge(groups, on=[*RUN, "string_id"])
    members["memorised"] = members["score"] > 0
    curves = members.groupby([*RUN, "measure", "group", "epoch"], sort=False, as_index=False).agg(
        n_strings=("string_id", "size"),
        loss=("loss", "mean"),
        fraction_distinct=("memorised", "mean"),
        weighted_distinct=("score", "mean"),
    )
    return beside_learning(curves, learning, ["optimal_epoch"])


def frequency_groups(starts: pd.DataFrame, share: float) -> pd.DataFrame:
    """The strings of the groups `top` and `bottom` of every run: run, string_id, group.

    Frequency is the probability under the language; strings of equal probability are ranked by
    how often they occur in the training data, then by name.
    """
    strings = starts.drop_duplicates([*RUN, "string_id"])
    strings = strings[[*RUN, "string_id", "count", "log_prob"]].copy()
    # Rounded, as equal probabilities differ in their last digits.
    strings["log_prob"] = strings["log_prob"].round(9)
    strings = strings.sort_values(
        ["log_prob", "count", "string_id"], ascending=[False, False, True]
    )
    runs = strings.groupby(RUN, sort=False)["string_id"]
    chosen = (share * runs.transform("size")).round().clip(lower=1)
    rank = runs.cumcount()
    rank_from_below = runs.cumcount(ascending=False)
    top, bottom = strings[rank < chosen], strings[rank_from_below < chosen]
    groups = pd.concat([top.assign(group="top"), bottom.assign(group="bottom")])
    return groups[[*RUN, "string_id", "group"]]


def deduplication(
    *, starts: pd.DataFrame, dataset: pd.DataFrame, learning: pd.DataFrame
) -> pd.DataFrame:
    """Memorisation and learning with and without repeated strings: a curve per variant.

    The band of starts is that of the distinct strings that start at all, from the 10 % to the
    90 % quantile.

    Source: section 4, RQ4, figure 5; appendix G, RQ8 and RQ9, figures 39 and 40.
    """
    band = starts.groupby([*RUN, "measure"], sort=False)["start"].quantile([0.1, 0.9]).unstack()
    band = band.rename(columns={0.1: "start_p10", 0.9: "start_p90"}).reset_index()
    memorised = dataset[[*CURVE, *DISTINCT, "fraction_unseen"]]
    losses = ["train_loss", "test_loss", "test_spread", "optimal_epoch"]
    return beside_learning(memorised, learning, losses).merge(band, on=[*RUN, "measure"])


def training_size(
    *, starts: pd.DataFrame, dataset: pd.DataFrame, learning: pd.DataFrame
) -> pd.DataFrame:
    """Memorisation at the epoch of optimal learning, for training sets of several sizes.

    Source: section 4, RQ5, figure 6.
    """
    losses = ["test_loss", "optimal_test_loss", "optimal_epoch"]
    curves = beside_learning(dataset[[*CURVE, "fraction", "weighted"]], learning, losses)
    optimum = curves[curves["epoch"] == curves["optimal_epoch"]].drop(columns="epoch")
    repeated = starts[starts["count"] > 1].groupby([*RUN, "measure"], as_index=False)
    repeated = repeated.agg(
        n_repeated=("string_id", "size"), weighted_repeated=("score_at_optimum", "mean")
    )
    sizes = optimum.merge(repeated, on=[*RUN, "measure"], how="left")
    return sizes.assign(n_repeated=sizes["n_repeated"].fillna(0).astype(int))


def model_size(
    *, dataset: pd.DataFrame, learning: pd.DataFrame, models: pd.DataFrame
) -> pd.DataFrame:
    """Memorisation and learning across the models of a family.

    Parameters
    ----------
    models : frame of model, family, parameters

    Source: appendix F, figures 31 to 38.
    """
    unknown = set(dataset["model"]) - set(models["model"])
    if unknown:
        name = min(unknown)
        known = sorted(models["model"])
        raise UserError(
            f"model {name!r} has no family and size; known: {', '.join(known)}"
            f"{nearest(name, known)}"
        )
    losses = ["test_loss", "optimal_test_loss", "optimal_epoch"]
    curves = beside_learning(dataset[[*CURVE, "fraction", "weighted"]], learning, losses)
    return curves.merge(models[["model", "family", "parameters"]], on="model")


def beside_learning(
    curves: pd.DataFrame, learning: pd.DataFrame, columns: list[str]
) -> pd.DataFrame:
    """The curves with columns of `learning` at the same run and epoch."""
    joined = curves.merge(learning[[*EPOCH, *columns]], on=EPOCH)
    if len(joined) != len(curves):
        raise UserError(
            f"{len(curves)} rows of memorisation, {len(joined)} with their learning: the tables "
            "are not of the same runs; make both anew"
        )
    return joined


STUDIES = {
    "disagreement": disagreement,
    "exact": exact,
    "tradeoff": tradeoff,
    "frequency": frequency,
    "deduplication": deduplication,
    "training_size": training_size,
    "model_size": model_size,
}
