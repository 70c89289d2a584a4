"""The notebook of five minutes: its cells run, in order, and it holds no output."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples/five_minutes.ipynb"
# What the notebook found, and what it drew
SHOWN = """
import json
import matplotlib.pyplot as plt
measured = answers.placebo.set_index("measure")
print(json.dumps({
    "contextual": measured.loc["contextual", columns[1:]].to_dict(),
    "memorised": float(memorised.memorised[-1].mean()),
    "axes": [len(record_shares(shares).axes), len(plt.gcf().axes)],
}))
"""


def notebook():
    return nbformat.read(NOTEBOOK, as_version=4)


def test_it_is_a_notebook_without_outputs():
    """So it holds no path and no number of a machine."""
    nbformat.validate(notebook())
    for cell in notebook().cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_its_links_lead_somewhere():
    for cell in notebook().cells:
        for link in re.findall(r"\]\(([^)]+)\)", cell.source):
            assert (NOTEBOOK.parent / link).is_file(), link


@pytest.mark.slow
def test_its_cells_run_in_a_minute_and_find_memorisation(tmp_path):
    code = [cell.source for cell in notebook().cells if cell.cell_type == "code"]
    (tmp_path / "cells.py").write_text("\n\n".join([*code, SHOWN]))
    before = os.times().children_user
    done = subprocess.run(
        [sys.executable, "cells.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow/scripts"), "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    # Of the processor, because others may use the cores
    assert os.times().children_user - before < 60
    found = json.loads(done.stdout.splitlines()[-1])
    shares = found["contextual"]
    assert found["memorised"] == shares["share_trained"]
    assert shares["share_trained"] > shares["share_unseen"]
    assert shares["lower"] > 0, found
    assert found["axes"] == [2, 1]
