"""The part of the report on memorisation profiles."""

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType

import pandas as pd
from markupsafe import Markup

from palimpsest.estimates import clipped, with_interval
from palimpsest.number_format import percent
from palimpsest.profiles import effects, kinds, sentences, summaries
from palimpsest.profiles.claims import QUESTIONS
from palimpsest.profiles.claims.claim_statistics import CORRELATION
from palimpsest.profiles.figures.palette import CONTRASTS, ESTIMATORS
from palimpsest.report.part import NOTHING, Chapter, Part, chapters_of, with_words
from palimpsest.report.templates import given, groups, mean_over_seeds, shown, template
from palimpsest.statistics import Interval, student

OF_LANGUAGE = ["language", "model"]
NOTIONS = {
    kinds.DIFFERENCE_IN_DIFFERENCES: "difference-in-differences",
    kinds.DIFFERENCE: "difference",
    kinds.ARCHITECTURAL: "means over models (architectural)",
    kinds.INFLUENCE: "influence function",
    kinds.REMOVAL: "influence function, plain removal",
    kinds.EXTRACTABLE: "extractable strings",
}


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report.

    `tables` maps the kinds `profile`, `estimator_errors`, `notions`, `dilution_effects`,
    `panels_effects` and `panel_persistence` to stacked tables. Without a profile, the part has the
    words for panels, if there is one.
    """
    html = template(__file__, "report.html.j2").module
    profile, errors, notions, of_dilution, of_panels, since = given(
        tables,
        kinds.PROFILE,
        kinds.ESTIMATOR_ERRORS,
        kinds.NOTIONS,
        kinds.DILUTION_EFFECTS,
        kinds.PANELS_EFFECTS,
        kinds.PANEL_PERSISTENCE,
    )
    panels = shown(html.panels, panel_rows, of_panels) + shown(html.since, since_rows, since)
    if profile.empty:
        return (
            with_panels(html, panels)
            if panels
            else Part(chapters=chapters_of(html), questions=QUESTIONS)
        )
    before = {
        "profiles": shown(html.summaries, summary_rows, profile) + panels,
        "dilution": shown(html.dilution, dilution_rows, of_dilution),
    }
    after = {
        "profiles": shown(html.errors, error_rows, errors)
        + shown(html.notions, notion_rows, notions)
    }
    part = with_words(html, QUESTIONS, before, after)
    if of_dilution.empty:
        return part
    return replace(part, glossary={**html.glossary, **html.glossary_of_dilution})


def with_panels(html: ModuleType, panels: Markup) -> Part:
    """The part if nothing was trained: what the user's panels show."""
    titles = {**html.chapters, "profiles": html.chapter_of_panels}
    chapters = (
        Chapter(name, title, text, panels if name == "profiles" else NOTHING)
        for name, (title, text) in titles.items()
    )
    return Part(
        introduction=html.introduction_of_panels(),
        reading=html.reading_of_panels(),
        claims=html.claims_of_panels(),
        chapters=tuple(chapters),
        questions=QUESTIONS,
        glossary={term: html.glossary[term] for term in html.terms_of_panels},
    )


