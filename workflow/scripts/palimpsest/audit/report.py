"""The part of the report on the audit."""

from collections.abc import Mapping

import pandas as pd
from markupsafe import Markup

from palimpsest.audit import kinds
from palimpsest.audit.checkpoints import kinds as checkpoint_kinds
from palimpsest.audit.checkpoints import report_rows
from palimpsest.audit.claims import QUESTIONS
from palimpsest.audit.roc_curves import AUC, TPR
from palimpsest.estimates import with_interval
from palimpsest.report.part import Part, chapters_of, with_words
from palimpsest.report.templates import given, groups, shown, template
from palimpsest.statistics import Interval

THOSE = {
    "trained": " and was trained on",
    "unseen": " and was not trained on",
    "unknown": "",
}


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report, from its stacked tables.

    Without any, the part has no words.
    """
    html = template(__file__, "report.html.j2").module
    roc, explained, gaps = given(tables, kinds.ROC, kinds.EXPLAINED, checkpoint_kinds.GAPS)
    if roc.empty and explained.empty and gaps.empty:
        return Part(chapters=chapters_of(html))
    after = {
        "attacks": shown(html.attacks, attack_rows, roc),
        "references": shown(html.references, reference_rows, explained),
    }
    before = {"references": shown(html.answers, answers, explained)}
    if not gaps.empty:
        before["checkpoints"], after["checkpoints"] = of_checkpoints(html, tables)
    return with_words(html, QUESTIONS, before, after)


def of_checkpoints(html, tables: Mapping[str, pd.DataFrame]) -> tuple[Markup, Markup]:
    """Sentences on each unlearned model, and tables."""
    of_sets = checkpoint_kinds.OF_SETS
    metrics, gaps, qualities, membership, tests = given(tables, *of_sets)
    by_name = dict(zip((kind.name for kind in of_sets), given(tables, *of_sets), strict=True))
    after = [
        shown(html.checkpoint_metrics, report_rows.metric_rows, metrics),
        shown(html.checkpoint_qualities, report_rows.quality_rows, qualities),
        shown(html.checkpoint_tests, report_rows.apart_rows, tests),
        html.left_out(report_rows.left_out(gaps, by_name)),
    ]
    return html.unlearned(report_rows.answers(gaps, membership)), Markup().join(after)


def attack_rows(roc: pd.DataFrame) -> list[dict]:
    """Per corpus, model and attack: AUC and true positive rates, each with its interval."""
    rows = []
    for row, found in groups(roc, ["language", "model", "attack"]):
        by_name = {one.statistic: one for one in found.itertuples()}
        rates = [name for name in by_name if name.startswith(TPR)]
        first = found.iloc[0]
        shares = (f"{name.removeprefix(TPR)}: {_interval(by_name[name])}" for name in rates)
        rows.append(
            {
                **row,
                "n": f"{first['n_members']:,} / {first['n_unseen']:,}",
                "auc": _interval(by_name[AUC]),
                "tpr": "; ".join(shares),
            }
        )
    return rows


def reference_rows(explained: pd.DataFrame) -> list[dict]:
    """Per corpus, model, reference and side: what is recited, and what the reference explains."""
    names = {
        "recited": kinds.IS_RECITED,
        "mostly": kinds.MOSTLY_EXPLAINED,
        "better": kinds.AS_WELL,
    }
    rows = []
    for row, found in groups(explained, ["language", "model", "reference", "side"]):
        by_name = {one.statistic: one for one in found.itertuples()}
        rows.append({**row, **{key: _interval(by_name[name]) for key, name in names.items()}})
    return rows


def answers(explained: pd.DataFrame) -> list[dict]:
    """Per corpus, model and reference: the share of what is recited that the reference explains."""
    found = explained[explained["statistic"] == kinds.AS_WELL]
    found = found[(found["side"] != "unseen") & (found["n_recited"] > 0)]
    return [
        {**row._asdict(), "value": _interval(row), "those": THOSE[row.side]}
        for row in found.itertuples(index=False)
    ]


def _interval(row) -> str:
    return with_interval(Interval(row.value, row.lower, row.upper))
