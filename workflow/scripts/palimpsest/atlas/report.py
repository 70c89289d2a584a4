"""The part of the report on the atlas."""

from collections.abc import Mapping

import pandas as pd

from palimpsest.atlas import kinds
from palimpsest.atlas.claims import QUESTIONS
from palimpsest.atlas.contenders import RETRAINING
from palimpsest.atlas.kinds import QUESTIONS as ASKED
from palimpsest.atlas.kinds import RANK
from palimpsest.atlas.titles import title_of
from palimpsest.estimates import with_interval
from palimpsest.number_format import number
from palimpsest.report.part import Part, with_words
from palimpsest.report.templates import given, groups, mean_over_seeds, shown, template
from palimpsest.statistics import Interval

SHOWN = 3
LOSS = "recollection"  # shown in any case, because everybody has it


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report, from the stacked tables of its reported kinds."""
    html = template(__file__, "report.html.j2").module
    atlas, foretelling = given(tables, kinds.ATLAS, kinds.FORETELLING)
    before = {
        "atlas": shown(html.everywhere, rows_of_all_cells, atlas),
        "atlas_foretold": shown(html.foretold, foretold_rows, foretelling),
    }
    after = {"atlas": shown(html.best, best_rows, atlas)}
    return with_words(html, QUESTIONS, before, after)


def rows_of_all_cells(atlas: pd.DataFrame) -> list[dict]:
    """What holds in every cell: measures above 0 in all of them, and those below 0 in some."""
    cheap = atlas[(atlas["statistic"] == RANK) & (atlas["needs"] != RETRAINING)]
    rows = []
    for question in ASKED:
        asked = cheap[cheap["question"] == question]
        if asked.empty:
            continue
        measures = asked.groupby("measure", sort=False)
        n_cells = measures.size().max()
        above = measures["lower"].agg(lambda ends: (ends > 0).sum()) == n_cells
        below = measures["upper"].agg(lambda ends: (ends < 0).any())
        rows.append(
            {
                "question": question,
                "always": _titles(above),
                "wrong": _titles(below),
                "cells": f"{n_cells}",
            }
        )
    return rows


def _titles(holds: pd.Series) -> str:
    return "; ".join(map(title_of, holds.index[holds])) or "none"


def best_rows(atlas: pd.DataFrame) -> list[dict]:
    """The best measures of every question and cell, and the loss."""
    ranks = atlas[atlas["statistic"] == RANK]
    return [
        {
            "question": question,
            **cell,
            "measure": title_of(row.measure),
            "value": with_interval(Interval(row.value, row.lower, row.upper)),
            **{name: number(getattr(row, name)) for name in ("ceiling", "placebo", "cost")},
        }
        for question in ASKED
        for cell, rows in groups(ranks[ranks["question"] == question], ["language", "model"])
        for row in best(rows).itertuples()
    ]


def best(rows: pd.DataFrame, n: int = SHOWN) -> pd.DataFrame:
    """The measures of one question and cell with the highest values, and the loss."""
    cheap = rows[(rows["needs"] != RETRAINING) & rows["value"].notna()]
    ordered = cheap.sort_values("value", ascending=False)
    return ordered[(ordered.reset_index().index < n) | (ordered["measure"] == LOSS)]


def foretold_rows(foretelling: pd.DataFrame) -> list[dict]:
    """How well each outcome was foretold, of the runs that were foretold before their training."""
    told = foretelling[foretelling["foretold_before"].astype(bool)]
    return [
        {
            **named,
            **{
                name: mean_over_seeds(rows[column])
                for name, column in (("value", "r_squared"), ("coverage", "coverage"))
            },
            **{
                name: number(rows[column].mean())
                for name, column in (("by_rarity", "r_squared_by_rarity"), ("placebo", "placebo"))
            },
        }
        for named, rows in groups(told, ["outcome", "new", "language", "model"])
    ]
