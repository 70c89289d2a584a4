"""The part of the report on the audit."""

from collections.abc import Mapping
from functools import partial

import pandas as pd
from markupsafe import Markup

from palimpsest.audit import kinds
from palimpsest.audit.checkpoints import kinds as checkpoint_kinds
from palimpsest.audit.checkpoints import report_rows
from palimpsest.audit.claims import QUESTIONS
from palimpsest.audit.references import OTHER, is_private
from palimpsest.audit.references import sides as sides_of
from palimpsest.commands import snakemake
from palimpsest.number_format import number
from palimpsest.records.classifiers import BLIND, LEAST
from palimpsest.records.roc_curves import AUC, TPR
from palimpsest.report.part import Part, chapters_of
from palimpsest.report.templates import given, groups, shown, template

MOST = 12  # records of each target in the table of findings
THOSE = {
    "trained": " that are marked as trained on and long enough",
    "unseen": " that are marked as not trained on and long enough",
    "unknown": "",
}
TARGET = ["language", "model"]


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report, from stacked tables of the kinds `Section.reported`.

    Without any, the part has no words.
    """
    html = template(__file__, "report.html.j2").module
    roc, explained, private, findings, gaps = given(
        tables, kinds.ROC, kinds.EXPLAINED, kinds.PRIVATE, kinds.FINDINGS, checkpoint_kinds.GAPS
    )
    if roc.empty and private.empty and gaps.empty:
        return Part(chapters=chapters_of(html))
    before, opening = {}, Markup()
    what = {"attacked": not (roc.empty and private.empty), "unlearned": not gaps.empty}
    if not private.empty:
        before["attacks"] = html.without_curves(without_curves(private, roc))
        opening += html.answers(answers(private, findings))
    # Records without a continuation are in the first table alone; without attacks, it is empty.
    counted = pd.concat([roc, private])
    after = {
        "attacks": shown(html.attacks, attack_rows, roc)
        + shown(html.duplicates, duplicates, counted)
        + shown(html.without_intervals, without_intervals, roc)
        + shown(html.without_learning, without_learning, roc),
        "recited": shown(html.shares, share_rows, private)
        + shown(partial(html.findings, most=MOST), finding_rows, findings),
        "references": shown(html.references, reference_rows, explained),
    }
    if not gaps.empty:
        of_unlearned, after["checkpoints"] = of_checkpoints(html, tables)
        opening += of_unlearned
    return Part(
        title=str(html.title(what)),
        introduction=html.introduction(what),
        reading=html.reading(),
        claims=html.claims(),
        opening=opening,
        chapters=chapters_of(html, before, after),
        questions=QUESTIONS,
        glossary=html.glossary,
    )


def of_checkpoints(html, tables: Mapping[str, pd.DataFrame]) -> tuple[Markup, Markup]:
    """Sentences on each unlearned model, which open the page, and tables."""
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


def answers(private: pd.DataFrame, findings: pd.DataFrame) -> list[dict]:
    """Per target: how many records it recites, and how many of these are explained and private."""
    rows = []
    for target, found in groups(private[private["statistic"] == kinds.OF_RECITED], TARGET):
        sides = {row.side: row for row in found.itertuples()}
        placebo = sides.pop(kinds.UNSEEN, None)
        of_placebo = placebo_of(placebo, int(found["n_duplicates"].max()))
        here = findings[(findings[TARGET] == pd.Series(target)).all(axis=1)]
        for side, row in sides.items() or [(kinds.UNSEEN, placebo)]:
            recited = here[(sides_of(here["trained"]) == side) & ~here["duplicate"].astype(bool)]
            is_explained = recited["explained"]
            rows.append(
                {
                    **target,
                    "n_recited": row.n_recited,
                    "n_records": row.n_records,
                    "those": THOSE[side],
                    "n_explained": None if is_explained.isna().any() else int(is_explained.sum()),
                    "n_private": int(is_private(recited["private"]).sum()),
                    "n_matter": int(recited["matters"].sum()),
                    "placebo": of_placebo if sides else "",
                }
            )
    return rows


def placebo_of(unseen, n_duplicates: int) -> str:
    """What is recited of the records never trained on, from their row; or why there is none."""
    if unseen is not None:
        return (
            f"Placebo: it recites {unseen.n_recited} of the {unseen.n_records} records that are "
            "marked as not trained on, and cannot have memorised them."
        )
    if n_duplicates:
        return (
            "Placebo: none, because all records that are marked as not trained on "
            f"({n_duplicates:,}) are left out: they are (nearly) the text of one that was."
        )
    return (
        "Placebo: none, because no record is marked as not trained on, or none of these is long "
        "enough to be continued."
    )


def finding_rows(findings: pd.DataFrame) -> list[dict]:
    """The first findings of each target, as in table 3 of the paper."""
    rows = []
    for target, found in groups(findings, TARGET):
        file = kinds.COPIES["csv"].format(**target)
        for row in found.head(MOST).itertuples():
            kinds_of = "" if pd.isna(row.private) else row.private
            remarks = [
                f"matters: {kinds_of}" if row.matters else kinds_of,
                row.category if row.category != OTHER else "",
                "" if pd.isna(row.trained) or row.trained else "not trained on",
            ]
            rows.append(
                {
                    **target,
                    "id": row.id,
                    "text": Markup("{}<b>{}</b>").format(row.prompt, row.continuation),
                    "remark": ", ".join(filter(None, remarks)),
                    "accuracy": f"{row.accuracy:.2f}",
                    "reference": number(None)
                    if pd.isna(row.reference)
                    else f"{row.accuracy_reference:.2f} ({row.reference})",
                    "file_and_command": (file, snakemake(file, cores="all")),
                }
            )
    return rows


def share_rows(private: pd.DataFrame) -> list[dict]:
    """Per target and side: the share that is private of all records, and of those recited."""
    rows = []
    for row, found in groups(private, [*TARGET, "side"]):
        by_name = {one.statistic: one for one in found.itertuples()}
        of_recited = by_name[kinds.OF_RECITED]
        rows.append(
            {
                **row,
                "n": f"{of_recited.n_recited:,} / {of_recited.n_records:,}",
                "of_all": _interval(by_name[kinds.OF_ALL]),
                "of_recited": _interval(of_recited),
            }
        )
    return rows


def without_curves(private: pd.DataFrame, roc: pd.DataFrame) -> list[dict]:
    """The targets without records never trained on, and how many were left out."""
    return [
        {**target, "n_duplicates": int(found["n_duplicates"].max())}
        for target, found in groups(private, TARGET)
        if kinds.UNSEEN not in set(found["side"])
        and not (not roc.empty and (roc[TARGET] == pd.Series(target)).all(axis=1).any())
    ]


def duplicates(counted: pd.DataFrame) -> list[dict]:
    """The targets with records that are said to be no members, and nearly are one."""
    most = counted.groupby(TARGET, sort=False)["n_duplicates"].max()
    return most[most > 0].reset_index().to_dict("records")


def without_intervals(roc: pd.DataFrame) -> list[dict]:
    """The targets of which members or others are of a single group, or nearly."""
    found = roc[(roc["statistic"] == AUC) & roc["lower"].isna()].drop_duplicates(TARGET)
    return found[TARGET].to_dict("records")


def without_learning(roc: pd.DataFrame) -> list[dict]:
    """The targets of which members cannot be learned, and whether too few records are the cause."""
    return [
        {
            **target,
            "least": LEAST,
            "is_few": found[["n_members", "n_unseen"]].min(axis=None) < LEAST,
        }
        for target, found in groups(roc, TARGET)
        if BLIND not in set(found["attack"])
    ]


def _interval(row) -> str:
    """A share with its interval, such as 1.00 [0.85, 1.00]; a dash if there is no share."""
    if pd.isna(row.value):
        return number(None)
    if pd.isna(row.lower):
        return f"{row.value:.2f}"
    return f"{row.value:.2f} [{row.lower:.2f}, {row.upper:.2f}]"
