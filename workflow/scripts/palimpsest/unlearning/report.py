"""The part of the report on unlearning: numbers, and sentences computed from them."""

import math
from collections.abc import Iterable, Mapping

import pandas as pd

from palimpsest.figures import style
from palimpsest.report.number_format import number, percent, score
from palimpsest.report.part import Chapter, Part
from palimpsest.report.templates import template
from palimpsest.tables import Kind, read_all
from palimpsest.unlearning import held_out_verdicts
from palimpsest.unlearning.claims import QUESTIONS
from palimpsest.unlearning.kinds import EFFECTS, MEMORISATION, SCORES, SUMMARY
from palimpsest.unlearning.setups import ENDS

GLOSSARY = {
    "Epsilon of a string": (
        "How well the best attack found tells unlearned models from retrained ones by their "
        "confidence in the string: 0 if the attack can only guess, and larger if the attack is "
        "more certain. Epsilon is the logarithm of a ratio: how often the attack gives a verdict "
        "where this verdict is right, divided by how often it gives the same verdict where this "
        "is wrong."
    ),
    "Final score": (
        "The forgetting quality, multiplied by the accuracy on retained strings and by the "
        "accuracy on test strings, each as a share of the accuracy of retrained models."
    ),
    "Forget set": "The training strings that are to be forgotten.",
    "Forgetting quality": "The average of the points of the forget strings: 1 for an epsilon below "
    "0.5, half as many points for every 0.5 more, and none for an epsilon that the models at hand "
    "cannot distinguish from infinity.",
    "Retain set": "The training strings that are not to be forgotten.",
    "Retraining": "Training again, from new initial weights, on the retain set alone: the ideal "
    "with which unlearning is compared.",
    "Set-up": "Decides which trained models the repetitions of an evaluation share: no models "
    "(full); the original and retrained models (reuse-n-n); a single original model (reuse-n-1); "
    "or a pool, from which each repetition draws with replacement (bootstrap).",
    "Unlearning": "Changing a trained model so that it is as if it had never seen the forget set.",
}
TITLE = "What it can be made to forget"
TEXT = (
    "Some strings of the training data are to be forgotten: the forget set. The sure way is to "
    "train the model again on all other strings, the retain set, but this costs a whole training "
    "for every request to forget. Unlearning methods change the trained model instead, in a small "
    "share of the steps, and aim for a model like a retrained one. The question is whether they "
    "succeed."
)
NOTHING = 0.005  # a share below is shown as 0 %
SUFFERS = 0.95  # of retraining's accuracy: a method that keeps less is said to lose accuracy
PROBLEM = ["language", "model"]
MEASURES = {
    name: look.label if look.label.startswith("recollection") else f"{look.label} memorisation"
    for name, look in style.MEASURES.items()
}
COMPARED = ("recollection", "contextual")


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report.

    `tables` maps the kinds `unlearning_summary`, `unlearning_scores`, `unlearning_memorisation` and
    `unlearning_effects` to stacked tables. If the first two have no rows, nothing was unlearned,
    and the part is only an introduction.
    """
    found = findings(*(of_kind(tables, kind) for kind in (SUMMARY, SCORES, MEMORISATION, EFFECTS)))
    if found is None:
        return Part(chapters=(Chapter("unlearning", TITLE, TEXT),), questions=QUESTIONS)
    html = template(__file__, "report.html.j2").module
    after = html.memorised(found) + html.limits(found)
    return Part(
        introduction=html.introduction(),
        reading=html.reading(),
        claims=html.claims(),
        chapters=(Chapter("unlearning", TITLE, TEXT, html.scores(found), after),),
        questions=QUESTIONS,
        glossary=GLOSSARY,
    )


def of_kind(tables: Mapping[str, pd.DataFrame], kind: Kind) -> pd.DataFrame:
    """The table of a kind; an empty one if it is absent."""
    return tables[kind.name] if kind.name in tables else read_all([], kind)


def findings(
    summary: pd.DataFrame,
    scores: pd.DataFrame,
    memorisation: pd.DataFrame,
    effects: pd.DataFrame,
) -> dict | None:
    """All numbers and sentences of the chapter; None if nothing was unlearned.

    Parameters
    ----------
    summary, scores, memorisation, effects : the tables, stacked; memorisation and effects may be
        empty
    """
    if summary.empty or scores.empty:
        return None
    summary, scores = of_first_setup(summary), of_first_setup(scores)
    n_models = int(scores["n_models"].min())
    problems = [
        problem(found, *(of_problem(table, *key) for table in (scores, memorisation, effects)))
        for key, found in summary.groupby(PROBLEM, sort=False)
    ]
    return {
        "setup": summary["setup"].iloc[0],
        "repetitions": int(summary["n_repetitions"].max()),
        "n_models": n_models,
        "largest": number(math.log(max(n_models - 1, 1))),
        "no_points_from": max(1, math.ceil(math.log(max(n_models - 1, 1)))),
        "suffers": percent(SUFFERS),
        "ends": reach_of_ends(summary),
        "held_out": held_out_ends([each["held_out"] for each in problems]),
        "problems": problems,
    }


def of_first_setup(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first set-up; the figures show the others."""
    return table[table["setup"] == table["setup"].iloc[0]]


