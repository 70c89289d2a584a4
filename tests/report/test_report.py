"""What must hold of the report: whole, self-contained, well formed, and true to its tables."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup

from helpers.reports import (
    AGREEMENT,
    APPROXIMATION,
    CLAIMS,
    GIVEN,
    HEADLINE,
    LEARNING,
    TOTALS,
    TRADEOFF,
    Page,
    claim,
    parts,
    rendered,
)
from palimpsest import fingerprint, report, tables
from palimpsest.datasets.grammar import grammar_table
from palimpsest.errors import UserError
from palimpsest.figures.figure import Figure as FigureRow
from palimpsest.languages import Grammar
from palimpsest.memorisation.report import still_learning_rows
from palimpsest.memorisation.section import SECTION as MEMORISATION
from palimpsest.number_format import duration, number
from palimpsest.report import Chapter, Part
from palimpsest.report.claims import VERDICTS, headline, of_part
from palimpsest.report.figures import in_order, inlined
from palimpsest.report.part import part_of
from palimpsest.sections import FIGURES, KINDS, SECTIONS


@pytest.fixture(scope="module")
def text(entries):
    path = entries[0].svg.parent.parent / "report.html"
    return rendered(path, entries)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_the_tables_tested_on_are_of_their_kinds(tmp_path):
    tables.write(tmp_path / "claims.parquet", CLAIMS, KINDS["claims"])
    tables.write(tmp_path / "headline.parquet", HEADLINE, KINDS["headline"])
    for name in ("agreement", "approximation"):
        tables.write(tmp_path / f"{name}.parquet", GIVEN[name], KINDS[name])


def test_every_figure_is_there_once_with_its_words(page, entries):
    """Its caption stands below the drawings of all languages."""
    numbers = [int(n) for n in re.findall(r"Figure (\d+)\. ", page.text)]
    assert numbers == list(range(1, len(FIGURES) + 1))
    drawings = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "role")]
    assert drawings == ["img"] * len(entries)
    for entry in entries:
        assert entry.anchor in page.ids
        assert str(entry.svg) in page.text
    for kind in FIGURES.values():
        subject = f", {kind.drawn_for} L1" if kind.drawn_for else ""
        assert page.text.count(f"{kind.title}{subject}. {kind.caption}") == 1
    assert page.text.count(" L<2 ") == sum(bool(kind.drawn_for) for kind in FIGURES.values())


def test_every_drawing_has_alternative_text(page, entries):
    chapters = [one.id for part in parts() for one in part.chapters]
    told = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert told == [entry.described for entry in in_order(entries, [*chapters, "languages"])]


def test_a_drawing_keeps_what_it_shows_and_loses_what_nobody_sees(tmp_path):
    """Coordinates to a hundredth of a point; words with numbers stay as they are."""
    svg = tmp_path / "a.svg"
    svg.write_text(
        '<svg viewBox="0 0 9 9" xmlns="://x"><!-- made --><g id="patch_1" style="fill: red">\n'
        '<path id="used" d="M 1.23456 -0.001 L 2 3.9999"/></g>\n'
        '<g id="b"><use href="#used" x="0.5"/></g>'
        '<g style="fill: red"><text>0.12345 is #used</text></g></svg>'
    )
    row = FigureRow("toy", 10, "toys", "A toy", "It is round. See it.", ())
    styles = {}
    made = inlined(report.FigureEntry(row, "L1", svg, ()), "f1", styles)
    assert made["svg"] == (
        '<svg id="f1" role="img" aria-label="A toy, language L1" viewBox="0 0 9 9">'
        '<g class="s0"><path id="f1-0" d="M1.23 0L2 4"/></g><use href="#f1-0" x="0.5"/>'
        '<g class="s0"><text>0.12345 is #used</text></g></svg>'
    )
    assert styles == {"fill: red": "s0"}
    assert made["shape"] == "0 0 9 9"


def test_every_claim_that_was_tested_is_there(page):
    """What was not run, or what the definitions decide, is counted."""
    for row in CLAIMS.itertuples():
        assert (row.claim in page.text) == (row.n_seeds > 0 and not row.by_construction)
    assert (
        "Not listed: 1 for which nothing was run, or whose statistic is undefined; "
        "1 that the definitions alone decide" in page.text
    )
    assert page.text.count("share & excess; ≥ −0.1; same-frequency") == 3
    assert "−0.25 [−0.5, 0.125]" in page.text
    verdicts = [value for _, name, value in page.attributes if name == "class"]
    beside = 1 + 1  # in the overview's sentence, and in How a claim is tested
    assert verdicts.count("verdict disagrees") == 1 + beside
    assert verdicts.count("verdict cannot-tell") == 1 + beside
    assert verdicts.count("verdict agrees") == 2 + beside + 1  # the clearest of its section


def test_the_answers_come_first(page):
    """Per question, model and language, the row with the strongest evidence."""
    assert page.text.count("What share is memorised? In brackets: 95 % intervals over seeds") == 1
    assert "m 0.61 0.38 0.23 [0.13, 0.34] retraining 3" in page.text
    assert "n 0.5 0.25 0.25 " in page.text
    assert "0.777" not in page.text
    first = page.text.index("0.61 0.38")
    assert first < page.text.index("Of 4 tests of claims")


def test_an_answer_without_a_placebo_says_so(page):
    assert "<b>mine records 0.125 unknown – recollection" in page.text
    assert page.text.count("In brackets: 95 % intervals over seeds.") == 1


def test_the_headline_counts_the_claims_that_were_tested(page):
    assert "Of 4 tests of claims, agrees 2, disagrees 1, cannot tell 1" in (
        re.sub(r"\s+,", ",", page.text).replace(" .", ".")
    )


def test_a_row_says_what_would_decide_it(page):
    assert (
        "cannot tell about 7 seeds would decide 1 of 18 runs late "
        "75 % of the strings have stand-ins" in page.text
    )
    assert "7 would decide half of 1" in page.text


def test_p_values_are_shown_after_their_correction(page):
    assert "L1 −0.25 [−0.5, 0.125] 0.03 agrees" in page.text
    assert (
        "Of 4 p-values, corrected for testing so many claims (Holm), 3 are below 5 % and decided."
        in page.text
    )


def test_what_the_definitions_decide_is_in_no_count():
    (memorisation,) = (part for part in parts() if part.name == "memorisation")
    made = {row["question"]: row for row in of_part(CLAIMS, memorisation)["questions"]}
    assert made["RQ2"]["counts"] == dict.fromkeys(VERDICTS, 0)
    assert made["RQ2"]["claims"] == []
    assert made["RQ1"]["counts"] == {"agrees": 1, "disagrees": 1, "cannot tell": 0}
    assert sum(headline(CLAIMS)["counts"].values()) == len(CLAIMS) - 2
    assert headline(CLAIMS)["n_by_construction"] == headline(CLAIMS)["n_not_run"] == 1


def test_models_and_families_are_counted_where_there_are_several(tmp_path):
    several = CLAIMS.assign(n_models=3, n_models_hold=2.0, n_families=2.0, n_families_hold=1.0)
    page = Page(rendered(tmp_path / "report.html", claims=several))
    assert "L1 2/3 (1/2) −0.25" in page.text


def test_a_question_whose_rows_are_decided_by_definitions_has_no_row_of_zeros(tmp_path):
    claims = CLAIMS.assign(
        by_construction=CLAIMS["by_construction"] | (CLAIMS["question"] == "RQ3")
    )
    before, after = (rendered(tmp_path / "report.html", claims=rows) for rows in (CLAIMS, claims))
    words = '<th scope="row"><a href="#claims-RQ3">'
    assert (before.count(words), after.count(words)) == (1, 0)


def test_agreement_is_averaged_by_seed(tmp_path, page):
    """Threshold errors of the seeds are -0.1, -0.2, -0.3; half of the starts are undefined.

    Where strings are left out, `approximation` says the same of more strings.
    """
    assert "−0.2 [−0.3, −0.1]" not in page.text
    page = Page(rendered(tmp_path / "report.html", approximation=APPROXIMATION.head(0)))
    assert page.text.count("−0.2 [−0.3, −0.1]") == 2
    assert page.text.count("0.2 [0.1, 0.3]") == 2
    assert page.text.count("(3 of 6 start)") == 2


def test_false_alarms_stand_beside_the_training_strings(page):
    """Over the two models the seeds have 0.05, 0.15 and 0.25; contextual has none to stand in."""
    shares = "0.875 [0.875, 0.875] 0.625 [0.625, 0.625] {} 0.75 [0.75, 0.75] {} 0 [0, 0]"
    bayes = shares.format("0.5 [0.5, 0.5]", "0.15 [0.05, 0.25]")
    assert f" bayes {bayes}" in page.text
    assert f" contextual {shares.format('–', '–')}" in page.text


@pytest.mark.parametrize(
    ("rule", "own", "other"),
    [
        ("after_last_miss", "after the last miss", "first crossing"),
        ("first_crossing", "first crossing", "after the last miss"),
    ],
)
def test_the_tables_name_the_rule_for_the_start(tmp_path, rule, own, other):
    """That of the configuration, on each table that depends on it."""
    given = {"facts": {"start_rule": rule}}
    text = rendered(tmp_path / "report.html", **given)
    alone = rendered(tmp_path / "report.html", approximation=APPROXIMATION.head(0), **given)
    assert text.count(f"Start of memorisation: {own}.") == 1
    assert alone.count(f"Start of memorisation: {own}.") == 2
    assert text.count(f"The start of memorisation ({own}, in epochs)") == 1
    assert f"Start of memorisation: {other}." not in text + alone
    assert f"({other}, in epochs)" not in text


def test_runs_that_may_still_be_learning_are_named(page):
    assert "1 of 6 runs (n on L2: 1) have their lowest test loss in the last tenth" in page.text


def test_the_quality_of_the_approximation_is_averaged_over_the_seeds(page):
    """An undefined value is a dash."""
    row = "L2 contextual, same-frequency"
    errors = "−2 [−2.25, −1.75] 3 [2.75, 3.25] –"
    assert f"{row} 12, 7 0.55 [0.3, 0.8] {errors}" in page.text


def test_no_training_set_was_retrained(tmp_path):
    page = Page(rendered(tmp_path / "report.html", approximation=APPROXIMATION.head(0)))
    assert "by how often the strings are in the training data" not in page.text


def test_a_figure_without_one_in_the_paper_names_none(text):
    """Such a figure is Palimpsest's own, or of a paper that is not of its section."""
    own = [name for name, kind in FIGURES.items() if not kind.numbers]
    of_unlearning = ("gaps", "memorisation", "curves", "relearning")
    of_memorisation = [
        "exact",
        "adapters",
        "extraction",
        "bits",
        "bits_by_rule",
        "fields",
        "exposure",
    ]
    unlearned = [f"unlearning_{name}" for name in of_unlearning]
    of_profiles = ["profile_truth", "profile_notions", "profile_dilution"]
    of_density = ["density_regressions", "density_truth", "density_memorised"]
    of_information = ["information_associations", "information_epochs"]
    of_papers = [*of_memorisation, *unlearned, *of_profiles, *of_density, *of_information]
    assert own == [
        *of_papers,
        "record_shares",
        "attack_roc",
        "planted_secrets",
        "checkpoint_gaps",
        "atlas",
        "atlas_foretold",
        "atlas_whose",
    ]
    named = re.findall(r'class="reason">Figures? [\w, ]+ of (<cite>|the paper)', text)
    assert len(named) == len(FIGURES) - len(own)
    packages = {kind.module.rpartition(".")[0] for kind in FIGURES.values() if kind.numbers}
    assert named.count("<cite>") == len(packages)  # the first figure of each names the paper


