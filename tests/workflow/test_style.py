"""The style of the code and of the workflow, and the pages that are written from the code."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# One by one: of a folder beside a file, snakefmt looks at the file alone.
RULES = sorted(map(str, (ROOT / "workflow/rules").rglob("*.smk")))


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["snakefmt", "--check", "Snakefile", *RULES],
        ["snakemake", "--lint"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_style(command):
    """The linters have nothing to say."""
    tool = Path(sys.executable).with_name(command[0])
    done = subprocess.run([tool, *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_reference_pages_are_up_to_date(tmp_path):
    """docs/configuration.md and docs/tables.md are what `make docs` writes."""
    script = ROOT / "workflow/scripts/reference.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True)
    for page in tmp_path.iterdir():
        assert page.read_text() == (ROOT / "docs" / page.name).read_text(), page.name


def test_links_of_the_documentation_lead_somewhere():
    """Every relative link and picture of the README and the docs is a file of the project."""
    import re

    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page.name}: {link}"
