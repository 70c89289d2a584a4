"""The defect of Snakemake that this project works around is still there.

When the first test here fails, Snakemake has mended the defect. Then delete this file,
`palimpsest/snakemake_4166.py`, and the call in `workflow/rules/start.smk`.
"""

import sys
from pathlib import Path

import pytest

from helpers.commands import SCRIPTS
from helpers.projects import run_in

SNAKEFILE = """
rule result:
    input:
        "trained.txt",
    output:
        "result.txt",
    shell:
        "cp {input} {output}"


rule trained:
    input:
        ancient("weights.txt"),
    output:
        "trained.txt",
    shell:
        "cp {input} {output}"


rule weights:
    output:
        "weights.txt",
    params:
        value=config["value"],
    shell:
        "echo {params.value} > {output}"
"""
WORKAROUND = f"""
import sys

sys.path.insert(0, {str(SCRIPTS)!r})
from palimpsest.snakemake_4166 import look_behind_ancient_inputs

look_behind_ancient_inputs()
"""


def made(folder: Path, snakefile: str, there: str) -> str:
    """The result of a command after the weights' parameter has changed, where `there` is made."""
    (folder / "Snakefile").write_text(snakefile)
    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    for value, target in ((1, there), (2, "result.txt")):
        done = run_in(folder, [*command, target, "--config", f"value={value}"])
        assert done.returncode == 0, done.stdout
    assert (folder / "weights.txt").read_text() == "2\n"
    result = folder / "result.txt"
    return result.read_text() if result.exists() else "nothing"


def test_a_missing_file_behind_an_ancient_input_is_not_made(tmp_path):
    """The command ends without an error."""
    found = made(tmp_path, SNAKEFILE, "weights.txt")
    assert found == "nothing", "Snakemake has mended #4166: see the top of this file"


@pytest.mark.parametrize(("there", "result"), [("weights.txt", "2\n"), ("trained.txt", "1\n")])
def test_with_the_workaround_it_is_made_and_what_is_there_is_kept(tmp_path, there, result):
    assert made(tmp_path, WORKAROUND + SNAKEFILE, there) == result