def of_problem(table: pd.DataFrame, language: str, model: str) -> pd.DataFrame:
    """The rows of one model on one language."""
    return table[(table["language"] == language) & (table["model"] == model)]


def reach_of_ends(summary: pd.DataFrame) -> dict[str, str]:
    """Forgetting quality of doing nothing and of retraining, from the lowest to the highest."""
    quality = summary[summary["quantity"] == "forgetting_quality"]
    return {end: from_to(quality.loc[quality["method"] == end, "mean"]) for end in ENDS}


def from_to(values: Iterable[float]) -> str:
    """The lowest and the highest of some scores; only one if both are shown as the same number."""
    shown = dict.fromkeys(score(value) for value in (min(values), max(values)))
    return " to ".join(shown)


def held_out_ends(found: list[dict | None]) -> dict | None:
    """The quality of the two ends under held-out attackers, and the number of held-out models.

    None unless every problem has held-out models.
    """
    if None in found:
        return None
    return {
        "n_models": min(each["n_models"] for each in found),
        "ends": {end: from_to([each["means"][end] for each in found]) for end in ENDS},
    }


def problem(
    summary: pd.DataFrame, scores: pd.DataFrame, memorised: pd.DataFrame, effects: pd.DataFrame
) -> dict:
    """One model on one language: the table of methods, and what is still memorised.

    All tables have only rows of this problem; `summary` and `scores` only of the first set-up.
    """
    slow = set(scores.loc[~scores["within_cutoff"].astype(bool), "method"])
    quantities = {
        name: rows.set_index("method") for name, rows in summary.groupby("quantity", sort=False)
    }
    final = quantities["final_score"]["mean"].sort_values(ascending=False, kind="stable")
    methods = [name for name in final.index if name not in ENDS]
    ranked = sorted(methods, key=lambda name: name in slow)
    present = [end for end in ENDS if end in final.index]
    order = [*present[:1], *ranked, *present[1:]]
    held = held_out_verdicts.qualities(effects)
    best = next((name for name in ranked if name not in slow), None)
    return {
        **summary[PROBLEM].iloc[0],
        "held_out": {"n_models": held_out_verdicts.n_held_out(effects), "means": held.mean()}
        if set(ENDS) <= set(held.columns)
        else None,
        "methods": [method_row(name, quantities, held, name in slow) for name in order],
        "best": best,
        "memorised": measure_rows(memorised, best),
        "told": told(memorised, best),
    }


def method_row(
    name: str, quantities: dict[str, pd.DataFrame], held: pd.DataFrame, slow: bool
) -> dict:
    """A method's scores for a reader; `held` is the result of `held_out_verdicts.qualities`."""
    kept = {
        which: quantities[f"{which}_accuracy"]["mean"][name]
        / quantities[f"{which}_accuracy_retrained"]["mean"][name]
        for which in ("retain", "test")
    }
    return {
        "name": name,
        "end": name in ENDS,
        "quality": with_interval(quantities["forgetting_quality"].loc[name]),
        "held_out": with_interval(held_out_verdicts.interval(held[name])) if name in held else "–",
        "final": with_interval(quantities["final_score"].loc[name]),
        "kept": {which: percent(share) for which, share in kept.items()},
        "steps": f"{number(round(100 * quantities['steps_share']['mean'][name], 1))}\u00a0%",
        "words": "" if name in ENDS else in_words(name, held, min(kept.values()), slow),
    }


