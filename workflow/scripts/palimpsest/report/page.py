"""The page: the parts of the sections, the figures and the claims in one file."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from palimpsest import tables
from palimpsest.report import claims as tests
from palimpsest.report import figures as drawings
from palimpsest.report import making
from palimpsest.report.figures import FigureEntry
from palimpsest.report.part import Part
from palimpsest.report.shared import SHARED
from palimpsest.report.templates import template


def render(
    out_path: str | Path,
    *,
    parts: Sequence[Part],
    figures: list[FigureEntry],
    claims: pd.DataFrame,
    totals: dict,
    title: str = "",
) -> None:
    """Write the report.

    Parameters
    ----------
    out_path : the HTML file; links to the tables are relative to its folder
    parts : what the sections give, in the order in which it is to stand
    figures : the figures in any order; they stand by chapter, then in the order given
    claims : table `claims`
    totals : what was run, as from `manifests.totals`; any key more is shown as it is, and a value
        is text, a number, a list of them, or a dict of them
    title : what the experiment is called, if it has a name

    Raises
    ------
    UserError
        If a figure's file is missing or the report cannot be written.
    ValueError
        If a figure's chapter is in none of the parts.
    """
    parts = [SHARED, *parts]
    ids = [chapter.id for part in parts for chapter in part.chapters]
    ordered = enumerate(drawings.in_order(figures, ids), start=1)
    numbered = [drawings.shown(entry, number, Path(out_path).parent) for number, entry in ordered]
    text = template(__file__, "template.html.j2").render(
        title=title,
        parts=parts,
        headline=tests.headline(claims),
        sections=tests.by_section(claims, parts),
        chapters=[
            {"it": chapter, "figures": drawn}
            for part in parts
            for chapter in part.chapters
            for drawn in [[each for each in numbered if each["chapter"] == chapter.id]]
            if drawn or chapter.before or chapter.after
        ],
        glossary=dict(sorted(pair for part in parts for pair in part.glossary.items())),
        totals=making.rows(totals),
    )
    with tables.replacing(out_path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")
