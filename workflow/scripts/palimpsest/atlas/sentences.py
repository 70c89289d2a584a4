"""What the report's first page says of the atlas: the best measure of each cell, and the loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from palimpsest.atlas import kinds
from palimpsest.atlas.kinds import AMOUNT, RANK
from palimpsest.atlas.report import LOSS, best
from palimpsest.atlas.titles import title_of
from palimpsest.estimates import with_interval
from palimpsest.number_format import number
from palimpsest.report.part import Sentence
from palimpsest.report.templates import given, groups
from palimpsest.statistics import Interval


def sentences(tables: Mapping[str, pd.DataFrame]) -> Iterator[Sentence]:
    """A sentence for each model, language and size."""
    (atlas,) = given(tables, kinds.ATLAS)
    if atlas.empty:
        return
    rows = atlas[(atlas["question"] == AMOUNT) & (atlas["statistic"] == RANK)]
    for cell, of_cell in groups(rows, ["model", "language", "size"]):
        yield of_best(cell, of_cell)


def of_best(cell: Mapping, rows: pd.DataFrame) -> Sentence:
    found = best(rows, 1)
    about = f"strings of {cell['language']} under {cell['model']}, trained on {cell['size']},"
    if found.empty:
        return Sentence(
            f"How much {about} are memorised has no order.",
            "All of them have one exact value, or each measure gives them one; other strings would "
            "decide.",
        )
    first = found.iloc[0]
    text = (
        f"{title_of(first['measure'])} orders {about} most as exact retraining does, by how much "
        "they are memorised: rank correlation"
    )
    loss = found[found["measure"] == LOSS]
    ceiling, placebo = (number(first[name]) for name in ("ceiling", "placebo"))
    note = [f"Retraining once more: {ceiling}", f"placebo: {placebo}"]
    note += [f"a low loss: {_shown(row)}" for _, row in loss.iterrows()]
    return Sentence(
        f"{text} {_shown(first)}.",
        f"{'; '.join(note)}. The best of {rows['measure'].nunique() - 1} measures, chosen on the "
        "same strings.",
    )


def _shown(row: pd.Series) -> str:
    return with_interval(Interval(row["value"], row["lower"], row["upper"]))