def test_a_figure_names_the_paper_that_it_corresponds_to(page):
    memorisation = " Figures 1, 2, 13 and 15 of Learning Without Memorizing Considered Infeasible"
    unlearning = " Figures 4 and 5 of Are we making progress in unlearning?"
    assert page.text.count(memorisation) == 1
    assert page.text.count(unlearning) == 1
    assert " Figure 6 of the paper." in page.text


def test_the_chapter_on_thresholds_shows_what_there_is(tmp_path):
    heading = "Below, trained on never trained on"
    targets = {"approximation": APPROXIMATION.head(0)}
    without = Page(rendered(tmp_path / "a.html", tradeoff=TRADEOFF.head(0), **targets))
    assert heading not in without.text
    assert "agreement" in without.ids
    alone = Page(rendered(tmp_path / "b.html", agreement=AGREEMENT.head(0), **targets))
    assert heading in alone.text
    assert "agreement" in alone.ids
    assert "Threshold error" not in alone.text
    nothing = {"agreement": AGREEMENT, "tradeoff": TRADEOFF, "learning": LEARNING}
    nothing = {kind: frame.head(0) for kind, frame in nothing.items()}
    assert "agreement" not in Page(rendered(tmp_path / "c.html", **nothing, **targets)).ids


def test_nothing_is_fetched_and_only_the_script_of_the_claims_runs(text, page):
    assert not {"link", "iframe", "object", "embed", "img"} & set(page.tags)
    assert page.tags.count("script") == 1
    assert "://" not in text
    assert "@import" not in text
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert not [link for link in page.links if link.startswith(("//", "data:", "javascript:"))]


