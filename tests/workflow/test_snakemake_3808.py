"""The defect of Snakemake that this project works around is still there.

When a test here fails, Snakemake has mended the defect. Then delete this file,
`palimpsest/snakemake_3808.py`, and the call in `workflow/rules/start.smk`.
"""

import sys
from pathlib import Path

import pytest

from helpers.projects import run_in

SNAKEFILE = """
rule table:
    output:
        update("table.txt"),
    params:
        value=config["value"],
    shell:
        "{config[how]} && echo {params.value} > {output}"
"""


def snakemake(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit status of a plain Snakemake, without this project's rules, and what it printed."""
    done = run_in(folder, [sys.executable, "-m", "snakemake", "--cores", "1", *arguments])
    return done.returncode, done.stdout


@pytest.mark.parametrize("backend", ["file", "db"])
def test_a_failed_update_is_recorded_as_if_it_had_succeeded(tmp_path, backend):
    """An older output then passes for one that was made with the new parameter."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    kept = ["--persistence-backend", backend, "--config"]
    assert snakemake(tmp_path, *kept, "value=1", "how=true")[0] == 0
    assert snakemake(tmp_path, *kept, "value=2", "how=false")[0] == 1
    assert (tmp_path / "table.txt").read_text() == "1\n"
    status, printed = snakemake(tmp_path, *kept, "value=2", "how=true")
    assert status == 0
    assert "Nothing to be done" in printed, "Snakemake has mended #3808: see the top of this file"
