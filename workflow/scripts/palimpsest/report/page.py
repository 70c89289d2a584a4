"""The report: the parts of the sections, the figures and the claims, as pages and as one file."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from palimpsest.report import answers, changes, making, pages, shared
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
    is_short: bool = False,
) -> None:
    """Write the report as pages in a folder, and the same pages one after another as one file.

    A file beside the report keeps its verdicts and numbers, with which the next one is compared.

    Parameters
    ----------
    out_path : the HTML file that holds everything; links to the tables are relative to its folder
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
    is_short : whether a section has its first figure alone, and claims that are decided alone

    Raises
    ------
    UserError
        If a figure's file is missing or the report cannot be written.
    ValueError
        If a figure's chapter is in none of the parts.
    """
    parts = [*parts, shared.part(grammars)]
    ids = [chapter.id for part in parts for chapter in part.chapters]
    empty = [entry for entry in figures if drawings.says_nothing(entry)]
    ordered = drawings.in_order([entry for entry in figures if entry not in empty], ids)
    now = changes.snapshot(claims, headline)
    known = {
        "title": title,
        "is_short": is_short,
        "scales": scales.sentence(models),
        "models": scales.rows(models),
        "answers": answers.by_question(headline),
        "headline": tests.headline(claims),
        "changes": changes.since_last(out_path, now),
        "n_left_out": n_left_out,
        "glossary": dict(sorted(pair for part in parts for pair in part.glossary.items())),
        "totals": making.rows(totals),
        "testing": template(__file__, "testing.html.j2").module.testing(),
    }

    def content(folder: Path, styles: dict[str, str] | None) -> dict:
        chapters = in_chapters(parts, drawings.numbered(ordered, folder, styles))
        undrawn = [drawings.linked(entry, folder) for entry in empty]
        more = {"styles": styles or {}, "beside": partial(drawings.link, folder=folder)}
        return pages.content(parts, chapters, claims, undrawn, **known, **more)

    known["glossary"] = pages.used_terms(content(Path(out_path).parent, styles=None))

    if folder is not None:
        pages.write_pages(Path(folder), content(Path(folder), styles=None))
    pages.write_file(Path(out_path), content(Path(out_path).parent, styles={}))
    changes.keep(out_path, now)


def in_chapters(parts: Sequence[Part], figures: Sequence[dict]) -> list[dict]:
    """The chapters that have something to show, each with its figures."""
    return [
        {"it": chapter, "figures": drawn}
        for part in parts
        for chapter in part.chapters
        for drawn in [[figure for figure in figures if figure["chapter"] == chapter.id]]
        if drawn or chapter.before or chapter.after
    ]
