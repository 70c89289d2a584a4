"""The report as pages: short, whole, linked, and safe."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from helpers.record_worlds import only_asked
from helpers.reports import (
    CLAIMS,
    HEADLINE,
    MOST_OF_ALL,
    MOST_WORDS,
    Page,
    Sentences,
    Unfolded,
    Words,
    answer,
    claim,
    parts,
    rendered,
)
from palimpsest import report
from palimpsest.figures.figure import NOTHING_DRAWN
from palimpsest.memorisation.section import SECTION as MEMORISATION
from palimpsest.report import changes, claims
from palimpsest.report.pages import unbroken
from palimpsest.report.part import figures_of_claims, part_of
from palimpsest.sections import FIGURES, NAMES, SECTIONS

OTHERS = ("index", "claims", "methods")


@pytest.fixture(scope="module")
def folder(entries, tmp_path_factory):
    results = Path(entries[0].svg).parent.parent
    rendered(results / "report-and-pages.html", entries, folder=results / "report")
    return results / "report"


@pytest.fixture(scope="module")
def whole(folder):
    return (folder.parent / "report-and-pages.html").read_text()


def text_of(folder, name):
    return (folder / f"{name}.html").read_text()


def test_there_is_a_page_for_each_section_and_for_what_they_share(folder):
    assert {page.stem for page in folder.iterdir()} == {*NAMES, *OTHERS}


@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
def test_every_link_of_a_page_leads_to_a_page_a_figure_or_a_table(folder, name, entries):
    page = Page(text_of(folder, name))
    tables = {str(table) for entry in entries for table in entry.tables}
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        file, _, anchor = link.partition("#")
        target = (folder / file.replace("%3C", "<")).resolve() if file else folder / f"{name}.html"
        assert target.is_file() or str(target) in tables, link
        if anchor:
            assert anchor in Page(target.read_text()).ids, link
    pictures = page.tags.count("img")
    told = [value for tag, key, value in page.attributes if (tag, key) == ("img", "alt")]
    assert len(told) == pictures
    assert all(told)


def test_no_fold_has_the_name_of_its_page():
    for part in parts():
        assert part.title not in [chapter.title for chapter in part.chapters]


def test_an_answer_opens_the_page_of_its_section(entries, tmp_path):
    """It is before the first figure and in no fold; a short report says it on its first page."""
    tables = only_asked(lower=1)
    rendered(tmp_path / "r.html", entries, folder=tmp_path / "r", **tables)
    page = text_of(tmp_path / "r", "records")
    said = page.index("training stand at a false discovery rate")
    assert said < page.index("<figure") < page.index("<details")
    assert "The smallest p-values" in Unfolded(page).text
    rendered(tmp_path / "r.html", entries, folder=tmp_path / "r", is_short=True, **tables)
    assert "false discovery rate" not in text_of(tmp_path / "r", "records")
    assert "false discovery rate" in text_of(tmp_path / "r", "index")


@pytest.mark.parametrize("name", MOST_WORDS)
def test_a_page_is_short_before_it_is_unfolded(folder, name):
    words = Unfolded(text_of(folder, name)).text.split()
    assert len(words) <= MOST_WORDS[name]


def test_a_report_of_everything_is_soon_read(whole):
    """All sections with all figures, and words about all tables; of claims only a few."""
    assert len(Sentences(whole).words) <= MOST_OF_ALL


def test_every_figure_is_on_one_page(folder, entries):
    everything = "".join(text_of(folder, name) for name in (*NAMES, "methods"))
    for entry in entries:
        assert everything.count(f'id="{entry.anchor}"') == 1


def test_the_one_file_is_the_pages_one_after_another(folder, whole):
    """Word for word; every link of a page is there as well, to an anchor or to a file."""
    order = [link.removesuffix(".html") for link in Page(text_of(folder, "index")).links]
    order = list(dict.fromkeys(name for name in order if name in (*NAMES, *OTHERS)))
    assert sorted(order) == sorted((*NAMES, *OTHERS))
    of_pages = [word for name in order for word in Words(text_of(folder, name)).words]
    skips = [word for _ in order[1:] for word in ["To", "the", "text"]]
    assert Counter(of_pages) - Counter(skips) == Counter(Words(whole).words)
    inside = Page(whole)
    assert {link[1:] for link in inside.links if link.startswith("#")} <= set(inside.ids)
    assert not [link for link in inside.links if link.endswith(".html")]
    assert inside.tags.count("h1") == 1
    assert inside.tags.count("style") == 1 + whole.count("<style type")


def test_a_short_report_has_of_each_section_the_first_figure(entries, tmp_path):
    rendered(tmp_path / "r.html", entries, folder=tmp_path / "r", is_short=True)
    text = (tmp_path / "r/memorisation.html").read_text()
    assert Page(text).tags.count("figure") == 1
    assert all(f">{figure.title}</a>" in text for figure in SECTIONS[0].figures[1:])
    page = Page((tmp_path / "r/claims.html").read_text())
    assert page.text.count("−0.25 [−0.5, 0.125]") == 3, "those that are decided"
    assert "Not listed: 1 test that cannot tell; 1 for which nothing was run" in page.text
    assert len(Words((tmp_path / "r.html").read_text()).words) < 3000


def test_a_section_has_a_link_to_the_page_that_it_delivers(tmp_path):
    """From the folder of pages and from the one file."""
    atlas = next(section for section in SECTIONS if section.page)
    out = tmp_path / "results/report.html"
    beside = str(tmp_path / atlas.page)
    with_page = part_of(atlas, {}, page=beside)
    question = next(iter(with_page.questions))
    report.render(
        out,
        parts=[with_page, part_of(MEMORISATION, {}, {"start": "after_last_miss"})],
        figures=[],
        headline=HEADLINE,
        claims=pd.DataFrame([claim(question), claim()]),
        totals={},
        folder=out.with_suffix(""),
    )
    assert "../atlas/strings.html" in Page(text_of(out.with_suffix(""), "atlas")).links
    assert "atlas/strings.html" in Page(out.read_text()).links
    assert "strings.html" not in text_of(out.with_suffix(""), "memorisation")


def figure_of(folder, name, tables, svg):
    """A figure of memorisation, drawn as an SVG that is given."""
    path = folder / f"figures/{name}-L1.svg"
    path.parent.mkdir(exist_ok=True)
    path.write_text(svg)
    return report.FigureEntry(FIGURES[name], "L1", path, tuple(tables))


SVG = '<svg viewBox="0 0 9 9"><g id="{}"><text>Words</text></g></svg>'


def test_of_many_tables_of_a_figure_the_first_of_each_name_are_linked(tmp_path):
    tables = [tmp_path / f"seed{n}/{name}.parquet" for n in range(5) for name in ("a", "b")]
    entry = figure_of(tmp_path, "tradeoff", tables, SVG.format("patch"))
    rendered(tmp_path / "report.html", [entry], folder=tmp_path / "report")
    page = Page((tmp_path / "report/memorisation.html").read_text())
    linked = [link for link in page.links if link.endswith(".parquet")]
    assert linked == [f"../seed0/{name}.parquet" for name in ("a", "b")]
    assert ", 8 alike" in page.text


def test_a_figure_that_says_that_there_is_nothing_is_named_and_not_shown(tmp_path):
    """It has no number; its file, which says what would make it, is linked."""
    nothing = figure_of(tmp_path, "disagreement", [], SVG.format(NOTHING_DRAWN))
    entries = [nothing, figure_of(tmp_path, "tradeoff", [], SVG.format("patch"))]
    for is_short in (False, True):
        rendered(tmp_path / "report.html", entries, folder=tmp_path / "report", is_short=is_short)
        page = Page((tmp_path / "report/memorisation.html").read_text())
        assert re.findall(r"Figure \d+\. [^,]*", page.text) == [
            f"Figure 1. {FIGURES['tradeoff'].title}"
        ]
        title = FIGURES["disagreement"].title
        assert f"because nothing of it was asked for: {title}, language L1 ." in page.text
        assert "../figures/disagreement-L1.svg" in page.links


def test_no_line_ends_inside_of_an_interval(tmp_path):
    """Nor of a p-value or a percentage; in a script, which a hash allows, nothing changes."""
    html = "0.2 [−0.1, 1e−05] p = 0.04 &lt; 0.001 95 % [a, b]<script>[0, 1] &lt; 0.5 5 %</script>"
    assert unbroken(html) == (
        "0.2 [−0.1,&nbsp;1e−05] p =&nbsp;0.04 &lt;&nbsp;0.001 95&nbsp;% [a, b]"
        "<script>[0, 1] &lt; 0.5 5 %</script>"
    )
    assert "0.23 [0.13,&nbsp;0.34]" in rendered(tmp_path / "report.html")


# What changed


def test_a_first_report_says_nothing_of_changes(whole):
    assert "last report" not in whole


def test_a_report_says_what_changed_since_the_last_one_of_its_folder(tmp_path):
    """A verdict and a number; a row that is new, and one that is gone."""
    path = tmp_path / "results/report.html"
    rendered(path)
    path.unlink()  # as Snakemake does before it makes a report again
    claims = CLAIMS[CLAIMS["question"] != "bayes"].copy()
    claims.loc[0, "verdict"] = "cannot tell"
    headline = pd.concat(
        [
            HEADLINE.assign(trained=HEADLINE["trained"].replace(0.61, 0.62)),
            pd.DataFrame([answer("o")]),
        ]
    )
    text = Page(rendered(path, claims=claims, headline=headline)).text
    assert "Since the last report of this folder: 2 changed, 1 new, 1 gone" in text
    assert "A claim of strings < others. (L1): agrees → cannot tell" in text
    numbers = "0.61 against 0.38: 0.23 [0.13, 0.34] → 0.62 against 0.38: 0.23 [0.13, 0.34]"
    assert f"What share is memorised? m, L2, 64 strings: {numbers}" in text
    assert "Since the last report of this folder: nothing changed." in (
        Page(rendered(path, claims=claims, headline=headline)).text
    )


def test_many_changes_are_folded(tmp_path):
    path = tmp_path / "report.html"
    many = pd.concat([HEADLINE.head(1).assign(model=f"model {n}") for n in range(9)])
    rendered(path, headline=many)
    text = rendered(path, headline=many.assign(trained=0.9))
    assert "9 changed" in Unfolded(text).text
    assert Unfolded(text).text.count("→") == 4
    assert text.count("→") == 9


def test_a_damaged_last_report_counts_as_none(tmp_path):
    path = tmp_path / "report.html"
    rendered(path)
    changes.place_of(path).write_text('{"tests": [')
    assert "last report" not in rendered(path)
    assert "nothing changed" in rendered(path)


def test_rows_of_equal_words_are_told_apart(tmp_path):
    """Tests of one claim on several methods have the same words."""
    twice = pd.concat([CLAIMS.head(1), CLAIMS.head(1).assign(verdict="disagrees")])
    before = changes.snapshot(twice, HEADLINE)
    changes.keep(tmp_path / "report.html", before)
    found = changes.since_last(tmp_path / "report.html", before)
    assert found == {"rows": [], "n_new": 0, "n_gone": 0}


def test_the_overview_answers_first(folder):
    page = Unfolded(text_of(folder, "index"))
    assert page.text.index("0.61 0.38 0.23 [0.13, 0.34]") < page.text.index("Of 4 tests of claims")
    assert "A claim of strings < others. Verdict: on L1 agrees" in page.text
    assert "The clearest of 4 tests : 2 agrees, 1 disagrees, 1 cannot tell" in re.sub(
        r"tests:", "tests :", page.text
    )


def test_many_answers_are_folded(tmp_path):
    """The first five rows are shown."""
    many = pd.concat(
        [HEADLINE.head(1).assign(model=f"model {number}") for number in range(8)],
        ignore_index=True,
    )
    rendered(tmp_path / "report.html", folder=tmp_path / "report", headline=many)
    text = (tmp_path / "report/index.html").read_text()
    assert "model 4" in Unfolded(text).text
    assert "model 5" not in Unfolded(text).text
    assert "3 more rows" in text
    assert "model 7" in text


def test_all_tests_of_claims_are_one_table(folder):
    """A claim's words are there once; its tests are told apart by what they can be filtered by."""
    text = text_of(folder, "claims")
    page = Page(text)
    run = claims.tested(CLAIMS)
    assert page.tags.count("tr") == 1 + len(run)
    assert page.text.count("A claim of strings < others.") == 1
    for key, values in {
        "verdict": ["agrees", "disagrees", "cannot tell", "agrees"],
        "language": ["L1", "L2", "L1", "L1"],
        "model": ["m"] * 4,
        "evidence": ["same-frequency"] * 4,
    }.items():
        found = [
            value for tag, name, value in page.attributes if (tag, name) == ("tr", f"data-{key}")
        ]
        assert sorted(found) == sorted(values)
    questions = [value for tag, name, value in page.attributes if name == "data-question"]
    assert "When does a model start to memorise a string?" in questions


