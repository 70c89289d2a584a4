"""The comparison of two folders of results finds a planted difference in each kind of file."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compare_results import main

TABLE = "runs/m/trace.parquet"
SCORES = "unlearning/m/scores.parquet"
SUMMARY = "unlearning/m/summary.parquet"
CLAIMS = "claims.parquet"
MANIFEST = "runs/m/manifest.json"
FIGURE = "figures/f-L1.svg"
REPORT = "report.html"
HTML = '<td>{0}</td> from <a href="{1}">results/{1}</a>\nit is {2}'
FILES = {
    TABLE: {"epoch": [0, 1], "nll": [2.5, None]},
    SCORES: {"method": ["none", "npo"], "epsilon": [float("nan"), 1.0], "seconds_share": [0.0, 1]},
    SUMMARY: {"quantity": ["epsilon", "seconds_share"], "mean": [1.0, 3.0]},
    CLAIMS: {"claim": ["A.", "B."], "language": ["L1", "L1"], "verdict": ["agrees", "disagrees"]},
}


def write(path: Path, columns: dict) -> None:
    pq.write_table(pa.table(columns), path)


@pytest.fixture
def folders(tmp_path) -> tuple[Path, Path]:
    """Two folders of equal results."""
    one, two = tmp_path / "one", tmp_path / "two"
    for name, columns in FILES.items():
        (one / name).parent.mkdir(parents=True, exist_ok=True)
        write(one / name, columns)
    (one / MANIFEST).write_text(json.dumps({"recipe": {"epochs": 3}, "wall_time_seconds": 1.5}))
    (one / FIGURE).parent.mkdir()
    (one / FIGURE).write_text("<svg/>")
    (one / REPORT).write_text(HTML.format("1.5 s", "a/b.parquet", 3))
    (one / ".state").mkdir()
    (one / ".state/lock").write_text("")
    shutil.copytree(one, two)
    return one, two


@pytest.fixture
def compared(capsys):
    """A function that compares two folders: the exit status of the script, and its lines."""

    def run(one: Path, two: Path, *more: str) -> tuple[int, list[str]]:
        status = main([str(one), str(two), *more])
        return status, capsys.readouterr().out.splitlines()

    return run


def changed(name: str, column: str, values: list) -> dict:
    """The columns of a file, one of them changed."""
    return {**FILES[name], column: values}


def test_equal_folders_differ_in_nothing(folders, compared):
    """Missing values are equal to each other."""
    assert compared(*folders) == (0, ["7 files compared: 0 differences"])


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        (SCORES, changed(SCORES, "seconds_share", [0.0, 2.0])),
        (SUMMARY, changed(SUMMARY, "mean", [1.0, 4.0])),
    ],
)
def test_times_may_differ(folders, compared, name, columns):
    """Times in tables and times in manifests."""
    one, two = folders
    write(two / name, columns)
    (two / MANIFEST).write_text(json.dumps({"recipe": {"epochs": 3}, "wall_time_seconds": 2.5}))
    (two / REPORT).write_text(HTML.format("2.5 s", "new/a/b.parquet", 3))
    assert compared(one, two)[0] == 0


@pytest.mark.parametrize(
    ("name", "columns", "line"),
    [
        (SCORES, changed(SCORES, "epsilon", [float("nan"), 1.0 + 2**-52]), "epsilon: 1 of 2"),
        (SCORES, changed(SCORES, "epsilon", [None, 1.0]), "epsilon: 1 of 2 values differ"),
        (SCORES, changed(SCORES, "method", ["npo", "none"]), "method: 2 of 2 values differ"),
        (SCORES, changed(SCORES, "epsilon", pa.array([0, 1], "float")), "double, and float in"),
        (SCORES, {k: v[:1] for k, v in FILES[SCORES].items()}, "2 rows, and 1 in the other"),
        (SCORES, {k: FILES[SCORES][k] for k in ("method", "seconds_share")}, "epsilon: missing"),
        (SCORES, dict(reversed(FILES[SCORES].items())), "columns are in another order"),
        (SUMMARY, changed(SUMMARY, "mean", [2.0, 3.0]), "column mean: 1 of 2 values differ"),
        (TABLE, changed(TABLE, "nll", [2.5, 0.0]), "column nll: 1 of 2 values differ"),
        (CLAIMS, changed(CLAIMS, "verdict", ["agrees", "agrees"]), "verdict: 1 of 2"),
        (CLAIMS, changed(CLAIMS, "claim", ["A.", "C."]), "claim missing: B. L1"),
    ],
)
def test_a_difference_in_a_table_is_found(folders, compared, name, columns, line):
    """Differences in values, types, rows and columns; also with `--allow-new`."""
    one, two = folders
    write(two / name, columns)
    for more in ((), ("--allow-new",)):
        status, lines = compared(one, two, *more)
        assert status == 1
        assert any(found.startswith(f"{name}: ") and line in found for found in lines), lines


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        (MANIFEST, '{"recipe": {"epochs": 4}}', "recipe/epochs: 3, and 4 in the other"),
        (MANIFEST, '{"recipe": {}}', "recipe/epochs: missing"),
        (FIGURE, "<svg />", "its bytes differ"),
        (
            REPORT,
            HTML.format("1.5 s", "a/b.parquet", 4),
            "line 2: 'it is 3', and 'it is 4' in the other",
        ),
        (REPORT, HTML.format("1.5 s", "a/b.parquet", 3) + "\nmore", "2 lines, and 3 in the other"),
    ],
)
def test_a_difference_in_another_file_is_found(folders, compared, name, content, line):
    """Manifests are compared by key, figures by bytes."""
    one, two = folders
    (two / name).write_text(content)
    status, lines = compared(one, two)
    assert status == 1
    assert f"{name}: {line}" in lines


def test_a_trace_of_equal_values_may_have_other_bytes(folders, compared):
    """Then its bytes are what differs."""
    one, two = folders
    pq.write_table(pa.table(FILES[TABLE]), two / TABLE, compression="none")
    assert compared(one, two)[1][0] == f"{TABLE}: its bytes differ"


def test_a_missing_file_is_found(folders, compared):
    """On either side, and also where new things are allowed."""
    one, two = folders
    (two / SCORES).unlink()
    assert compared(one, two, "--allow-new")[1][0] == f"{SCORES}: missing in {two}"
    assert compared(two, one)[1][0] == f"{SCORES}: only in {one}"


def test_new_things_are_said_and_may_be_allowed(folders, compared):
    """A file, a column and a claim that only the other folder has."""
    one, two = folders
    (two / "figures/g-L1.svg").write_text("<svg/>")
    write(two / SCORES, {**FILES[SCORES], "more": [1, 2]})
    write(
        two / CLAIMS, {key: [values[0], "new", values[1]] for key, values in FILES[CLAIMS].items()}
    )
    assert compared(one, two)[0] == 1
    assert compared(one, two, "--allow-new") == (
        0,
        [
            f"new: {CLAIMS}: claim only in the other: new new",
            f"new: figures/g-L1.svg: only in {two}",
            f"new: {SCORES}: column more: only in the other",
            "7 files compared: 0 differences, 3 new things",
        ],
    )


def test_files_and_columns_may_have_new_names(folders, compared, tmp_path):
    """The names in the column `quantity` are those of columns."""
    one, two = folders
    (two / SCORES).rename((two / SCORES).with_name("marks.parquet"))
    write((two / SCORES).with_name("marks.parquet"), {
        "method": ["none", "npo"], "bound": [float("nan"), 1.0], "seconds_share": [0.0, 1]
    })  # fmt: skip
    write(two / SUMMARY, {"quantity": ["bound", "seconds_share"], "mean": [1.0, 3.0]})
    assert compared(one, two)[0] == 1
    file, folder = tmp_path / "renamed.tsv", Path(SCORES).parts[0]
    rows = [("where", "old", "new"), ("file", SCORES, "marks.parquet")]
    rows += [(f"{folder}/*", "epsilon", "bound")]
    file.write_text("".join("\t".join(row) + "\n" for row in rows))
    renamed = ("--renamed", str(file))
    assert compared(one, two, *renamed) == (0, [f"{len(FILES) + 3} files compared: 0 differences"])
    write(two / SUMMARY, {"quantity": ["bound", "seconds_share"], "mean": [2.0, 3.0]})
    assert compared(one, two, *renamed)[0] == 1


def test_a_folder_without_results_is_refused(folders, tmp_path, capsys):
    """It would be equal to everything."""
    assert main([str(folders[0]), str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path / 'none'}: no folder of results\n"
