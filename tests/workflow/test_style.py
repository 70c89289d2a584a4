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