def summary_rows(profile: pd.DataFrame) -> list[dict]:
    """Per language and model: the mean effects on the log-likelihood, with intervals over seeds."""
    trained = profile["string_role"] == kinds.TRAINED
    cells = summaries.estimates(profile[trained], outcome=kinds.LOG_LIKELIHOOD)
    placebos = summaries.estimates(profile, kinds.PLACEBO, kinds.LOG_LIKELIHOOD)
    rows = []
    for row, own in groups(cells, OF_LANGUAGE):
        others = of_model(placebos, **row)
        rows.append(
            {
                **row,
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
    return mean_over_seeds(cells.groupby("seed")["estimate"].mean())


def notion_rows(notions: pd.DataFrame) -> list[dict]:
    """Per language, model and notion: estimates, placebos, and agreement with training again."""
    rows = []
    for row, own in groups(notions, [*OF_LANGUAGE, "notion"]):
        notion = row["notion"]
        rows_of_notion = summaries.minus_placebo(own, notion)
        by_seed = rows_of_notion.groupby("seed")
        error = rows_of_notion["minus_placebo"] - rows_of_notion["specific"]
        error = error.groupby(rows_of_notion["seed"])
        is_in_nats = notion != kinds.EXTRACTABLE
        rows.append(
            {
                **row,
                "notion": NOTIONS[notion],
                "unit": rows_of_notion["unit"].iloc[0],
                "estimate": mean_over_seeds(by_seed["estimate"].mean()),
                "placebo": mean_over_seeds(by_seed["placebo"].mean()),
                "specific": mean_over_seeds(by_seed["specific"].mean()),
                "bias": mean_over_seeds(error.mean()) if is_in_nats else "–",
                "spread": mean_over_seeds(error.std(ddof=0)) if is_in_nats else "–",
                "correlation": with_interval(correlation(rows_of_notion)),
            }
        )
    return rows


def correlation(rows: pd.DataFrame) -> Interval:
    return clipped(student(summaries.correlation_with_truth(rows).dropna()), CORRELATION)


def error_rows(errors: pd.DataFrame) -> list[dict]:
    """Per language, model, kind of truth and estimator: errors of the log-likelihood afterwards."""
    found = errors[(errors["cells"] == kinds.AFTER) & (errors["outcome"] == kinds.LOG_LIKELIHOOD)]
    keys = [*OF_LANGUAGE, "truth", "estimator"]
    rows = []
    for row, own in groups(found, keys, sort=True):
        row |= {name: mean_over_seeds(own[name]) for name in ("effect", "bias", "rmse")}
        row["estimator"] = ESTIMATORS[row["estimator"]].label
        covered = f"{int(own['all_covered'].sum())} of {len(own)}"
        rows.append({**row, "covered": covered, "coverage": percent(own["coverage"].mean())})
    return rows


def panel_rows(study: pd.DataFrame) -> list[dict]:
    """Per panel, from that of the smallest model on: its mean effects, and those of placebos."""
    parts = [effects.INSTANTANEOUS, effects.PERSISTENT, effects.RESIDUAL]
    alone = study[study["compared"] == kinds.ONE_PANEL]
    rows = []
    for row, own in groups(alone, ["panel"]):
        by_part = own.set_index(["string_role", "part"])[["estimate", "lower", "upper"]]
        keys = {part: (kinds.TRAINED, part) for part in parts}
        keys["placebo"] = (kinds.PLACEBO, effects.PERSISTENT)
        values = {
            name: with_interval(Interval(*by_part.loc[key])) if key in by_part.index else "–"
            for name, key in keys.items()
        }
        rows.append({**row, **values})
    return rows


def since_rows(since: pd.DataFrame) -> list[dict]:
    """Per panel and outcome: the mean effect just after training, then and at the end; before it.

    Each is a mean over the cohorts that are measured so long after their training.
    """
    rows = []
    for row, own in groups(since, ["panel", "outcome"]):
        cells = sentences.tested(own)
        after, before = cells[cells["since"] >= 0], cells[cells["since"] < 0]
        largest = before.reindex(before["estimate"].abs().nlargest(1).index)
        parts = {
            "first": after.head(1),
            "second": after.iloc[1:2],
            "last": after.tail(1),
            "largest": largest,
        }
        means = {
            name: "–" if part.empty else sentences.with_band(part.iloc[0])
            for name, part in parts.items()
        }
        found = {
            name: f"{int(part['significant'].sum())} of {len(part)}"
            for name, part in (("after", after), ("before", before))
        }
        rows.append({**row, **means, **found})
    return rows


def dilution_rows(contrasts: pd.DataFrame) -> list[dict]:
    """Per language, model and contrast: the log-likelihood's contrasts, with intervals."""
    columns = {
        "retrained": (kinds.TRAINED, kinds.SPECIFIC),
        "one_run": (kinds.TRAINED, kinds.DIFFERENCE),
        "total": (kinds.TRAINED, kinds.TOTAL),
        "placebo": (kinds.PLACEBO, kinds.SPECIFIC),
    }
    found = contrasts[contrasts["outcome"] == kinds.LOG_LIKELIHOOD]
    rows = []
    for row, own in groups(found, [*OF_LANGUAGE, "contrast"]):
        by_kind = own.set_index(["string_role", "effect"])[["estimate", "lower", "upper"]]
        row["contrast"] = CONTRASTS.get(row["contrast"], row["contrast"].replace(" x ", " × "))
        values = {name: with_interval(Interval(*by_kind.loc[key])) for name, key in columns.items()}
        rows.append({**row, **values})
    return rows
