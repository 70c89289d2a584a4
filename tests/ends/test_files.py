"""The line that names the files to open."""

import pytest

from palimpsest.ends.files import files_to_open
from palimpsest.sections import KINDS, SECTIONS


def test_a_few_files_are_named_one_by_one():
    """Whatever their sort, and each once."""
    assert files_to_open(["results/a.json", "results/b.svg", "results/a.json"]) == (
        "to open: results/a.json; results/b.svg"
    )


def test_many_files_are_counted_where_they_are():
    """The report by its name, and a figure once, although it has an SVG and a PNG."""
    figures = [f"results/figures/x-L{n}.{end}" for n in range(4) for end in ("svg", "png")]
    tables = [f"results/studies/x/L{n}.parquet" for n in range(3)]
    files = [*figures, *tables, "results/claims.parquet", "results/report.html"]
    assert files_to_open(files) == (
        "to open: results/report.html; 4 figures in results/figures; "
        "4 tables in results/studies, results"
    )


def test_of_many_tables_one_is_named_that_is_worth_opening_first():
    """The first path that has a file; where there is a report, it says where to begin."""
    tables = [
        f"results/unlearning/L3/seed{seed}/{name}.parquet" for seed in (1, 2) for name in "ab"
    ]
    first = ("results/records.csv", "results/unlearning/{language}/seed{seed}/b.parquet")
    where = "4 tables in results/unlearning"
    assert files_to_open(tables, first) == f"to open: {tables[1]} first; {where}"
    assert files_to_open(tables, first[:1]) == f"to open: {where}"
    few = [*tables[:2], "results/figures/a.svg", "results/figures/b.svg"]
    assert " first" not in files_to_open(few, first)
    with_report = [*tables, "results/report.html"]
    assert files_to_open(with_report, first) == f"to open: results/report.html; {where}"


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_what_a_section_opens_first_is_among_its_tables(section):
    copies = {"results/records.csv"}  # of tables, for other programs
    assert section.opens
    assert set(section.opens) <= {kind.path for kind in KINDS.values()} | copies


def test_no_file_is_no_line():
    """As for a target that only lists."""
    assert files_to_open([]) is None
