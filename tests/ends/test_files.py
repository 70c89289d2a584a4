"""The line that names the files to open."""

from types import SimpleNamespace

import pandas as pd
import pytest

from palimpsest.ends.ending import Ending
from palimpsest.ends.files import files_to_open, has_rows
from palimpsest.paths import PLAN
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


def test_a_table_without_rows_is_not_worth_opening(tmp_path):
    """A broken table is: what reads it says what is wrong."""
    for name, n_rows in (("empty", 0), ("filled", 1)):
        pd.DataFrame({"a": range(n_rows)}).to_parquet(tmp_path / f"{name}.parquet")
        pd.DataFrame({"a": range(n_rows)}).to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "broken.parquet").write_bytes(b"")
    (tmp_path / "a.svg").write_text("<svg/>")
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files if not has_rows(str(path))] == [
        "empty.csv", "empty.parquet",
    ]  # fmt: skip


def test_the_last_line_leaves_out_tables_without_rows(tmp_path):
    """Of a text without bins, for example. If nothing else is there, it says so."""
    paths = [str(tmp_path / f"{name}.parquet") for name in ("bins", "density")]
    for n_rows, path in enumerate(paths):
        pd.DataFrame({"a": range(n_rows)}).to_parquet(path)

    def last(*wanted):
        job = SimpleNamespace(output=[*wanted], input=[])
        dag = SimpleNamespace(targetjobs=[job], targetfiles={*wanted})
        experiment = SimpleNamespace(known=(), leftovers=())
        workflow = SimpleNamespace(dag=dag, config_settings=SimpleNamespace(config={}))
        return list(Ending(experiment, workflow)._lines())

    assert last(*paths) == [f"to open: {paths[1]}"]
    assert last(paths[0]) == [f"without rows: {paths[0]}"]


def test_a_plan_alone_speaks_of_no_other_results(tmp_path, monkeypatch):
    """They may be those of another configuration, which is still running."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    pd.DataFrame({"a": [1]}).to_parquet(PLAN)

    def lines(wanted):
        job = SimpleNamespace(output=wanted, input=[])
        dag = SimpleNamespace(targetjobs=[job], targetfiles={*wanted})
        experiment = SimpleNamespace(known=(), leftovers=["results/old.parquet"])
        workflow = SimpleNamespace(dag=dag, config_settings=SimpleNamespace(config={}))
        return " ".join(Ending(experiment, workflow)._lines())

    pd.DataFrame({"a": [1]}).to_parquet("results/a.parquet")
    assert "not of this configuration" in lines(["results/a.parquet"])
    assert "not of this configuration" not in lines([PLAN])


def test_no_file_is_no_line():
    """As for a target that only lists."""
    assert files_to_open([]) is None