def test_ids_are_unique_and_every_reference_finds_its_own(text, page):
    assert len(page.ids) == len(set(page.ids))
    used = {link[1:] for link in page.links if link.startswith("#")}
    used |= set(re.findall(r"url\(#([^)]+)\)", text))
    assert len(used) > len(FIGURES)
    assert used <= set(page.ids)


def test_a_figure_does_not_style_the_page(text):
    styles = re.findall(r"<style[^>]*>(.*?)</style>", text, flags=re.DOTALL)[1:]
    assert styles
    assert all(re.match(r"\s*:where\(#f\d+-\d+\) ", style) for style in styles)


def test_links_to_tables_are_relative_and_right(page, entries):
    links = [link for link in page.links if link.endswith(".parquet")]
    assert len(links) == len(entries)
    assert "studies/tradeoff/L1.parquet" in links
    assert "studies/tradeoff/L%3C2.parquet" in links


def test_what_is_filled_in_is_escaped(text):
    assert "<b>bold" not in text
    assert "&lt;b&gt;bold" in text
    assert "L<2" not in text
    assert "strings < others" not in text


def test_how_it_was_made(page):
    for words in ("1 h 2 min", "torch 2.13.0", "A new key a new value", "0, 1, 2"):
        assert words in page.text


def test_the_page_has_language_and_landmarks(text, page):
    assert text.startswith('<!DOCTYPE html>\n<html lang="en-GB">')
    assert {"main", "nav", "article", "figure", "figcaption", "h1", "title"} <= set(page.tags)
    assert page.tags.count("h1") == 1


