"""The part of the report on memorisation profiles."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from palimpsest.estimates import clipped, with_interval
from palimpsest.number_format import percent
from palimpsest.profiles import kinds, summaries
from palimpsest.profiles.claims import QUESTIONS
from palimpsest.profiles.claims.claim_statistics import CORRELATION
from palimpsest.profiles.figures.palette import CONTRASTS, ESTIMATORS
from palimpsest.report.part import NOTHING, Part, chapters_of, with_words
from palimpsest.report.templates import template
from palimpsest.statistics import Interval, student

OF_LANGUAGE = ["language", "model"]
NOTIONS = {
    kinds.DIFFERENCE_IN_DIFFERENCES: "difference-in-differences",
    kinds.DIFFERENCE: "difference",
    kinds.ARCHITECTURAL: "means over models (architectural)",
    kinds.INFLUENCE: "influence function",
    kinds.EXTRACTABLE: "extractable strings",
}
UNITS = {
    kinds.LOG_LIKELIHOOD: "log-likelihood (nats)",
    kinds.TOKEN_ACCURACY: "token accuracy (share)",
    kinds.NEGATIVE_RANK: "mean rank (negative: up is better)",
}


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report.

    `tables` maps the kinds `profile`, `estimator_errors`, `notions` and `dilution_effects` to
    stacked tables. Without a profile, the part only says what profiles are.
    """
    html = template(__file__, "report.html.j2").module
    profile = tables.get(kinds.PROFILE.name)
    if profile is None or profile.empty:
        return Part(chapters=chapters_of(html), questions=QUESTIONS)
    of_kinds = kinds.ESTIMATOR_ERRORS, kinds.NOTIONS, kinds.DILUTION_EFFECTS
    errors, notions, effects = (tables.get(kind.name, pd.DataFrame()) for kind in of_kinds)
    before, after = {"profiles": html.summaries(summary_rows(profile))}, NOTHING
    if not errors.empty:
        after += html.errors(error_rows(errors))
    if not notions.empty:
        after += html.notions(notion_rows(notions))
    if not effects.empty:
        before["dilution"] = html.dilution(dilution_rows(effects))
    part = with_words(html, QUESTIONS, chapters_of(html, before, {"profiles": after}))
    if effects.empty:
        return part
    return replace(part, glossary={**html.glossary, **html.glossary_of_dilution})


def summary_rows(profile: pd.DataFrame) -> list[dict]:
    """Per language, model and outcome: the mean effects, with intervals over the seeds."""
    trained = profile["strings"] == kinds.TRAINED
    rows = []
    for outcome, name in UNITS.items():
        cells = summaries.estimates(profile[trained], outcome=outcome)
        placebos = summaries.estimates(profile, kinds.PLACEBO, outcome)
        for keys, own in cells.groupby(OF_LANGUAGE, sort=False):
            others = of_model(placebos, *keys)
            rows.append(
                {
                    **dict(zip(OF_LANGUAGE, keys, strict=True)),
                    "outcome": name,
                    "instantaneous": mean_effect(summaries.instantaneous(own)),
                    "persistent": mean_effect(summaries.persistent(own)),
                    "residual": mean_effect(summaries.residual(own)),
                    "placebo": mean_effect(summaries.after(others)),
                    "significant": percent(summaries.after(own)["significant"].mean()),
                    "before": percent(summaries.before(own)["significant"].mean()),
                    "placebos": percent(summaries.after(others)["significant"].mean()),
                }
            )
    return rows


def of_model(cells: pd.DataFrame, language: str, model: str) -> pd.DataFrame:
    return cells[(cells["language"] == language) & (cells["model"] == model)]


def mean_effect(cells: pd.DataFrame) -> str:
    return with_interval(student(cells.groupby("seed")["estimate"].mean()))


def notion_rows(notions: pd.DataFrame) -> list[dict]:
    """Per language, model and notion: estimates, placebos, and agreement with training again."""
    rows = []
    for keys, own in notions.groupby([*OF_LANGUAGE, "notion"], sort=False):
        language, model, notion = keys
        rows_of_notion = summaries.minus_placebo(own, notion)
        by_seed = rows_of_notion.groupby("seed")
        error = rows_of_notion["minus_placebo"] - rows_of_notion["specific"]
        error = error.groupby(rows_of_notion["seed"])
        is_in_nats = notion != kinds.EXTRACTABLE
        rows.append(
            {
                "language": language,
                "model": model,
                "notion": NOTIONS[notion],
                "unit": rows_of_notion["unit"].iloc[0],
                "estimate": with_interval(student(by_seed["estimate"].mean())),
                "placebo": with_interval(student(by_seed["placebo"].mean())),
                "specific": with_interval(student(by_seed["specific"].mean())),
                "bias": with_interval(student(error.mean())) if is_in_nats else "–",
                "spread": with_interval(student(error.std(ddof=0))) if is_in_nats else "–",
                "correlation": with_interval(correlation(rows_of_notion)),
            }
        )
    return rows


def correlation(rows: pd.DataFrame) -> Interval:
    return clipped(student(summaries.correlation_with_truth(rows).dropna()), CORRELATION)


def error_rows(errors: pd.DataFrame) -> list[dict]:
    """Per language, model, outcome, kind of truth and estimator: errors after the treatment."""
    found = errors[errors["cells"] == kinds.AFTER]
    keys = [*OF_LANGUAGE, "outcome", "truth", "estimator"]
    rows = []
    for names, own in found.groupby(keys):
        row = dict(zip(keys, names, strict=True))
        row |= {name: with_interval(student(own[name])) for name in ("effect", "bias", "rmse")}
        row["outcome"] = UNITS[row["outcome"]]
        row["estimator"] = ESTIMATORS[row["estimator"]].label
        covered = f"{int(own['all_covered'].sum())} of {len(own)}"
        rows.append({**row, "covered": covered, "coverage": percent(own["coverage"].mean())})
    return rows


def dilution_rows(effects: pd.DataFrame) -> list[dict]:
    """Per language, model and contrast: the log-likelihood's contrasts, with intervals."""
    columns = {
        "retrained": (kinds.TRAINED, kinds.SPECIFIC),
        "one_run": (kinds.TRAINED, kinds.DIFFERENCE),
        "total": (kinds.TRAINED, kinds.TOTAL),
        "placebo": (kinds.PLACEBO, kinds.SPECIFIC),
    }
    found = effects[effects["outcome"] == kinds.LOG_LIKELIHOOD]
    rows = []
    for names, own in found.groupby([*OF_LANGUAGE, "contrast"], sort=False):
        by_kind = own.set_index(["strings", "effect"])[["estimate", "lower", "upper"]]
        row = dict(zip([*OF_LANGUAGE, "contrast"], names, strict=True))
        row["contrast"] = CONTRASTS.get(row["contrast"], row["contrast"].replace(" x ", " × "))
        values = {name: with_interval(Interval(*by_kind.loc[key])) for name, key in columns.items()}
        rows.append({**row, **values})
    return rows
