"""The part of the report on memorisation profiles."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from palimpsest.estimates import clipped, with_interval
from palimpsest.number_format import percent
from palimpsest.profiles import kinds, summaries
from palimpsest.profiles.claims import CORRELATION, QUESTIONS
from palimpsest.profiles.figures.looks import CONTRASTS, ESTIMATORS
from palimpsest.report.part import NOTHING, Chapter, Part
from palimpsest.report.templates import template
from palimpsest.statistics import Interval, student

TITLE = "What is left of strings that were seen once"
TEXT = (
    "A memorisation profile says, for the strings of every macro-batch and for every checkpoint, "
    "how much better the model predicts these strings because it was trained on them. "
    "Difference-in-differences estimates it from one training: by how much has the log-likelihood "
    "of the strings changed since just before they were trained on, beyond the change of strings "
    "that the model is never trained on?"
)
GLOSSARY = {
    "Architectural memorisation": (
        "The mean log-likelihood of strings over models that are trained with them, minus that "
        "over models that are trained without them."
    ),
    "Cohort": "Strings that are trained on at the same time: those of one macro-batch.",
    "Difference": (
        "The mean outcome of a cohort minus that of strings that are never trained on, at the same "
        "checkpoint."
    ),
    "Difference-in-differences": (
        "The change of a cohort's mean outcome since just before its treatment, minus the same "
        "change of strings that are never trained on."
    ),
    "Instantaneous, persistent, residual memorisation": (
        "The effect of training on strings just after it, at later checkpoints, and at the end of "
        "training."
    ),
    "Extractable": (
        "(k, l)-extractable: greedy decoding from the first k tokens of a string gives its last l "
        "tokens."
    ),
    "Influence function": (
        "The effect of training strings on a model, to first order, without training again."
    ),
    "Macro-batch": "The strings that are trained on between two checkpoints.",
    "Simultaneous band": (
        "Intervals that, with 95 % confidence, hold the true specific effects of all cells at once."
    ),
    "Specific effect": (
        "The total effect of training on a macro-batch on its strings, minus the effect on strings "
        "that are trained on in neither run."
    ),
    "Total effect": (
        "How much better a model predicts the strings of a macro-batch than the same model trained "
        "again without this macro-batch, in whose place it sees other strings."
    ),
}
DILUTION_TITLE = "Dilution and order"
DILUTION_TEXT = (
    "Hubble (ICLR 2026) finds that a string is memorised less when it is diluted in more data, and "
    "less when it is seen early. Here, strings are assigned at random to numbers of copies and to "
    "the first or the last quarter of streams of several sizes. The truth is training again with "
    "other strings in the place of every copy."
)
DILUTION_GLOSSARY = {
    "Arm": "Strings with equally many copies in the same quarter of a stream.",
    "Contrast": (
        "What a factor changes: the mean effect at its high level minus that at its low level. "
        "A contrast of several factors says by how much that of one grows with the others."
    ),
    "Probe": "A string that is assigned at random to an arm.",
}
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
    of_dilution = Chapter("dilution", DILUTION_TITLE, DILUTION_TEXT)
    profile = tables.get(kinds.PROFILE.name)
    if profile is None or profile.empty:
        return Part(chapters=(Chapter("profiles", TITLE, TEXT), of_dilution), questions=QUESTIONS)
    html = template(__file__, "report.html.j2").module
    of_kinds = kinds.ESTIMATOR_ERRORS, kinds.NOTIONS, kinds.DILUTION_EFFECTS
    errors, notions, effects = (tables.get(kind.name, pd.DataFrame()) for kind in of_kinds)
    after = NOTHING
    if not errors.empty:
        after += html.errors(error_rows(errors))
    if not notions.empty:
        after += html.notions(notion_rows(notions))
    has_dilution = not effects.empty
    if has_dilution:
        of_dilution = replace(of_dilution, before=html.dilution(dilution_rows(effects)))
    return Part(
        introduction=html.introduction(),
        reading=html.reading(),
        claims=html.claims(),
        chapters=(
            Chapter("profiles", TITLE, TEXT, html.summaries(summary_rows(profile)), after),
            of_dilution,
        ),
        questions=QUESTIONS,
        glossary={**GLOSSARY, **(DILUTION_GLOSSARY if has_dilution else {})},
    )


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
    """The rows of one model on one language."""
    return cells[(cells["language"] == language) & (cells["model"] == model)]


def mean_effect(cells: pd.DataFrame) -> str:
    """The mean estimate, and its interval over the seeds."""
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
    """The correlation over macro-batches of a notion and the specific effect, over the seeds."""
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