def test_equal_inputs_give_equal_reports(entries, text, tmp_path):
    path = entries[0].svg.parent.parent / "again.html"
    assert rendered(path, entries) == text


def test_an_experiment_without_figures_claims_or_tables(tmp_path):
    path = tmp_path / "report.html"
    report.render(
        path,
        parts=[part_of(MEMORISATION, {})],
        figures=[],
        headline=HEADLINE.head(0),
        claims=CLAIMS.head(0),
        totals=TOTALS,
    )
    page = Page(path.read_text())
    assert page.text.count("No claim was tested by this experiment.") == 2
    assert "Holm" not in page.text
    assert "cheap thresholds are" not in page.text
    assert "One string, several verdicts" not in page.text
    assert {link[1:] for link in page.links} <= set(page.ids)


def test_the_grammars_of_the_languages_are_counted(tmp_path):
    """Rules that are never used count as rules; they add nothing to the choices of a string."""
    small = Grammar.from_string("S -> A 'x' [0.75] | 'w' [0.25]\nA -> 'y' [1]\nC -> 'z' [1]")
    rules = "\n".join(f"N{n} -> N{n + 1} [1]" for n in range(20)) + "\nN20 -> 'a' [1]"
    path = tmp_path / "report.html"
    report.render(
        path,
        parts=parts(),
        figures=[],
        headline=HEADLINE,
        claims=CLAIMS,
        totals=TOTALS,
        grammars=pd.concat(
            [grammar_table(small, "<small>"), grammar_table(Grammar.from_string(rules), "long")]
        ),
    )
    page = Page(path.read_text())
    assert "<small> 4 3 0.562" in page.text
    assert "long 21 21 0" in page.text
    assert "figures 7 to 10 of Learning Without" in page.text