def test_a_note_of_several_tests_is_there_once(tmp_path):
    """A letter stands for it in their rows; the note of one test alone stays in its row."""
    noted = CLAIMS.assign(note="retraining is the stronger evidence")
    noted.loc[0, "note"] += "; of one alone"
    rendered(tmp_path / "report.html", claims=noted, folder=tmp_path / "report")
    page = Page((tmp_path / "report/claims.html").read_text())
    assert page.text.count("a retraining is the stronger evidence") == 1
    assert page.text.count("retraining is the stronger evidence") == 1
    assert page.links.count("#note-a") == len(claims.tested(CLAIMS))
    assert "agrees a of one alone" in page.text


def test_claims_of_no_section_are_on_the_page_of_claims(tmp_path):
    others = pd.concat([CLAIMS, CLAIMS.head(1).assign(question="lost", claim="Nobody asked.")])
    rendered(tmp_path / "report.html", claims=others, folder=tmp_path / "report")
    page = Page((tmp_path / "report/claims.html").read_text())
    assert "Nobody asked." in page.text
    assert page.text.index("A third claim.") < page.text.index("Nobody asked.")


def test_a_claim_leads_to_the_first_figure_of_its_tables(entries, tmp_path):
    """A claim of a section, on its own statistic, to a figure that reads the statistic's tables."""
    claim = next(one for one in MEMORISATION.load("claims") if one.statistic.reads == "tradeoff")
    asked = CLAIMS.head(1).assign(question=claim.question, claim=claim.claim)
    rendered(tmp_path / "report.html", entries, claims=asked, folder=tmp_path / "report")
    text = (tmp_path / "report/claims.html").read_text()
    (name, *_) = figures_of_claims(MEMORISATION)[claim.claim]
    assert "tradeoff" in {kind.name for kind in FIGURES[name].tables}
    assert f'<a href="memorisation.html#figure-{name.replace("_", "-")}">{claim.claim}</a>' in text


