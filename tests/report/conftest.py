"""Drawings for the tests of the report."""

import pytest
from matplotlib.figure import Figure

from palimpsest import report
from palimpsest.figures.style import save
from palimpsest.sections import FIGURES


@pytest.fixture(scope="session")
def entries(tmp_path_factory):
    """Every figure on two languages, drawn as a line with a clip path and markers."""
    results = tmp_path_factory.mktemp("results")
    made = []
    for language in ("L1", "L<2"):
        for name, row in FIGURES.items():
            svg = results / "figures" / f"{name}-{language}.svg"
            figure = Figure(figsize=(2, 1))
            figure.subplots().plot([0, 1], [0, 1], marker="o")
            save(figure, svg)
            table = results / "studies" / name / f"{language}.parquet"
            made.append(report.FigureEntry(row, language, svg, (table,)))
    return made
