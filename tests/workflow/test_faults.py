"""Faults, injected for real: afterwards the same command completes, with the same traces.

Every fault hits the training of two seeds of a twin, whose traces are compared, bit for bit, with
those of an undisturbed training.
"""

import json
import os
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from helpers.projects import Project, refused, wait_until, workers
from palimpsest import tables
from palimpsest.sections import KINDS

FOLDER = "results/runs/base/default/opt-1.3b-twin/L2/n24-seed1"
TRACE = f"{FOLDER}/trace.parquet"
EVERY, EPOCHS = 5, 60


def command(*more: str, every: int = EVERY) -> list[str]:
    """Snakemake's arguments, equal before a fault and after it."""
    return [
        TRACE,
        *more,
        "--config",
        f"recipes={{default: {{epochs: {EPOCHS}, checkpoint_every: {every}}}}}",
    ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Project:
    """The training without a fault."""
    project = Project.fresh(tmp_path_factory.mktemp("undisturbed"))
    done = project.snakemake(*command())
    assert done.returncode == 0, done.stdout
    return project


def without_traces(undisturbed: Project, folder: Path) -> Project:
    """A copy of the project with its datasets only."""
    shutil.copytree(undisturbed.folder, folder, ignore=shutil.ignore_patterns("runs"))
    return Project(folder)


@pytest.fixture
def untrained(undisturbed, tmp_path) -> Project:
    """The same project, with its datasets only."""
    return without_traces(undisturbed, tmp_path / "untrained")


@pytest.fixture(params=["file", "db"])
def backend(request) -> str:
    """How Snakemake keeps its records; a kill may leave some of these records."""
    return request.param


def keep_records_in(project: Project, backend: str) -> None:
    """Let Snakemake keep its records in files or in a database, by a line in the profile."""
    with open(project.folder / "profiles/default/config.yaml", "a") as profile:
        profile.write(f"\npersistence-backend: {backend}\n")


@pytest.fixture(scope="module")
def killed_once(undisturbed, tmp_path_factory) -> tuple[Project, int]:
    """A project whose training was killed, and the epoch that it had saved last."""
    project = without_traces(undisturbed, tmp_path_factory.mktemp("killed") / "project")
    return project, kill_training(project)


@pytest.fixture
def killed(killed_once, tmp_path) -> tuple[Project, int]:
    """A copy of that project, and the epoch."""
    project, saved = killed_once
    shutil.copytree(project.folder, tmp_path / "killed")
    return Project(tmp_path / "killed"), saved


def saved_epochs(project: Project) -> list[int]:
    """The epoch of the newest checkpoint of each run that has one."""
    newest = {}
    for path in (project.folder / "results/.state").glob("*/epoch-*"):
        epoch = int(path.name.removeprefix("epoch-"))
        newest[path.parent] = max(epoch, newest.get(path.parent, 0))
    return list(newest.values())


def kill_training(project: Project) -> int:
    """Kill the training with signal 9 after its second checkpoint; return the epoch saved last."""
    with project.running(*command()) as process:
        wait_until(lambda: max(saved_epochs(project), default=0) > EVERY)
        for trainer in workers(process, "finetune.py"):
            trainer.kill()
        assert process.wait(300) != 0
    assert not (project.folder / TRACE).exists()
    return min(saved_epochs(project))


def complete(project: Project, undisturbed: Project, *more: str, every: int = EVERY) -> str:
    """Give the same command again: it completes, all traces are right, no state is left."""
    done = project.snakemake(*command(*more, every=every))
    assert done.returncode == 0, done.stdout
    for seed in (0, 1):
        trace = TRACE.replace("seed1", f"seed{seed}")
        assert (project.folder / trace).read_bytes() == (undisturbed.folder / trace).read_bytes()
    left = (project.folder / "results/.state").rglob("*")
    assert [path for path in left if path.is_file()] == []
    return done.stdout


def manifest(project: Project) -> dict:
    return json.loads((project.folder / FOLDER / "manifest.json").read_text())


def log_of_training(project: Project) -> str:
    """The log; empty while Snakemake has removed the last job's."""
    try:
        return (project.folder / "logs/train/default/opt-1.3b-twin/L2/n24.log").read_text()
    except FileNotFoundError:
        return ""


def errors(printed: str) -> set[str]:
    """The lines that tell what went wrong."""
    return {line for line in printed.splitlines() if line.startswith("error: ")}


def test_a_killed_training_resumes(killed, undisturbed):
    """It repeats at most the work since its last checkpoint.

    The two seeds are saved one after the other, so after a kill one seed may be one checkpoint
    ahead.
    """
    project, saved = killed
    complete(project, undisturbed)
    assert manifest(project)["resumed_from_epoch"] in (saved, saved + EVERY)
    assert f": resumed from epoch {saved} of {EPOCHS}" in log_of_training(project)


def test_an_interrupted_training_resumes(untrained, undisturbed):
    """Ctrl-C: one line says how many epochs of both seeds are kept; no error, no traceback."""
    with untrained.running(*command()) as process:
        wait_until(lambda: max(saved_epochs(untrained), default=0) > EVERY)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(300) == 130
    saved = sum(saved_epochs(untrained))
    line = (
        f"interrupted; {saved} of {2 * EPOCHS} epochs of 2 runs of opt-1.3b-twin are kept; "
        "the same command continues"
    )
    printed = (untrained.folder / "running.log").read_text().splitlines()
    assert printed[-2:] == ["interrupted; stopping the jobs", line]
    assert not [text for text in printed if "Traceback" in text or "Error" in text]
    assert log_of_training(untrained).splitlines()[-1] == line
    complete(untrained, undisturbed)


def test_a_training_killed_over_an_older_one(undisturbed, tmp_path, backend):
    """Old traces of another recipe stay until the new ones exist, but are never used as these."""
    folder = tmp_path / "copy"
    shutil.copytree(undisturbed.folder, folder)
    project = Project(folder)
    keep_records_in(project, backend)
    complete(project, undisturbed, "--force")
    older = (folder / TRACE).read_bytes()
    longer = [
        TRACE,
        "--config",
        f"recipes={{default: {{epochs: {EPOCHS + 20}, checkpoint_every: {EVERY}}}}}",
    ]
    with project.running(*longer) as process:
        wait_until(lambda: max(saved_epochs(project), default=0) > EVERY)
        for trainer in workers(process, "finetune.py"):
            trainer.kill()
        assert process.wait(300) != 0
    assert (folder / TRACE).read_bytes() == older
    done = project.snakemake(*longer)
    assert done.returncode == 0, done.stdout
    assert tables.read(folder / TRACE, KINDS["trace"])["epoch"].max() == EPOCHS + 20
    assert manifest(project)["resumed_from_epoch"] > 0
    assert "Nothing to be done" in project.snakemake(*longer).stdout


def test_a_killed_snakemake(untrained, undisturbed, backend):
    """Its training goes on, and the next Snakemake waits for it instead of training as well."""
    keep_records_in(untrained, backend)
    with untrained.running(*command()) as process:
        wait_until(lambda: saved_epochs(untrained))
        orphans = workers(process, "finetune.py")
        for orphan in orphans:
            orphan.suspend()  # lest it ends before the next Snakemake has begun
        os.kill(process.pid, signal.SIGKILL)
        process.wait(300)
        with ThreadPoolExecutor() as pool:
            completed = pool.submit(complete, untrained, undisturbed)
            waiting = "waiting for another job on the same run to end"
            try:
                wait_until(lambda: completed.done() or waiting in log_of_training(untrained))
            finally:
                for orphan in orphans:
                    orphan.resume()
        assert "the last Snakemake in this folder was killed" in completed.result()
    assert waiting in log_of_training(untrained)


def test_stale_state_is_listed_and_removed(killed, undisturbed):
    """What a killed run left is stale if nothing asks for it; what is asked for stays."""
    project, _ = killed
    states = {path.parent for path in (project.folder / "results/.state").glob("*/epoch-*")}
    same = command()[1:]
    done = project.snakemake("stale_state", *same)
    assert done.returncode == 0, done.stdout
    assert "stale: 0 states" in done.stdout
    done = project.snakemake("remove_stale_state", *same)
    assert done.returncode == 0, done.stdout
    assert all(state.exists() for state in states)
    other = ["--config", "recipes={default: {epochs: 3}}"]
    done = project.snakemake("stale_state", *other)
    assert f"stale: {len(states)} states" in done.stdout
    for state in states:
        (line,) = [line for line in done.stdout.splitlines() if str(state.name) in line]
        assert "saved at epoch" in line
        assert "opt-1.3b-twin, results/datasets/L2/n24-seed" in line
    assert all(state.exists() for state in states)
    done = project.snakemake("remove_stale_state", *other)
    assert done.returncode == 0, done.stdout
    assert not any(state.exists() for state in states)
    complete(project, undisturbed)


def test_a_damaged_checkpoint(killed, undisturbed):
    """It is noticed, also if its size is right; the run begins again rather than go on from it."""
    project, _ = killed
    for path in (project.folder / "results/.state").glob("*/epoch-*/*.safetensors"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    complete(project, undisturbed)
    assert manifest(project)["resumed_from_epoch"] == 0
    log = log_of_training(project)
    assert "damaged checkpoint, discarded (a file of it is missing, torn or changed)" in log


def test_a_truncated_trace(undisturbed, tmp_path):
    """It is put aside, not overwritten, and made again; the trace of the other seed stays."""
    folder = tmp_path / "copy"
    shutil.copytree(undisturbed.folder, folder)
    project = Project(folder)
    content = (folder / TRACE).read_bytes()
    (folder / TRACE).write_bytes(content[:1000])
    other = folder / FOLDER.replace("seed1", "seed0") / "manifest.json"
    trained = other.read_bytes()
    dry = project.snakemake("--dry-run", *command())
    assert dry.returncode == 0, dry.stdout
    assert (folder / TRACE).read_bytes() == content[:1000]
    printed = complete(project, undisturbed)
    assert f"warning: {TRACE}: not a complete Parquet file (1,000 bytes); moved to" in printed
    assert (folder / f"{TRACE}.damaged").read_bytes() == content[:1000]
    assert other.read_bytes() == trained


@pytest.fixture
def small_disk(untrained):
    """Results on a separate disk; a function sets its size in bytes, and its mode."""
    results = untrained.folder / "results"
    disk = results.with_name("disk")
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)])
    if mounted.returncode:
        pytest.skip("a small disk takes the right to mount one (root)")
    shutil.copytree(results, disk / "results")
    shutil.rmtree(results)
    results.symlink_to(disk / "results")

    def resize(size: int, mode: str = "rw") -> None:
        options = f"remount,{mode},size={size}"
        subprocess.run(["mount", "-o", options, str(disk)], check=True)

    yield resize
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def used(folder: Path) -> int:
    """Bytes that a disk holds."""
    usage = shutil.disk_usage(folder)
    return usage.total - usage.free


