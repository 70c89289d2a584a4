"""docs/fidelity.tsv: every figure, table and question of each paper, held against what makes it."""

import re
from pathlib import Path

import pytest

from palimpsest import reference
from palimpsest.density.paper import PAPER as DENSITY
from palimpsest.information.paper import PAPER as INFORMATION
from palimpsest.memorisation.paper import PAPER as MEMORISATION
from palimpsest.profiles.paper import PAPER as PROFILES
from palimpsest.sections import FIGURES, KINDS, SECTIONS
from palimpsest.unlearning.paper import PAPER as UNLEARNING

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs/fidelity.tsv"
ROWS = reference.read_fidelity(FILE)
# How many figures, tables and questions each paper has, in its appendices too. The main part of the
# last paper is not at hand; its appendix goes on from figure 7 and table 2.
FIGURE, TABLE = "figure", "table"
NUMBERS = {
    MEMORISATION: {FIGURE: 40, TABLE: 3, "RQ": 9},
    UNLEARNING: {FIGURE: 22, TABLE: 1, "Q": 5},
    PROFILES: {FIGURE: 7, TABLE: 0},
    DENSITY: {FIGURE: 16, TABLE: 7},
    INFORMATION: {FIGURE: 10, TABLE: 7},
}
ONE = re.compile(r"(figure|table)s? (\d[\d, ]*(?:(?:and|to|\d)[\d, ]*)*)|\b(RQ|Q)(\d+)\b")


def numbers_in(text):
    """ "3, 18 to 20 and 23" is {3, 18, 19, 20, 23}."""
    found = set()
    for part in re.split(r", | and ", text.strip(" ,")):
        first, _, last = part.partition(" to ")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def numbers_of(row, kind):
    """The numbers of figures, tables or questions that the item of a row names at its beginning."""
    if not (match := ONE.match(row["item"])):
        return set()
    words, numbers, question, number = match.groups()
    if question == kind:
        return {int(number)}
    return numbers_in(numbers) if words == kind else set()


def targets_of(row):
    return row["target"].split()


def known_targets():
    """The names of figures, of tables, and of targets of Snakemake."""
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    names = {*FIGURES, *KINDS, *re.findall(r"^rule (\w+):", rules, re.MULTILINE)}
    for section in SECTIONS:
        names |= {section.name, *section.targets, *(part.name for part in section.parts)}
    return names


def test_numbers_are_read():
    assert numbers_in("3, 18 to 20 and 23") == {3, 18, 19, 20, 23}
    assert numbers_of({"item": "figures 4, 21 and 22, by frequency"}, FIGURE) == {4, 21, 22}
    assert numbers_of({"item": "figure 4, left"}, FIGURE) == {4}
    assert numbers_of({"item": "table 4 beside figure 9"}, FIGURE) == set()
    assert numbers_of({"item": "RQ3: learning"}, "RQ") == {3}


def test_papers_are_those_of_the_code():
    assert list(dict.fromkeys(row["paper"] for row in ROWS)) == list(NUMBERS)
    assert {figure.paper for figure in FIGURES.values() if figure.paper} <= set(NUMBERS)


@pytest.mark.parametrize("paper", NUMBERS)
def test_every_figure_table_and_question_of_a_paper_has_a_row(paper):
    for kind, most in NUMBERS[paper].items():
        found = set()
        for row in ROWS:
            if row["paper"] == paper:
                found |= numbers_of(row, kind)
        assert found == set(range(1, most + 1)), kind


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['paper'][:8]}-{row['item'][:20]}")
def test_a_row_is_whole(row):
    """What it names exists; it says why something is not here, or was not run; it is plain."""
    for target in targets_of(row):
        assert (ROOT / target).exists() if "/" in target else target in known_targets(), target
    verdict = reference.verdict_of(row["found"])
    assert verdict == "" or row["target"], "nothing makes it, so nothing came out"
    assert verdict == "" or row["size"], "the size at which it was run"
    assert row["differs"] or (verdict and row["target"]), "why it is not here, or was not run"
    assert not any(set(cell) & set('"|') or cell != cell.strip() for cell in row.values())


def test_no_item_is_there_twice():
    items = [(row["paper"], row["item"]) for row in ROWS]
    assert len(set(items)) == len(items)


@pytest.mark.parametrize("name", [name for name in FIGURES if FIGURES[name].numbers])
def test_figures_of_the_code_make_the_figures_that_they_declare(name):
    figure, found = FIGURES[name], set()
    for row in ROWS:
        if row["paper"] == figure.paper and name in targets_of(row):
            found |= numbers_of(row, FIGURE)
    assert found == numbers_in(figure.numbers)


def test_page_counts_what_came_out():
    """`test_reference_pages_are_up_to_date` holds docs/fidelity.md to the file; here is a count."""
    cells = [
        ("one", "figure 1", "bits", "1", "agrees: 2", ""),
        ("one", "figure 2", "a/b.tsv", "", "", "large"),
        ("one", "RQ1", "", "", "", "no data"),
        ("two", "RQ1", "bits", "1", "in part", ""),
    ]
    rows = [dict(zip(reference.FIDELITY_COLUMNS, row, strict=True)) for row in cells]
    page = reference.fidelity_page(rows, {"bits"})
    assert "3 items, 2 of them made here: agrees 1, not run 1." in page
    assert "## Two\n\n1 items, 1 of them made here: in part 1." in page
    assert "| figure 1 | [`bits`](tables.md#bits) | 1 | agrees: 2 |  |" in page
    assert "| figure 2 | [b.tsv](../a/b.tsv) |  |  | large |" in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item\tpaper\n", "the columns are"),
        ("paper\titem\ttarget\tsize\tfound\tdiffers\na\tb\n", ":2: 2 cells, where 6 are needed"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, text, message):
    (tmp_path / "fidelity.tsv").write_text(text)
    with pytest.raises(ValueError, match=message):
        reference.read_fidelity(tmp_path / "fidelity.tsv")


def test_what_came_out_begins_with_a_verdict():
    assert reference.verdict_of("cannot tell: 0.1 [-1, 1]") == "cannot tell"
    assert reference.verdict_of("no verdict") == "no verdict"
    with pytest.raises(ValueError, match="must begin with one of agrees, in part"):
        reference.verdict_of("it agrees")
