"""The defect of Snakemake that this project works around is still there.

When a test here fails, Snakemake has mended the defect. Then delete this file,
`palimpsest/snakemake_3808.py`, and the call in `workflow/rules/start.smk`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

SNAKEFILE = """
rule table:
    output:
        update("table.txt"),
    params:
        value=config["value"],
    shell:
        "{config[how]} && echo {params.value} > {output}"
"""


def snakemake(folder: Path, *arguments: str) -> str:
    """What a plain Snakemake prints, without this project's rules and profiles."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments]
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.stdout


@pytest.mark.parametrize("backend", ["file", "db"])
def test_a_failed_update_is_recorded_as_if_it_had_succeeded(tmp_path, backend):
    """An older output then passes for one that was made with the new parameter."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    kept = ["--persistence-backend", backend, "--config"]
    assert "1 of 1 steps (100%) done" in snakemake(tmp_path, *kept, "value=1", "how=true")
    assert "(exit code" in snakemake(tmp_path, *kept, "value=2", "how=false").lower()
    assert (tmp_path / "table.txt").read_text() == "1\n"
    again = snakemake(tmp_path, *kept, "value=2", "how=true")
    assert "Nothing to be done" in again, "Snakemake has mended #3808: see the top of this file"