def with_interval(row: pd.Series | dict[str, float]) -> str:
    """The text "mean [lower, upper]"; only the mean if there is no interval."""
    if pd.isna(row["lower"]):
        return score(row["mean"])
    return f"{score(row['mean'])} [{score(row['lower'])}, {score(row['upper'])}]"


def in_words(name: str, held: pd.DataFrame, kept: float, slow: bool) -> str:
    """The verdict of the scores on a method, in words."""
    words = [held_out_verdicts.in_words(name, held)]
    if kept < SUFFERS:
        words.append("accuracy suffers")
    if slow:
        words.append("too slow to count")
    return "; ".join(words)


# Memorisation


def shares(memorised: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Shares of models that memorise (before, after, retrained), by method.

    The shares are means over the forget strings. If a measure has several kinds of evidence, only
    the first is used.
    """
    found = memorised[memorised["measure"] == measure]
    found = found[found["evidence"] == found["evidence"].iloc[0]] if len(found) else found
    return found.groupby("method", sort=False)[["before", "after", "retrained"]].mean()


def measure_rows(memorised: pd.DataFrame, best: str | None) -> list[dict]:
    """Per measure: how much of the forget set is memorised before and after unlearning."""
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
    """Share of the distance from the original to the retrained models; None if there is none."""
    way = row["before"] - row["retrained"]
    return None if way < NOTHING else (row["before"] - row["after"]) / way


def removed_in_words(row: pd.Series) -> str:
    """The result of `removed`, for a reader."""
    share = removed(row)
    return "–" if share is None else percent(share)


def told(memorised: pd.DataFrame, best: str | None) -> list[str]:
    """Sentences on recollection and contextual memorisation, before and after.

    There is one sentence for every measure that had nothing to remove. For the other measures, one
    sentence is on the average over the methods, and one on the best method. The list is empty if
    either measure is missing.
    """
    both = {measure: shares(memorised, measure) for measure in COMPARED}
    both = {measure: found[~found.index.isin(ENDS)] for measure, found in both.items()}
    if any(found.empty for found in both.values()):
        return []
    means = {measure: found.mean() for measure, found in both.items()}
    sentences = [
        nothing_to_remove(measure, row) for measure, row in means.items() if row["before"] < NOTHING
    ]
    means = {measure: row for measure, row in means.items() if row["before"] >= NOTHING}
    if not means:
        return sentences
    n_methods = len(both["recollection"])
    whose = f"on average over the {n_methods} methods" if n_methods > 1 else "under its only method"
    sentences.append(sentence(whose, means))
    if best is not None and best in both["recollection"].index:
        rows = {measure: both[measure].loc[best] for measure in means}
        sentences.append(sentence(f"under {best}, the best of them by final score", rows))
    way = {MEASURES[measure]: removed(row) for measure, row in means.items()}
    if None not in way.values():
        gone = " and ".join(f"{percent(share)} by {measure}" for measure, share in way.items())
        sentences.append(
            "Of the way from the original to the retrained models, the methods go "
            f"{gone}, on average."
        )
    return sentences


def nothing_to_remove(measure: str, row: pd.Series) -> str:
    """A sentence for a measure that found nothing memorised before unlearning."""
    return (
        f"{MEASURES[measure].capitalize()} cannot answer here: the original models show it on "
        f"{percent(row['before'])} of the forget strings, so there was nothing to remove."
    )


def sentence(whose: str, rows: dict[str, pd.Series]) -> str:
    """One sentence on memorisation before and after, by one or two measures."""
    names = [MEASURES[measure] for measure in rows]
    names[0] += " of the forget strings"
    changes = [f"{name} {change(row)}" for name, row in zip(names, rows.values(), strict=True)]
    retrained = " and ".join(percent(row["retrained"]) for row in rows.values())
    text = f"{whose}, {', while '.join(changes)}; retrained models have {retrained}."
    return text[0].upper() + text[1:]


def change(row: pd.Series) -> str:
    """The change from before to after, as a verb with numbers."""
    before, after = percent(row["before"]), percent(row["after"])
    if before == after:
        return f"stays at {before}"
    return f"{'falls' if row['after'] < row['before'] else 'rises'} from {before} to {after}"
