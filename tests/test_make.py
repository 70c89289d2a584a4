"""The script of every rule that needs no model: what a function is given, and what is written."""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest

from helpers.jobs import SCRIPT, do_job
from palimpsest import tables
from palimpsest.errors import Notice
from palimpsest.making import makes, reads
from palimpsest.script_job import script_job
from palimpsest.tables.kinds import Column, Document, Kind

NUMBERS = Kind("numbers", "One row per number.", "{n}.parquet", (Column("n", "int", "a number"),))
SQUARES = Kind("squares", "One row per number.", "{n}.parquet", (Column("n", "int", "a square"),))
TOTAL = Document("total", "total.json")


def of(*values: int) -> pd.DataFrame:
    return pd.DataFrame({"n": list(values)})


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A function that does the job of a rule which names `function`, and gives its folder."""

    def do(function, output: dict, params: dict | None = None, **given) -> Path:
        module = ModuleType("made_here")
        module.function = function
        monkeypatch.setitem(sys.modules, module.__name__, module)
        paths = {
            name: [str(tmp_path / file) for file in files]
            if isinstance(files, list)
            else str(tmp_path / files)
            for name, files in output.items()
        }
        do_job(tmp_path, "made_here:function", output=paths, params=params or {}, **given)
        return tmp_path

    return do


@pytest.fixture
def files(tmp_path) -> list[str]:
    """Two tables of numbers."""
    paths = [str(tmp_path / f"{place}.parquet") for place in range(2)]
    for place, path in enumerate(paths):
        tables.write(path, of(place, 7), NUMBERS)
    return paths


def test_inputs_are_read_as_they_are_declared(made, files):
    """Stacked, one by one when they are used, by a function, and not at all."""

    @reads(one=NUMBERS, stacked=NUMBERS, each=[NUMBERS], lengths=[len], length=len)
    @makes(SQUARES)
    def function(one, stacked, each, lengths, length, path):
        assert one["n"].tolist() == [0, 7]
        assert stacked["n"].tolist() == [0, 7, 1, 7]
        assert [table["n"].tolist() for table in each] == [[0, 7], [1, 7]]
        assert len(each) == 2
        assert list(lengths) == [len(path) for path in files]
        assert length == len(files[0])
        assert path == files[0]
        return of(1)

    given = {"one": files[0], "stacked": files, "each": files, "lengths": files}
    folder = made(
        function,
        {"table": "squares.parquet"},
        input={**given, "length": files[0], "path": files[0]},
    )
    assert tables.read(folder / "squares.parquet", SQUARES)["n"].tolist() == [1]


def test_a_file_of_a_sequence_is_read_when_it_is_used(made, files):
    """So only one of them has to be in memory, and a broken one harms only its use."""
    Path(files[1]).write_text("broken")

    @reads(each=[NUMBERS])
    @makes(SQUARES)
    def function(each):
        return each[0]

    folder = made(function, {"table": "squares.parquet"}, input={"each": files})
    assert (folder / "squares.parquet").exists()


def test_values_are_given_by_name(made):
    """All parameters; and of wildcards, resources and outputs those that the function names."""

    def function(*, bins, share, seed, language, threads, mem_mb, svg):
        Path(svg).write_text(f"{bins} {share} {seed + 1} {language} {threads} {mem_mb}")

    folder = made(
        function,
        {"svg": "figure.svg", "png": "figure.png"},
        {"bins": 5, "parameters": {"share": 0.5}},
        wildcards={"seed": "07", "language": "L1", "model": "m"},
        resources={"mem_mb": 10, "runtime": 5},
    )
    assert (folder / "figure.svg").read_text() == "5 0.5 8 L1 3 10"


def test_a_parameter_that_the_function_does_not_take_is_a_defect(made):
    def function():
        """Takes nothing."""

    with pytest.raises(TypeError, match="unexpected keyword argument 'bins'"):
        made(function, {}, {"bins": 5})


def test_tables_and_documents_go_to_the_outputs_of_their_names(made):
    @makes(NUMBERS, SQUARES, TOTAL)
    def function():
        return {"numbers": of(2), "squares": of(4), "total": {"n": 1}}

    names = {"squares": "a.parquet", "numbers": "b.parquet", "total": "c.json"}
    folder = made(function, names)
    assert tables.read(folder / "a.parquet", SQUARES)["n"].tolist() == [4]
    assert tables.read(folder / "b.parquet", NUMBERS)["n"].tolist() == [2]
    assert json.loads((folder / "c.json").read_text()) == {"n": 1}


@pytest.mark.parametrize("n", [2, 3])
def test_a_function_that_yields_makes_one_file_after_another(made, n):
    """It must make as many as there are outputs."""

    @makes(NUMBERS, SQUARES)
    def function():
        for place in range(2):
            yield {"numbers": of(place), "squares": of(place**2)}

    output = {
        name: [f"{name}-{place}.parquet" for place in range(n)] for name in ("numbers", "squares")
    }
    if n == 3:
        with pytest.raises(ValueError, match="zip"):
            made(function, output)
        return
    folder = made(function, output)
    assert tables.read(folder / "squares-1.parquet", SQUARES)["n"].tolist() == [1]


def test_an_input_of_another_kind_is_refused_in_one_line(made, tmp_path, capsys):
    path = str(tmp_path / "other.parquet")
    other = Kind("other", "One row.", "other.parquet", (Column("m", "int", "a number"),))
    tables.write(path, pd.DataFrame({"m": [1]}), other)

    @reads(table=NUMBERS)
    def function(table):
        """Not called."""

    with pytest.raises(SystemExit):
        made(function, {}, input={"table": path})
    assert capsys.readouterr().err.startswith(f"error: {path}: not a numbers table: it lacks n")


def test_the_library_is_that_of_the_workflow(tmp_path):
    """And not one that is installed, or that stands in the path: a job must be of one version."""
    other = tmp_path / "palimpsest"
    other.mkdir()
    (other / "__init__.py").write_text("raise ImportError('another palimpsest')")
    code = f"import runpy, sys; sys.path[:0] = [{str(tmp_path)!r}]; runpy.run_path({str(SCRIPT)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_job_says_a_line_once(tmp_path, capsys, monkeypatch):
    """Also if code between the two lets Python forget what it has warned of."""
    for name in ("collect_rarely", "raise_when_interrupted"):  # of this process
        monkeypatch.setattr(f"palimpsest.script_job.{name}", lambda: None)
    job = SimpleNamespace(log=[str(tmp_path / "log")])
    with warnings.catch_warnings(), script_job(job):
        warnings.simplefilter("always")
        for text in ("few records", "few records", "no records"):
            warnings.warn(Notice(text), stacklevel=1)
    expected = "warning: few records\nwarning: no records\n"
    assert capsys.readouterr().err == expected
    assert (tmp_path / "log").read_text() == expected