@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
def test_the_policy_allows_one_script_at_most(folder, name):
    text = text_of(folder, name)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == (name == "claims")
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in policy
    assert not re.findall(r"\son\w+=", text)


def luminance(colour):
    """Relative luminance of a colour such as #1d1d1f or #fff, as WCAG 2 defines it."""
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    shares = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_contrast_of_two_colours():
    assert contrast("#fff", "#000") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)


def test_words_stand_out_from_what_is_behind_them_on_light_and_on_dark(whole):
    """Contrast of 4.5 or more, which WCAG asks for."""
    themes = re.findall(r":root \{(.*?)\}", whole, re.DOTALL)
    assert len(themes) == 2
    for theme in themes:
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", theme))
        for words in ("ink", "soft", "link", "agrees", "disagrees", "cannot-tell"):
            for behind in ("paper", "tint"):
                assert contrast(colours[words], colours[behind]) >= 4.5, (words, behind)


def test_every_choice_has_a_name_and_every_page_one_heading(folder):
    text = text_of(folder, "claims")
    assert len(re.findall(r"<label>[^<]+<(?:select|input)", text)) == 7
    assert len(re.findall(r"<(?:select|input)", text)) == 7
    for name in (*OTHERS, *NAMES):
        levels = [
            int(tag[1]) for tag in Page(text_of(folder, name)).tags if re.fullmatch(r"h\d", tag)
        ]
        assert levels[0] == 1
        assert levels.count(1) == 1


