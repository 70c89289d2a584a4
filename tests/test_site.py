"""The pages of docs as a site: every page is in the navigation, and no link is broken."""

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def hook():
    spec = importlib.util.spec_from_file_location("site_of_docs", DOCS / "site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def slugs(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    headings = re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    plain = (re.sub(r"\]\([^)]*\)", "", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


def links(page: str) -> list[str]:
    return LINK.findall(CODE.sub("", page))


def test_every_page_is_in_the_navigation_once():
    home, *groups = CONFIG["nav"]
    assert home == {"Home": "index.md"}
    listed = [page for group in groups for pages in group.values() for page in pages]
    assert sorted(listed) == PAGES
    assert [name for group in groups for name in group] == [
        "Tutorials",
        "How to",
        "Reference",
        "Explanation",
    ]


@pytest.mark.parametrize("name", ["../README.md", *PAGES])
def test_every_link_of_a_page_leads_somewhere(name):
    page = (DOCS / name).resolve()
    for link in links(page.read_text()):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in slugs(target.read_text()), link


def test_a_link_that_leads_nowhere_is_found():
    assert links("a [b](c.md#d), `[e](f.md)` and [g](https://h)") == ["c.md#d"]
    assert slugs("# A claim, `tested`\n```\n# no\n```\n") == {"a-claim-tested"}


@pytest.mark.parametrize("name", PAGES)
def test_no_page_of_the_site_links_out_of_docs(name):
    made = hook().on_page_markdown((DOCS / name).read_text())
    assert not [link for link in links(made) if link.startswith(("../", "/"))]


def test_the_home_page_is_the_readme_with_links_to_pages():
    made = hook().home("[a](docs/a.md) [b](config/b.yaml) [c](https://c) ![d](docs/images/d.png)")
    assert made == "[a](a.md) b [c](https://c) ![d](images/d.png)"
    for link in links(hook().home((ROOT / "README.md").read_text())):
        assert (DOCS / link.partition("#")[0]).exists(), link


def test_nothing_is_fetched_when_a_page_is_seen():
    """No fonts, and no script of another site."""
    assert CONFIG["theme"]["font"] is False
    assert not CONFIG.keys() & {"extra_javascript", "extra_css", "repo_url"}
    assert CONFIG["plugins"] == ["search"]
