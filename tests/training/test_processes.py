"""A run that several processes share: one of them killed, or its launcher, and the run resumed."""

import contextlib
import importlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from argparse import Namespace
from pathlib import Path

import psutil
import pytest

from helpers.commands import GRAMMAR, SCRIPTS, finetune
from palimpsest import tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.sampling import Sampler
from palimpsest.jobs.supervision import OF_MEMORY, supervise
from palimpsest.sections import KINDS

pytestmark = pytest.mark.slow

EVERY, EPOCHS = 2, 30
RECIPE = {
    "processes": 2,
    "epochs": EPOCHS,
    "micro_batch_size": 4,
    "zero_stage": 2,
    "checkpoint_every": EVERY,
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("processes") / "strings.parquet"
    strings = build(Sampler("L2", GrammarCorpus.from_file(GRAMMAR), 0), "base", 24, 8, False)
    tables.write(path, strings, KINDS["strings"])
    return path


def start(dataset: Path, folder: Path) -> subprocess.Popen:
    """The training of a twin by two processes, as the workflow starts it."""
    folder.mkdir(exist_ok=True)
    words = finetune(
        forked=False,
        dataset=dataset,
        trace=folder / "trace.parquet",
        manifest=folder / "manifest.json",
        state=folder / "state",
        **RECIPE,
    )
    # A launcher that this process may itself be under is none of the job's business.
    environment = {**os.environ, "WORLD_SIZE": "7", "RANK": "3"}
    with (folder / "log").open("a") as log:
        return subprocess.Popen(words, env=environment, stdout=log, stderr=log)


@pytest.fixture(scope="module")
def undisturbed(dataset, tmp_path_factory) -> bytes:
    """The trace without a fault."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert start(dataset, folder).wait(300) == 0, (folder / "log").read_text()
    return (folder / "trace.parquet").read_bytes()


def supervised(monkeypatch, model: str, statuses: list[int]) -> tuple[int, list[int | None]]:
    """The exit status of a supervised job with two datasets, and each child's dataset."""
    script = importlib.import_module("finetune")
    children, ends = [], iter(statuses)
    asked = dict.fromkeys(OF_MEMORY, 8)
    state = tempfile.mkdtemp()
    arguments = Namespace(
        **{**asked, "gpus": 0}, model=model, dataset=["seed0", "seed1"], state=state
    )

    def in_child(work):
        with monkeypatch.context() as patch:  # what a child changes is its own
            patch.setattr(os, "environ", dict(os.environ))
            work()
        return next(ends)

    with monkeypatch.context() as patch:
        patch.setattr(script.launch, "in_child", in_child)
        patch.setattr(script, "train", lambda *_, only=None: children.append(only))
        return supervise(arguments, ["run"], script.works(arguments)), children


def test_each_seed_of_a_full_model_has_a_process_of_its_own(monkeypatch):
    """The last one delivers them all; a failure ends the job. Twins share a process."""
    monkeypatch.syspath_prepend(SCRIPTS)
    assert supervised(monkeypatch, "opt-1.3b", [0, 0]) == (0, [0, None])
    assert supervised(monkeypatch, "opt-1.3b", [1]) == (1, [0])
    assert supervised(monkeypatch, "opt-1.3b-twin", [0]) == (0, [None])


@pytest.mark.parametrize("victim", ["worker", "launcher", "job", "Ctrl-C"])
def test_a_killed_process_takes_the_others_along_and_the_run_resumes(
    dataset, undisturbed, tmp_path, victim
):
    """No process of the run is left over, and the same command ends with the same trace."""
    folder = tmp_path / "run"
    job = start(dataset, folder)
    deadline = time.monotonic() + 200
    while not list((folder / "state").glob("*/epoch-*")):
        assert job.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (launcher,) = psutil.Process(job.pid).children()
    workers = launcher.children()
    assert len(workers) == 2
    victims = {"worker": workers[1], "launcher": launcher, "job": psutil.Process(job.pid)}
    victims["Ctrl-C"] = victims["job"]
    victims[victim].send_signal(signal.SIGINT if victim == "Ctrl-C" else signal.SIGKILL)
    status = job.wait(300)
    assert status == 130 if victim == "Ctrl-C" else status != 0
    left = psutil.wait_procs([launcher, *workers], timeout=300)[1]
    with contextlib.suppress(psutil.NoSuchProcess):
        assert [process.pid for process in left if process.status() != "zombie"] == []
    assert not (folder / "trace.parquet").exists()
    if victim == "Ctrl-C":
        log = (folder / "log").read_text()
        assert re.search(r"interrupted; \d+ of \d+ epochs of .* are kept; the same", log)
        assert "Traceback" not in log
    if victim in ("job", "Ctrl-C"):  # what is left is the same as after its launcher
        return
    assert start(dataset, folder).wait(300) == 0, (folder / "log").read_text()
    assert (folder / "trace.parquet").read_bytes() == undisturbed
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["resumed_from_epoch"] >= EVERY
    assert (
        f": resumed from epoch {manifest['resumed_from_epoch']} of " in (folder / "log").read_text()
    )
    assert manifest["configuration"]["processes"] == 2
    if victim == "launcher":
        assert "error: the job was killed by signal 9" in (folder / "log").read_text()