@pytest.mark.parametrize(("every", "full_at"), [(EVERY, "partial-"), (0, "trace.parquet")])
def test_a_full_disk(untrained, undisturbed, small_disk, every, full_at):
    """One line when a checkpoint or a trace finds no room; with more room the command completes."""
    small_disk(used(untrained.folder / "results") + 24 * 1024)
    before = untrained.contents()
    done = untrained.snakemake(*command(every=every))
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    (line,) = errors(done.stdout)
    assert full_at in line
    assert "No space left on device" in line
    assert "make room" in line
    assert before.items() <= untrained.contents().items()
    small_disk(1 << 26)
    complete(untrained, undisturbed, every=every)


def test_a_read_only_folder(untrained, undisturbed, small_disk):
    """Refused without a traceback; what is there stays."""
    before = untrained.contents()
    small_disk(1 << 26, "ro")
    done = untrained.snakemake(*command())
    assert done.returncode == 1
    assert errors(done.stdout) == {
        "error: results: cannot be written: Read-only file system; make room or allow writing "
        "there, and give the same command again"
    }
    small_disk(1 << 26, "rw")
    assert untrained.contents() == before
    complete(untrained, undisturbed)


def test_two_snakemakes_in_one_folder(untrained, undisturbed):
    """The second is refused, also if it wants other files; the first is not disturbed."""
    with untrained.running(*command()) as process:
        wait_until(lambda: saved_epochs(untrained))
        trainers = workers(process, "finetune.py")
        for trainer in trainers:
            trainer.suspend()  # lest it ends before the second Snakemake has begun
        for given in (command(), ["results/languages/L1/summary.json"]):
            second = untrained.snakemake(*given)
            assert second.returncode == 1
            (line,) = errors(second.stdout)
            where = f"another Snakemake works in {untrained.folder} (process {process.pid} on"
            assert where in line
            assert "meanwhile --dry-run, --summary, --list-target-rules and the target plan" in line
        plan = untrained.snakemake("plan", *command()[1:])
        assert plan.returncode == 0, plan.stdout
        dry = untrained.snakemake("--dry-run", "results/languages/L1/summary.json")
        assert dry.returncode == 0, dry.stdout
        for trainer in trainers:
            trainer.resume()
        assert process.wait(300) == 0
    complete(untrained, undisturbed)


def test_without_hooks_no_snakemake_starts(untrained):
    """A hook locks the folder."""
    line = refused(untrained.snakemake("--no-hooks", *command()))
    assert line.startswith("error: --no-hooks: a hook keeps a second Snakemake out of this folder")


def test_jobs_share_out_the_gpus(untrained, undisturbed, monkeypatch):
    """Each training sees one GPU of its own; GPUs that PyTorch cannot use change nothing else."""
    bin_folder = untrained.folder / "bin"
    bin_folder.mkdir()
    (bin_folder / "nvidia-smi").write_text("#!/bin/sh\necho GPU-one\necho GPU-two\n")
    (bin_folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    monkeypatch.setenv("PALIMPSEST_LOCKS", str(untrained.folder / "locks"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    other = "results/runs/base/default/opt-2.7b-twin/L2/n16-seed1/trace.parquet"
    printed = complete(untrained, undisturbed, other)
    assert "gpu=" in printed
    seen = {
        json.loads((untrained.folder / path).with_name("manifest.json").read_text())[
            "visible_devices"
        ]
        for path in (TRACE, other)
    }
    assert seen == {"GPU-one", "GPU-two"}
