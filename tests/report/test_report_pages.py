"""The report as pages: short, whole, linked, and safe."""

import base64
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from helpers.reports import CLAIMS, HEADLINE, MOST_WORDS, Page, Unfolded, rendered
from palimpsest.report import claims
from palimpsest.sections import NAMES

OTHERS = ("index", "claims", "methods")


@pytest.fixture(scope="module")
def folder(entries, tmp_path_factory):
    results = Path(entries[0].svg).parent.parent
    rendered(results / "report.html", entries, folder=results / "report")
    return results / "report"


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


@pytest.mark.parametrize("name", MOST_WORDS)
def test_a_page_is_short_before_it_is_unfolded(folder, name):
    words = Unfolded(text_of(folder, name)).text.split()
    assert len(words) <= MOST_WORDS[name]


def test_every_figure_is_on_one_page(folder, entries):
    whole = "".join(text_of(folder, name) for name in (*NAMES, "methods"))
    for entry in entries:
        assert whole.count(f'id="{entry.anchor}"') == 1


def test_the_overview_answers_first(folder):
    page = Unfolded(text_of(folder, "index"))
    assert page.text.index("0.61 0.38 0.23 [0.13, 0.34]") < page.text.index("Of 5 tests of claims")
    assert "A claim of strings < others. The experiment agrees on L1" in page.text
    assert "The clearest of 5 tests : 2 agrees, 1 disagrees, 2 cannot tell" in re.sub(
        r"tests:", "tests :", page.text
    )


def test_many_answers_are_folded(tmp_path):
    """The first eight rows are shown."""
    many = pd.concat(
        [HEADLINE.head(1).assign(model=f"model {number}") for number in range(11)],
        ignore_index=True,
    )
    rendered(tmp_path / "report.html", folder=tmp_path / "report", headline=many)
    text = (tmp_path / "report/index.html").read_text()
    assert "model 7" in Unfolded(text).text
    assert "model 8" not in Unfolded(text).text
    assert "3 more rows" in text
    assert "model 10" in text


def test_all_tests_of_claims_are_one_table(folder):
    text = text_of(folder, "claims")
    page = Page(text)
    assert page.tags.count("tr") == 1 + len(CLAIMS)
    assert text.count('data-value="disagrees"') == 1
    assert text.count("<option>agrees</option>") == 1
    assert len(claims.tested(CLAIMS)) == 5
    assert page.text.count("A claim of strings < others.") == 2, "a row for each language"


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


@pytest.mark.skipif(
    not shutil.which("chromium") and "PALIMPSEST_CI" not in os.environ, reason="needs chromium"
)
def test_a_browser_has_nothing_to_complain_about(folder, tmp_path):
    """The script of the claims counts their rows, and no page writes to the console."""
    for name in ("claims", "index", "memorisation"):
        done = subprocess.run(
            [
                *("chromium", "--headless", "--no-sandbox", "--enable-logging=stderr"),
                *(f"--user-data-dir={tmp_path}", "--virtual-time-budget=2000", "--dump-dom"),
                f"file://{folder}/{name}.html",
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert "CONSOLE" not in done.stderr, done.stderr
        if name == "claims":
            assert (
                f'<output aria-live="polite">{len(CLAIMS)} of {len(CLAIMS)}</output>' in done.stdout
            )