def test_the_report_has_the_title_of_the_experiment(tmp_path, page):
    assert "What was memorised, what was merely learned?" in page.text
    named = Page(rendered(tmp_path / "report.html", title="A <tour>"))
    assert "A <tour>" in named.text
    assert "What was memorised, what was merely learned?" not in named.text


def test_a_missing_figure_is_named_with_its_remedy(tmp_path):
    row = FIGURES["tradeoff"]
    entry = report.FigureEntry(row, "L1", tmp_path / "no.svg", ())
    remedy = "make it with: snakemake --cores 1 --force"
    with pytest.raises(UserError, match=rf"no\.svg: cannot be read.*{remedy}"):
        rendered(tmp_path / "report.html", [entry])
    (tmp_path / "no.svg").write_text("<html>")
    with pytest.raises(UserError, match=r"no\.svg: not an SVG file"):
        rendered(tmp_path / "report.html", [entry])
    assert not (tmp_path / "report.html").exists()


def test_a_figure_links_to_what_it_was_drawn_from(tmp_path):
    svg = tmp_path / "results/figures/unlearning_metrics-L4-skewed.svg"
    svg.parent.mkdir(parents=True)
    svg.write_text("<svg></svg>")
    files = [str(tmp_path / "results/unlearning" / name) for name in ("a.parquet", "b.parquet")]
    drawn = {"name": "unlearning_metrics", "language": "L4-skewed", "tables": files}
    page = Page(
        rendered(tmp_path / "results/report.html", report.entries({str(svg): drawn}, FIGURES))
    )
    assert {"unlearning/a.parquet", "unlearning/b.parquet"} <= set(page.links)
    assert f"snakemake --cores 1 --force {svg}" in page.text


# Sections

TOY = Part(
    name="toys",
    title="What toys are",
    introduction=Markup("<p>Toys, too.</p>"),
    claims=Markup("<p>The claims on toys are made up.</p>"),
    chapters=(Chapter("toys", "Toys", "On toys.", after=Markup("<p>That is all.</p>")),),
    questions={"toy": "Are toys round?", "game": "Are games won?"},
    glossary={"Toy": "What is played with."},
)
ON_TOYS = pd.DataFrame(
    [
        claim("toy", claim="Toys are round.", verdict="disagrees", interval_over="toys"),
        claim("lost", claim="Nobody asked.", verdict="agrees", interval_over=""),
    ]
)

BALLS = tuple(f"balls/{number}.parquet" for number in range(5))


