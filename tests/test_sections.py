"""What every section has to have: the interface, whatever its question."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
import yaml

from helpers.experiments import DEFAULT, experiment
from palimpsest.datasets.figures import FIGURES as LANGUAGE_FIGURES
from palimpsest.datasets.kinds import KINDS as DATASET_KINDS
from palimpsest.paths import values_in
from palimpsest.planning.kinds import KINDS as PLANNING_KINDS
from palimpsest.report.part import answers_of
from palimpsest.sections import NAMES, SECTIONS
from palimpsest.tables.claims import CLAIMS
from palimpsest.tables.trace import TRACE

ROOT = Path(__file__).parents[1]
BY_NAME = {section.name: section for section in SECTIONS}
# What the report is given beside the tables, by the names of their kinds
TAKEN = {"claims", "figures", "grammars", "manifests"}


def repeated(names):
    """The names that occur more than once."""
    names = list(names)
    return {name for name in names if names.count(name) > 1}


@pytest.mark.parametrize("name", NAMES)
def test_a_section_has_its_files_its_block_and_its_target(name):
    """All are named like the section."""
    assert BY_NAME[name].title
    assert (ROOT / f"config/schemas/{name}.schema.yaml").is_file()
    assert (ROOT / f"tests/{name}").is_dir()
    for file in (DEFAULT, "config/tour.yaml"):
        assert yaml.safe_load((ROOT / file).read_text())[name], file
    rules = ROOT / f"workflow/rules/{name}.smk"
    assert f'include: "workflow/rules/{name}.smk"' in (ROOT / "Snakefile").read_text()
    assert f"\nrule {name}:\n" in rules.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_what_a_section_delivers_is_of_its_kinds(name, monkeypatch):
    """Every table has a kind of the section; the section judges and reports only its own kinds."""
    monkeypatch.chdir(ROOT)
    kinds = BY_NAME[name].load("kinds")
    # The default asks for nothing of a user's own.
    asking = {
        "records": "config/tour.yaml",
        "audit": "config/minimal/audit.yaml",
        "atlas": "config/minimal/atlas.yaml",
    }
    files = (DEFAULT, *filter(None, [asking.get(name)]))
    paths = experiment(*files).outputs[name]
    assert paths
    of_a_kind = {p for p in paths if any(values_in(kind.path, p) is not None for kind in kinds)}
    assert not [p for p in set(paths) - of_a_kind if p.endswith(".parquet")]
    assert {*BY_NAME[name].judged, *BY_NAME[name].reported} <= set(kinds)


def test_a_page_is_made_if_its_section_is_asked_for_something(monkeypatch):
    """The report then has a link to it."""
    monkeypatch.chdir(ROOT)
    assert experiment(DEFAULT).pages == {}
    pages = experiment(DEFAULT, "config/minimal/atlas.yaml").pages
    assert pages == {"atlas": BY_NAME["atlas"].page}


def test_no_two_parts_of_sections_share_a_name():
    """The second would silently replace the first."""
    kinds = [*DATASET_KINDS, TRACE, CLAIMS, *PLANNING_KINDS]
    kinds += chain.from_iterable(section.load("kinds") for section in SECTIONS)
    assert not repeated(kind.name for kind in kinds)
    assert not TAKEN & {kind.name for section in SECTIONS for kind in section.load("kinds")}
    figures = [
        *LANGUAGE_FIGURES,
        *chain.from_iterable(section.figures for section in SECTIONS),
    ]
    assert not repeated(figure.name for figure in figures)
    chapters = {(figure.chapter, s.name) for s in SECTIONS for figure in s.figures}
    assert not repeated(chapter for chapter, _ in chapters)
    claims = list(chain.from_iterable(section.load("claims") for section in SECTIONS))
    assert not repeated(claim.claim for claim in claims)
    questions = {(claim.question, s.name) for s in SECTIONS for claim in s.load("claims")}
    assert not repeated(question for question, _ in questions)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_a_section_names_what_answers_its_question(section):
    """Claims that it has and that can be tested, or sentences from its tables."""
    assert section.answers or section.location("sentences")
    claims = {claim.claim: claim for claim in section.load("claims")}
    assert set(section.answers) <= claims.keys()
    assert not any(claims[words].by_construction for words in section.answers)
    # The first is said to be missing where it was not tested, so it is always asked for.
    assert not any(claims[words].on_request for words in section.answers[:1])
    assert [answer.claim for answer in answers_of(section)] == [*section.answers]


def test_an_answer_that_is_no_claim_is_refused():
    section = replace(BY_NAME["unlearning"], answers=("Nobody claims this.",))
    with pytest.raises(ValueError, match=r"'unlearning' has no claim 'Nobody claims this\.'"):
        answers_of(section)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_the_kinds_judged_are_those_that_claims_read(section):
    """Memorisation also names the table of every study, of which some have no claim."""
    read = {name for claim in section.load("claims") for name in claim.statistic.reads.split()}
    without_claim = {"bits", "bits_by_rule", "exact", "extraction", "fields", "exposure"}
    expected = read | (without_claim if section.name == "memorisation" else set())
    assert {kind.name for kind in section.judged} == expected
