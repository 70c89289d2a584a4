"""Folders whose paths do not name the recipe are renamed, and nothing is overwritten.

Columns of tables that need a trained model are renamed, too.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from palimpsest import paths, tables
from palimpsest.information.kinds import LAYERS
from palimpsest.renamed_results import EARLIER_COLUMNS, earlier_folders, rename
from palimpsest.unlearning.kinds import STAGES, UNLEARNED, UNLEARNED_MODELS

REMEDY = "to train nothing again, add --rerun-triggers mtime to the next call"
VALUES = {"epochs": 50, "batch_size": 8}
EARLIER = {
    "results/runs/base/short/a-twin/L1/n16-seed0": ["results/runs/a-twin/L1/n16-seed0/base"],
    "results/replicates/default/a-twin/L1/n16-seed0/retain/0-7": [
        "results/unlearning/a-twin/L1/n16-seed0/retain/draws-0-7",
        "results/unlearning/a-twin/L1/n16-seed0/retain-innocent/draws-0-7",
    ],
    "results/density/short/a-twin/L1/n16-seed0/base": ["results/density/a-twin/L1/n16-seed0/base"],
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(folder, **values):
    """A folder of results with a manifest, and a file that says which folder it was."""
    folder.mkdir(parents=True)
    recipe = {**VALUES, **values, "precision": "fp32"}
    (folder / "manifest.json").write_text(json.dumps({"configuration": {"recipe": recipe}}))
    (folder / "trace.parquet").write_text(str(folder))


def wanted(path, recipe, **values):
    return {"path": path, "recipe": recipe, "values": {**VALUES, **values}}


@pytest.mark.parametrize("path", EARLIER)
def test_the_earlier_folders_of_a_folder(path):
    assert earlier_folders(path, "short" if "short" in path else "default") == EARLIER[path]


def test_a_folder_is_renamed_once(here):
    target, before = (
        "results/runs/base/default/a-twin/L1/n16-seed0",
        "results/runs/a-twin/L1/n16-seed0",
    )
    made(here / before / "base")
    folders = [wanted(target, "default")]
    assert rename(folders) == ["renamed 1 folders: their paths now name the recipe", REMEDY]
    assert (here / target / "trace.parquet").read_text() == str(here / before / "base")
    assert not (here / "results/runs/a-twin").exists()  # no empty folder is left
    assert rename(folders) == ["renamed 0 folders: their paths now name the recipe"]


def test_of_two_recipes_the_one_that_made_a_folder_names_it(here):
    made(here / "results/runs/a-twin/L1/n16-seed0/base", epochs=10)
    recipes = {"default": 50, "short": 10}
    folders = [
        wanted(f"results/runs/base/{name}/a-twin/L1/n16-seed0", name, epochs=epochs)
        for name, epochs in recipes.items()
    ]
    assert rename(folders)[0].startswith("renamed 1 folders")
    assert [path.name for path in (here / "results/runs/base").iterdir()] == ["short"]


def test_a_folder_of_another_recipe_stays(here):
    before = here / "results/runs/a-twin/L1/n16-seed0/base"
    made(before, epochs=3)
    said = rename([wanted("results/runs/base/default/a-twin/L1/n16-seed0", "default")])
    assert said[0].startswith("renamed 0 folders")
    assert said[1].startswith("left in place: 1 folders")
    assert "results/runs/a-twin/L1/n16-seed0/base" in said[1]
    assert (before / "trace.parquet").is_file()


def test_innocent_models_become_models_of_their_recipe(here):
    folder = here / "results/unlearning/a-twin/L1/n16-seed0"
    made(folder / "retain/draws-0-7")
    made(folder / "retain-innocent/draws-0-7", batch_size=4)
    target = "results/replicates/{}/a-twin/L1/n16-seed0/retain/0-7"
    folders = [
        wanted(target.format("forgetting"), "forgetting"),
        wanted(target.format("small"), "small", batch_size=4),
    ]
    assert rename(folders) == ["renamed 2 folders: their paths now name the recipe", REMEDY]
    innocent = here / target.format("small") / "trace.parquet"
    assert innocent.read_text() == str(folder / "retain-innocent/draws-0-7")


def test_nothing_is_overwritten(here):
    before = here / "results/runs/a-twin/L1/n16-seed0/base"
    target = here / "results/runs/base/default/a-twin/L1/n16-seed0"
    made(before)
    made(target)
    said = rename([wanted(str(target.relative_to(here)), "default")])
    assert said[0].startswith("renamed 0 folders")
    assert "left in place: 1 folders" in said[1]
    assert (target / "trace.parquet").read_text() == str(target)
    assert (before / "trace.parquet").is_file()


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_folder_whose_manifest_says_nothing_stays(here, text):
    before = here / "results/runs/a-twin/L1/n16-seed0/base"
    made(before)
    (before / "manifest.json").write_text(text)
    said = rename([wanted("results/runs/base/default/a-twin/L1/n16-seed0", "default")])
    assert said[0].startswith("renamed 0 folders")
    assert (before / "trace.parquet").is_file()


@pytest.mark.parametrize(
    "file",
    [
        "results/unlearning/default/a-twin/L1/n16-seed0/unlearned/npo/runs-0-1/stages.parquet",
        f"{paths.STATE}/0123456789abcdef0123/0-1-{STAGES.name}.parquet",
    ],
)
def test_columns_get_their_names_of_today(here, file):
    """Values, types and times stay, and a table with the names of today is not written again.

    So do those of finished parts, from which a killed job goes on.
    """
    path = here / file
    path.parent.mkdir(parents=True)
    filled = STAGES.schema.empty_table().to_pandas().reindex(range(2))
    text = dict.fromkeys(("model", "language", "method", "stage", "phase"), "x")
    rows = filled.assign(**text, unlearning_replicate=[0, 1]).fillna(0)
    tables.write(path, rows, STAGES)
    now = pq.read_table(path)
    earlier = ["draw" if name == "unlearning_replicate" else name for name in now.column_names]
    pq.write_table(now.rename_columns(earlier).replace_schema_metadata(now.schema.metadata), path)
    before = path.stat().st_mtime_ns
    assert rename([])[1:] == ["renamed columns of 1 tables", REMEDY]
    assert pq.read_table(path).equals(now, check_metadata=True)
    assert path.stat().st_mtime_ns == before
    assert len(tables.read(path, STAGES)) == 2
    assert len(rename([])) == 1


def test_parts_of_killed_jobs_are_found_by_the_names_of_their_kinds():
    patterns = [Path(pattern) for pattern in EARLIER_COLUMNS if pattern.startswith(paths.STATE)]
    found = {pattern.stem.removeprefix("*-*-") for pattern in patterns}
    assert found == {kind.name for kind in (UNLEARNED, UNLEARNED_MODELS, STAGES, LAYERS)}