@pytest.fixture(scope="module")
def with_toys(tmp_path_factory):
    """The report of two sections that have claims, and of claims that no section has."""
    path = tmp_path_factory.mktemp("toys") / "report.html"
    row = FigureRow("toy", 10, "toys", "A toy", "It is round. See it.", ())
    svg = path.with_name("toy.svg")
    svg.write_text("<svg></svg>")
    report.render(
        path,
        parts=[*parts(), TOY],
        figures=[report.FigureEntry(row, "L1", svg, BALLS)],
        headline=HEADLINE,
        claims=pd.concat([CLAIMS, ON_TOYS], ignore_index=True),
        totals=TOTALS,
    )
    return Page(path.read_text())


def test_a_section_gives_its_part(with_toys):
    text = with_toys.text
    for words in (
        "Figure 1. A toy, language L1.",
        "On toys.",
        "Toys, too.",
        "That is all.",
        "Toy What is played with.",
    ):
        assert words in text


def test_the_tables_of_a_figure_are_folded(with_toys):
    assert re.search(r"Files balls/0\.parquet ?, balls/1\.parquet", with_toys.text)


def test_claims_are_counted_by_section(with_toys):
    assert "Of 6 tests of claims" in with_toys.text
    assert "Are toys round? 0 1 0" in with_toys.text
    assert "Are games won?" not in with_toys.text, "only what was asked for"
    assert "The claims on toys are made up." in with_toys.text
    assert "Nobody asked." in with_toys.text, "a claim that no section has is still shown"


def test_an_interval_says_what_it_is_over(with_toys):
    assert "Toys are round." in with_toys.text
    assert "−0.25 [−0.5, 0.125] over toys 0.03 disagrees" in with_toys.text
    assert "−0.25 [−0.5, 0.125] 0.03 agrees" in with_toys.text


def test_a_figure_of_no_chapter_is_refused(tmp_path):
    row = FigureRow("toy", 10, "toys", "A toy", "It is round. See it.", ())
    entry = report.FigureEntry(row, "L1", "toy.svg", ())
    with pytest.raises(ValueError, match=r"'toy' is in chapter 'toys', which no section"):
        rendered(tmp_path / "report.html", [entry])


@pytest.mark.parametrize(
    "file",
    ["report/frame.html.j2", "unlearning/report.html.j2", "memorisation/studies/tradeoff.py"],
)
def test_the_words_of_the_page_count_in_its_fingerprint(file, monkeypatch):
    """Templates count, and so do the studies, although no import names either of them."""
    places = ("palimpsest.results:report", *(section.location("report") for section in SECTIONS))

    def fingerprint_now():
        fingerprint._definition.cache_clear()
        fingerprint._source.cache_clear()
        return fingerprint._worked_out(*places)

    before, read = fingerprint_now(), Path.read_text
    more = "\nMORE = 1"
    monkeypatch.setattr(Path, "read_text", lambda path: read(path) + more * path.match(file))
    assert fingerprint_now() != before
    monkeypatch.undo()
    assert fingerprint_now() == before


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.nan, "–"),
        (None, "–"),
        (0.0, "0"),
        (-0.12345, "−0.123"),
        (12345.6, "12,346"),
        (2, "2"),
        (-np.inf, "−∞"),
    ],
)
def test_numbers_for_a_reader(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(5, "5 s"), (65, "1 min 5 s"), (7260, "2 h 1 min"), (np.nan, "–")]
)
def test_durations_for_a_reader(seconds, shown):
    assert duration(seconds) == shown


def test_runs_by_two_recipes_are_counted_both():
    """Their rows have equal keys, because the tables do not name the recipe."""
    other = LEARNING.assign(still_learning=True).query("epoch == 2 and model == 'n'")
    rows = still_learning_rows(pd.concat([LEARNING, other], ignore_index=True))
    assert [(row["model"], row["late"], row["runs"]) for row in rows] == [("m", 0, 3), ("n", 4, 6)]
