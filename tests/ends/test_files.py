"""The line that names the files to open."""

from palimpsest.ends.files import files_to_open


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


def test_no_file_is_no_line():
    """As for a target that only lists."""
    assert files_to_open([]) is None
