"""Results whose paths do not name the recipe are renamed, and nothing is overwritten."""

import pytest

from palimpsest.renamed_results import earlier_path, rename

RECIPES = ["default", "short"]
RENAMED = {
    "results/runs/base/short/a-twin/L1/n16-seed0/trace.parquet": (
        "results/runs/a-twin/L1/n16-seed0/base/trace.parquet"
    ),
    "results/replicates/default/a-twin/L1/n16-seed0/retain/0-7/weights.safetensors": (
        "results/unlearning/a-twin/L1/n16-seed0/retain/draws-0-7/weights.safetensors"
    ),
    "results/profiles/dilution/default/a-twin/L1/dilution.parquet": (
        "results/profiles/dilution/a-twin/L1/dilution.parquet"
    ),
    "results/studies/tradeoff/L1.parquet": "results/studies/tradeoff/L1.parquet",
}


@pytest.mark.parametrize("path", RENAMED)
def test_the_earlier_path_of_a_file(path):
    assert earlier_path(path, RECIPES) == RENAMED[path]


def test_files_are_renamed_and_none_is_overwritten(tmp_path, monkeypatch):
    """A second call has nothing to do; a file whose new path exists stays where it is."""
    monkeypatch.chdir(tmp_path)
    for path in RENAMED.values():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    taken, *others = RENAMED
    (tmp_path / taken).parent.mkdir(parents=True)
    (tmp_path / taken).write_text("newer")
    said = rename(RENAMED, RECIPES)
    assert said[0] == "renamed 2 files: their paths now name the recipe"
    assert RENAMED[taken] in said[1]
    assert (tmp_path / taken).read_text() == "newer"
    assert (tmp_path / RENAMED[taken]).is_file()
    for path in others:
        assert (tmp_path / path).read_text() == RENAMED[path]
    assert not (tmp_path / "results/unlearning").exists()
    assert rename(RENAMED, RECIPES)[0].startswith("renamed 0 files")
