"""The example of real texts writes sets of queries, and a configuration that is accepted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from helpers.experiments import ROOT

SETS = {"own", "replaced", "shuffled", "packages", "questions"}


@pytest.mark.skipif(not Path("/var/lib/dpkg/status").exists(), reason="no system of Debian")
def test_the_example_of_licences(tmp_path):
    script = str(ROOT / "examples/licences.py")
    subprocess.run([sys.executable, script, "licences"], cwd=tmp_path, check=True)
    given = yaml.safe_load((tmp_path / "licences/licences.yaml").read_text())
    text = given["density"]["texts"]["licences"]
    assert text["queries"].keys() == SETS
    words = {
        name: [json.loads(line)["text"].split() for line in (tmp_path / path).open()]
        for name, path in text["queries"].items()
    }
    assert all(20 <= len(own) <= 200 for own in words.values())
    pairs = zip(words["own"], words["replaced"], words["shuffled"], strict=True)
    for own, replaced, shuffled in pairs:
        assert sum(a != b for a, b in zip(own, replaced, strict=True)) <= 5
        assert sorted(own) == sorted(shuffled)
