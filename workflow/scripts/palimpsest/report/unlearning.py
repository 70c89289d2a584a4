"""What the report says of unlearning, in numbers and in words computed from them."""

import math

import numpy as np
import pandas as pd

from palimpsest.report.wording import number, percent, score

KINDS = ("unlearning_summary", "unlearning_scores", "unlearning_memorisation")
NONE, RETRAIN = "none", "retrain"
ENDS = (RETRAIN, NONE)
SUFFERS = 0.95  # of retraining's accuracy: a method that keeps less is said to lose accuracy
PROBLEM = ["language", "model"]
MEASURES = {
    "recollection": "recollection",
    "recollection_accuracy": "recollection by accuracy",
    "counterfactual": "counterfactual memorisation",
    "contextual": "contextual memorisation",
    "bayes": "Bayes memorisation",
}
COMPARED = ("recollection", "contextual")


def section(summary: pd.DataFrame, scores: pd.DataFrame, memorisation: pd.DataFrame) -> dict | None:
    """All that the section on unlearning needs; None if nothing was unlearned.

    Parameters
    ----------
    summary, scores, memorisation : tables of the kinds `KINDS`, stacked; memorisation may be empty
    """
    if summary.empty or scores.empty:
        return None
    quality = summary[summary["quantity"] == "forgetting_quality"]
    summary, scores = of_first_setup(summary), of_first_setup(scores)
    n_models = int(scores["n_models"].min())
    problems = [
        problem(language, model, found, scores, memorisation, quality)
        for (language, model), found in summary.groupby(PROBLEM, sort=False)
    ]
    return {
        "setup": summary["setup"].iloc[0],
        "repetitions": int(summary["n_repetitions"].max()),
        "n_models": n_models,
        "largest": number(math.log(max(n_models - 1, 1))),
        "no_points_from": max(1, math.ceil(math.log(max(n_models - 1, 1)))),
        "suffers": percent(SUFFERS),
        "ends": reach_of_ends(summary),
        "problems": problems,
    }


