"""After memory ran out, a job does less at once."""

import json
import os
import subprocess

import pytest

from helpers.commands import GRAMMAR, finetune
from palimpsest import tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.sections import KINDS
from palimpsest.training.attempts import Attempts, Passes

pytestmark = pytest.mark.slow

ASKED = {"micro_batch_size": 8, "evaluation_batch_size": 64, "processes": 1}
# A device that holds two strings in training, and some more when measuring. Python loads this
# file before any program, in every process.
SMALL_DEVICE = """
import importlib.abc, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "palimpsest.training.evaluation":
            return None
        sys.meta_path.remove(self)
        import torch
        from palimpsest.training.batches import TokenisedStrings
        whole = TokenisedStrings.batch
        def batch(self, rows, device):
            if len(rows) > (2 if torch.is_grad_enabled() else {measured}):
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return whole(self, rows, device)
        TokenisedStrings.batch = batch
        return None

sys.meta_path.insert(0, Finder())
"""


def test_halving():
    passes = Passes(3, 2)
    assert passes.halved(measuring=False) == Passes(1, 2, 1)
    assert passes.halved(measuring=True) == Passes(3, 1, 1)
    assert Passes(1, 2).halved(measuring=False) is None


def test_a_note_holds_for_the_settings_it_was_learned_with(tmp_path):
    attempts = Attempts(tmp_path / "note.json", ASKED)
    assert attempts.passes() == Passes(8, 64)
    attempts.note(Passes(4, 64, 1))
    assert attempts.passes() == Passes(4, 64, 1)
    other = Attempts(tmp_path / "note.json", {**ASKED, "processes": 2})
    assert other.passes() == Passes(8, 64)
    (tmp_path / "note.json").write_text("{")
    assert attempts.passes() == Passes(8, 64)
    attempts.forget()
    assert not (tmp_path / "note.json").exists()


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """A function that trains a twin as the workflow does, on a device of some size."""
    folder = tmp_path_factory.mktemp("attempts")
    strings = build(Sampler("L2", GrammarCorpus.from_file(GRAMMAR), 0), "base", 16, 8, False)
    tables.write(folder / "strings.parquet", strings, KINDS["strings"])

    def run(name: str, measured: int | None = None, processes: int = 1):
        (folder / name).mkdir()
        if measured is not None:
            text = SMALL_DEVICE.replace("{measured}", str(measured))
            (folder / name / "sitecustomize.py").write_text(text)
        words = finetune(
            forked=False,
            dataset=folder / "strings.parquet",
            trace=folder / name / "trace.parquet",
            manifest=folder / name / "manifest.json",
            state=folder / name / "state",
            processes=processes,
            evaluation_batch_size=8,
            checkpoint_every=1,
        )
        environment = {**os.environ, "PYTHONPATH": str(folder / name)}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=500)
        return done, folder / name

    return run


@pytest.mark.parametrize("processes", [1, 2])
def test_out_of_memory(train, processes):
    """The job tries again with less until it fits; the batch is the same, the manifest says so."""
    plain, one = train(f"plain-{processes}", processes=processes)
    assert plain.returncode == 0, plain.stderr
    small, other = train(f"small-{processes}", measured=5, processes=processes)
    assert small.returncode == 0, small.stderr
    assert "out of memory while training with 8 strings per forward pass" in small.stderr
    assert "out of memory while measuring with 8 strings per forward pass" in small.stderr
    manifests = [json.loads((f / "manifest.json").read_text()) for f in (one, other)]
    names = ("micro_batch_size", "accumulation_steps", "evaluation_batch_size", "out_of_memory")
    assert [manifests[0][name] for name in names] == [8, 1, 8, 0]
    assert [manifests[1][name] for name in names] == [2, 4 // processes, 4, 3]
    assert manifests[0]["key"] == manifests[1]["key"]
    traces = [tables.read(folder / "trace.parquet", KINDS["trace"]) for folder in (one, other)]
    assert (traces[0]["nll"] - traces[1]["nll"]).abs().max() < 1e-3
    assert not [path for path in (other / "state").rglob("*") if path.is_file()]


def test_one_string_is_too_much(train):
    """There is nothing left to halve: one line, with the settings that help."""
    done, _ = train("hopeless", measured=0)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    (line,) = errors
    assert "out of memory while measuring with one string per forward pass" in line
    assert "in the recipe, raise" in line
