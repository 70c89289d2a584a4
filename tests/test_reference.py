"""The documentation: pages that are written from the code are as `make docs` writes them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_reference_pages_are_up_to_date(tmp_path):
    """The pages on the configuration, the tables and the claims are what `make docs` writes."""
    script = ROOT / "workflow/scripts/reference.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True)
    for page in tmp_path.iterdir():
        assert page.read_text() == (ROOT / "docs" / page.name).read_text(), page.name


def test_links_of_the_documentation_lead_somewhere():
    """Every relative link and picture of the README and the docs is a file of the project."""
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page.name}: {link}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_no_page_waits_for_a_number(page):
    assert "@@" not in page.read_text()