def of_first_setup(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first set-up; the figures show the others."""
    return table[table["setup"] == table["setup"].iloc[0]]


def reach_of_ends(summary: pd.DataFrame) -> dict[str, str]:
    """Forgetting quality of doing nothing and of retraining, from the lowest to the highest."""
    quality = summary[summary["quantity"] == "forgetting_quality"]
    reach = {}
    for end in ENDS:
        values = quality.loc[quality["method"] == end, "mean"]
        shown = dict.fromkeys(score(value) for value in (values.min(), values.max()))
        reach[end] = " to ".join(shown)
    return reach


def problem(
    language: str,
    model: str,
    summary: pd.DataFrame,
    scores: pd.DataFrame,
    memorised: pd.DataFrame,
    quality: pd.DataFrame,
) -> dict:
    """One model on one language: the table of methods, and what is still memorised.

    `summary` is of the problem and of the first set-up; the others are of all problems, and
    `quality` is the forgetting quality under all set-ups.
    """
    here = (scores["language"] == language) & (scores["model"] == model)
    slow = set(scores.loc[here & ~scores["within_cutoff"].astype(bool), "method"])
    quantities = {
        name: rows.set_index("method") for name, rows in summary.groupby("quantity", sort=False)
    }
    final = quantities["final_score"]["mean"].sort_values(ascending=False, kind="stable")
    methods = [name for name in final.index if name not in ENDS]
    ranked = sorted(methods, key=lambda name: name in slow)
    present = [end for end in ENDS if end in final.index]
    order = [*present[:1], *ranked, *present[1:]]
    here = (memorised["language"] == language) & (memorised["model"] == model)
    ends = spans(quality[(quality["language"] == language) & (quality["model"] == model)])
    best = next((name for name in ranked if name not in slow), None)
    return {
        "language": language,
        "model": model,
        "methods": [method_row(name, quantities, ends, name in slow) for name in order],
        "best": best,
        "memorised": measure_rows(memorised[here], best),
        "told": told(memorised[here], best),
    }


def spans(quality: pd.DataFrame) -> pd.DataFrame:
    """The lowest and the highest end of the intervals of the forgetting quality, by method.

    Over all set-ups: under reuse-n-n, `none` and `retrain` are the same models in every
    repetition, and have an interval without width.
    """
    ends = quality.groupby("method", sort=False).agg({"lower": "min", "upper": "max"})
    undefined = quality.loc[quality[["lower", "upper"]].isna().any(axis=1), "method"]
    ends.loc[undefined.unique()] = np.nan
    return ends


def method_row(
    name: str, quantities: dict[str, pd.DataFrame], ends: pd.DataFrame, slow: bool
) -> dict:
    """A method's scores for a reader; `ends` are those of `spans`."""
    kept = {
        which: quantities[f"{which}_accuracy"]["mean"][name]
        / quantities[f"{which}_accuracy_retrained"]["mean"][name]
        for which in ("retain", "test")
    }
    return {
        "name": name,
        "end": name in ENDS,
        "quality": with_interval(quantities["forgetting_quality"].loc[name]),
        "final": with_interval(quantities["final_score"].loc[name]),
        "kept": {which: percent(share) for which, share in kept.items()},
        "steps": f"{number(round(100 * quantities['steps_share']['mean'][name], 1))}\u00a0%",
        "words": "" if name in ENDS else in_words(name, ends, min(kept.values()), slow),
    }


def with_interval(row: pd.Series) -> str:
    """Mean [lower, upper]; the mean alone where there is no interval."""
    if pd.isna(row["lower"]):
        return score(row["mean"])
    return f"{score(row['mean'])} [{score(row['lower'])}, {score(row['upper'])}]"


def in_words(name: str, ends: pd.DataFrame, kept: float, slow: bool) -> str:
    """What the scores say of a method."""
    words = [forgetting_in_words(name, ends)]
    if kept < SUFFERS:
        words.append("accuracy suffers")
    if slow:
        words.append("too slow to count")
    return "; ".join(words)


def forgetting_in_words(name: str, ends: pd.DataFrame) -> str:
    """Where a method's interval lies between doing nothing and retraining, as `spans` has them.

    Intervals that overlap are not told apart, which is cautious: means can differ although their
    intervals overlap. Where retraining was evaluated on one sample of models only, how far chance
    moves it is not known, so that nothing can be told to fall short of it.
    """
    wanted = [name, *ENDS]
    if ends.reindex(wanted).isna().any(axis=None):
        return "cannot tell: no intervals"
    own, ideal, nothing = (ends.loc[each] for each in (name, RETRAIN, NONE))
    if own["upper"] < nothing["lower"]:
        return "easier to tell from retraining than the original is"
    better, short = own["lower"] > nothing["upper"], own["upper"] < ideal["lower"]
    if ideal["lower"] == ideal["upper"]:
        return "forgets at least in part" if better else "no better than doing nothing"
    if better:
        return "forgets in part" if short else "not told apart from retraining"
    return "no better than doing nothing" if short else "cannot tell: intervals too wide"


# Memorisation


def shares(memorised: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Shares before, after and of retrained models, by method: means over the forget strings.

    Where a measure has several kinds of evidence, the first.
    """
    found = memorised[memorised["measure"] == measure]
    found = found[found["evidence"] == found["evidence"].iloc[0]] if len(found) else found
    return found.groupby("method", sort=False)[["before", "after", "retrained"]].mean()


def measure_rows(memorised: pd.DataFrame, best: str | None) -> list[dict]:
    """Per measure, how much of the forget set is memorised before unlearning and after it."""
    rows = []
    for measure, name in MEASURES.items():
        found = shares(memorised, measure)
        methods = found[~found.index.isin(ENDS)]
        if methods.empty:
            continue
        after = methods["after"]
        rows.append(
            {
                "measure": name,
                "before": percent(methods["before"].mean()),
                "after": percent(after.mean()),
                "lowest": percent(after.min()),
                "highest": percent(after.max()),
                "best": percent(after[best]) if best in after.index else "–",
                "retrained": percent(methods["retrained"].mean()),
                "removed": removed_in_words(methods.mean()),
            }
        )
    return rows


def removed(row: pd.Series) -> float | None:
    """Share of the way from the original to the retrained models; None if there is none to go."""
    way = row["before"] - row["retrained"]
    return None if way <= 0 else (row["before"] - row["after"]) / way


def removed_in_words(row: pd.Series) -> str:
    """That share for a reader."""
    share = removed(row)
    return "–" if share is None else percent(share)


def told(memorised: pd.DataFrame, best: str | None) -> list[str]:
    """Sentences on recollection and contextual memorisation, before and after.

    One of the average over the methods, one of the best of them; none if either measure is missing.
    """
    both = {measure: shares(memorised, measure) for measure in COMPARED}
    both = {measure: found[~found.index.isin(ENDS)] for measure, found in both.items()}
    if any(found.empty for found in both.values()):
        return []
    n_methods = len(both["recollection"])
    means = {measure: found.mean() for measure, found in both.items()}
    whose = f"on average over the {n_methods} methods" if n_methods > 1 else "under its only method"
    sentences = [sentence(whose, means)]
    if best is not None and best in both["recollection"].index:
        rows = {measure: found.loc[best] for measure, found in both.items()}
        sentences.append(sentence(f"under {best}, the best of them by final score", rows))
    way = [removed(row) for row in means.values()]
    if None not in way:
        sentences.append(
            "Of the way from the original to the retrained models, the methods go "
            f"{percent(way[0])} by recollection and {percent(way[1])} by contextual memorisation, "
            "on average."
        )
    return sentences


def sentence(whose: str, rows: dict[str, pd.Series]) -> str:
    """Recollection and contextual memorisation before and after, in one sentence."""
    recollection, contextual = (rows[measure] for measure in COMPARED)
    text = (
        f"{whose}, recollection of the forget strings {change(recollection)}, while contextual "
        f"memorisation {change(contextual)}; retrained models have "
        f"{percent(recollection['retrained'])} and {percent(contextual['retrained'])}."
    )
    return text[0].upper() + text[1:]


def change(row: pd.Series) -> str:
    """From before to after, as a verb."""
    before, after = percent(row["before"]), percent(row["after"])
    if before == after:
        return f"stays at {before}"
    return f"{'falls' if row['after'] < row['before'] else 'rises'} from {before} to {after}"
