"""What the report's first page says of sets of checkpoints: the share of the gap that is closed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from palimpsest.audit.checkpoints import kinds, report_rows
from palimpsest.report.part import Sentence
from palimpsest.report.templates import given, template


def sentences(tables: Mapping[str, pd.DataFrame]) -> Iterator[Sentence]:
    """A sentence for each unlearned model; its controls and placebos are the note.

    The interval of the share is over groups of records.
    """
    gaps, membership = given(tables, kinds.GAPS, kinds.MEMBERSHIP)
    if gaps.empty:
        return
    html = template(__file__, "report.html.j2").module
    for row in report_rows.answers(gaps, membership):
        yield Sentence(html.closed(row), html.controls(row).strip())
