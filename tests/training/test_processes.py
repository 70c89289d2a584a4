"""A run that several processes share: one of them killed, or its launcher, and the run resumed."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from helpers.commands import GRAMMAR, finetune
from palimpsest import tables
from palimpsest.datasets.build import Sampler, build
from palimpsest.languages import Grammar
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
    strings = build(Sampler("L2", Grammar.from_file(GRAMMAR), 0), "base", 24, 8, False)
    tables.write(path, strings, KINDS["strings"])
    return path


def start(dataset: Path, folder: Path) -> subprocess.Popen:
    """The training of a twin by two processes, as the workflow starts it."""
    folder.mkdir(exist_ok=True)
    words = finetune(
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


@pytest.mark.parametrize("victim", ["worker", "launcher"])
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
    {"worker": workers[1], "launcher": launcher}[victim].send_signal(signal.SIGKILL)
    assert job.wait(120) != 0
    left = psutil.wait_procs([launcher, *workers], timeout=60)[1]
    with contextlib.suppress(psutil.NoSuchProcess):
        assert [process.pid for process in left if process.status() != "zombie"] == []
    assert not (folder / "trace.parquet").exists()
    assert start(dataset, folder).wait(300) == 0, (folder / "log").read_text()
    assert (folder / "trace.parquet").read_bytes() == undisturbed
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["resumed_from_epoch"] >= EVERY
    assert manifest["configuration"]["processes"] == 2
    if victim == "launcher":
        assert "error: the training was killed by signal 9" in (folder / "log").read_text()
