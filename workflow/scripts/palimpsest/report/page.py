"""The report: the parts of the sections, the figures and the claims, in one file and as pages."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from palimpsest import tables
from palimpsest.report import answers, making, pages, shared
from palimpsest.report import claims as tests
from palimpsest.report import figures as drawings
from palimpsest.report import models as scales
from palimpsest.report.figures import FigureEntry
from palimpsest.report.part import Part
from palimpsest.report.templates import template


def render(
    out_path: str | Path,
    *,
    parts: Sequence[Part],
    figures: list[FigureEntry],
    headline: pd.DataFrame,
    claims: pd.DataFrame,
    totals: dict,
    grammars: pd.DataFrame | None = None,
    models: Sequence[dict] = (),
    title: str = "",
    n_left_out: int = 0,
    folder: str | Path | None = None,
) -> None:
    """Write the report as one file that holds everything and, in a folder, as pages.

    Parameters
    ----------
    out_path : the HTML file; links to the tables are relative to its folder
    parts : the sections' parts, in the order of the report
    figures : the figures in any order; see `figures.in_order` for their order in the report
    headline, claims : the tables of these names
    totals : facts about the runs, from `manifests.totals`; other keys are allowed. A value is a
        text, a number, or a list or dict of these
    grammars : tables `grammar` of the languages, stacked
    models : the models, from `manifests.initial_weights`
    title : the name of the experiment, if it has one
    n_left_out : number of tests of claims that the experiment leaves out
    folder : where the pages are written; None for the one file alone

    Raises
    ------
    UserError
        If a figure's file is missing or the report cannot be written.
    ValueError
        If a figure's chapter is in none of the parts.
    """
    parts = [shared.part(grammars), *parts]
    ids = [chapter.id for part in parts for chapter in part.chapters]
    ordered = drawings.in_order(figures, ids)
    shown = {
        "title": title,
        "scales": scales.sentence(models),
        "models": scales.rows(models),
        "answers": answers.by_question(headline),
        "headline": tests.headline(claims),
        "glossary": dict(sorted(pair for part in parts for pair in part.glossary.items())),
        "totals": making.rows(totals),
        "testing": template(__file__, "testing.html.j2").module.testing(),
    }
    if folder is not None:
        chapters = in_chapters(parts, drawings.numbered(ordered, Path(folder)))
        pages.write(Path(folder), parts, chapters, claims, **shown)
    drawn = drawings.numbered(ordered, Path(out_path).parent, are_inside=True)
    text = template(__file__, "template.html.j2").render(
        **shown,
        parts=parts,
        n_left_out=n_left_out,
        sections=tests.by_section(claims, parts),
        chapters=in_chapters(parts, drawn),
    )
    with tables.replacing(out_path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")


def in_chapters(parts: Sequence[Part], figures: Sequence[dict]) -> list[dict]:
    """The chapters that have something to show, each with its figures."""
    return [
        {"it": chapter, "figures": drawn}
        for part in parts
        for chapter in part.chapters
        for drawn in [[figure for figure in figures if figure["chapter"] == chapter.id]]
        if drawn or chapter.before or chapter.after
    ]
