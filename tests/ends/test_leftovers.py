"""Files of another configuration: which they are, and where they are moved."""

import pytest

from palimpsest.ends.leftovers import account, leftovers, notice

FIGURE = "results/figures/{figure}-{language}.svg"
LEFT = ["results/figures/x-L1.svg", "results/figures/x-L2.svg"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two figures (a configuration makes one) and a file of the user's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results/figures").mkdir(parents=True)
    for file in (*LEFT, "results/figures/notes.svg"):
        (tmp_path / file).write_text(file)
    return tmp_path


def test_only_what_fits_a_pattern_and_is_not_wanted(folder):
    """A file that no rule makes is the user's own."""
    assert leftovers([FIGURE], []) == LEFT
    assert leftovers([FIGURE, FIGURE], LEFT[:1]) == LEFT[1:]
    assert leftovers([], []) == []


def test_nothing_is_overwritten(folder):
    """Each time, the files go to a folder of their own, with their places in it."""
    for number in (1, 2):
        said = account(LEFT, [])
        assert said[0] == f"moved 2 figures and tables to results/apart/{number}"
        for file in LEFT:
            assert not (folder / file).exists()
            assert (folder / file.replace("results", f"results/apart/{number}")).read_text()
            (folder / file).write_text("another")
    assert (folder / "results/apart/1/figures/x-L1.svg").read_text() == LEFT[0]
    assert (folder / "results/apart/2/figures/x-L1.svg").read_text() == "another"
    assert (folder / "results/figures/notes.svg").exists()


def test_without_leftovers_nothing_is_made(folder):
    """Runs of other configurations are named, and stay."""
    said = account([], ["results/runs/a/manifest.json"])
    assert "no figure or table of another configuration" in said
    assert "left in place: 1 runs of other configurations" in said[1]
    assert not (folder / "results/apart").exists()
    assert notice([], "") is None