# In a browser

needs_chromium = pytest.mark.skipif(
    not shutil.which("chromium") and "PALIMPSEST_CI" not in os.environ, reason="needs chromium"
)
# Choose, sort, search; then say which rows are shown, and where the words of their claims are.
USE_OF_THE_CLAIMS = """
const set = (box, value) => { box.value = value; box.dispatchEvent(new Event("input")); };
const rows = () => [...document.querySelectorAll(".claims tr[data-verdict]:not([hidden])")];
const said = rows => rows.map(
  row => row.dataset.verdict + (row.querySelector("th")?.rowSpan ?? ""));
const found = [];
set(document.querySelector("[data-key=verdict]"), "disagrees");
found.push(said(rows()));
set(document.querySelector("[data-key=verdict]"), "");
set(document.querySelector("[data-sort]"), "verdict");
found.push(said(rows()));
set(document.querySelector("[data-sort]"), "question");
found.push(said(rows()));
set(document.querySelector("[data-key=model]"), "m2");
found.push(said(rows()));
set(document.querySelector("[type=search]"), "third");
found.push(said(rows()));
document.body.dataset.found = JSON.stringify(found);
"""


def seen(page, home):
    """The page after its script has run, and what it wrote to the console."""
    return subprocess.run(
        [
            *("chromium", "--headless", "--no-sandbox", "--enable-logging=stderr"),
            *(f"--user-data-dir={home}", "--virtual-time-budget=2000", "--dump-dom"),
            f"file://{page}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )


@needs_chromium
def test_a_browser_has_nothing_to_complain_about(folder, tmp_path):
    """The script counts the tests, on their page and in the one file; the console stays empty."""
    for page in ("report/claims.html", "report/index.html", "report-and-pages.html"):
        done = seen(folder.parent / page, tmp_path)
        assert "CONSOLE" not in done.stderr, done.stderr
        if "index" not in page:
            assert '<output aria-live="polite">4 of 4</output>' in done.stdout


@needs_chromium
def test_claims_are_filtered_and_sorted_in_the_page(tmp_path):
    """The words of a claim stand in the first row of it that is shown, beside all such rows."""
    several = CLAIMS.assign(models=["m, m2", "m", "m", "m, m2", "m", ""])
    rendered(tmp_path / "report.html", claims=several, folder=tmp_path / "report")
    text = (tmp_path / "report/claims.html").read_text()
    used = re.sub(r"<meta http-equiv[^>]*>", "", text)  # the policy allows no script but the page's
    used = used.replace("</body>", f"<script>{USE_OF_THE_CLAIMS}</script></body>")
    (tmp_path / "report/used.html").write_text(used)
    (found,) = re.findall(
        r'data-found="([^"]*)"', seen(tmp_path / "report/used.html", tmp_path).stdout
    )
    as_made = ["agrees2", "disagrees", "cannot tell1", "agrees1"]
    assert json.loads(found.replace("&quot;", '"')) == [
        ["disagrees1"],
        ["agrees2", "disagrees", "agrees1", "cannot tell1"],
        as_made,
        ["agrees1", "agrees1"],
        ["agrees1"],
    ]
