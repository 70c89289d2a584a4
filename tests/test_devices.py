"""Leases on GPUs: never two jobs on one device, given back however a job ends."""

import errno
import fcntl
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from palimpsest import devices
from palimpsest.errors import UserError
from palimpsest.locks import NoLocks, try_to_lock, wait_for
from palimpsest.recovery import WorkingFolder

SCRIPTS = Path(__file__).parents[1] / "workflow/scripts"
# A job that leases some GPUs for a while, and notes when it had them.
JOB = """
import os, sys, time
scripts, count, seconds, log = sys.argv[1:]
sys.path.insert(0, scripts)
from palimpsest import devices
leases = devices.lease(int(count))
begin = time.monotonic()
if seconds == "for ever":
    print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    time.sleep(600)
time.sleep(float(seconds))
line = f"{begin} {time.monotonic()} {os.environ['CUDA_VISIBLE_DEVICES']}\\n"
with open(log, "a") as file:
    file.write(line)
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with three GPUs, as its driver's tool tells them."""
    tool = tmp_path / "bin/nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nprintf 'GPU-a\\nGPU-b\\nGPU-c\\n'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv(devices.LOCKS, str(tmp_path / "locks"))
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def start(machine: Path, count: int, seconds="0.3") -> subprocess.Popen:
    """A job in the background."""
    words = [sys.executable, "-c", JOB, SCRIPTS, count, seconds, machine / "log"]
    return subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)


def test_no_gpu(monkeypatch, tmp_path):
    """Without the driver's tool there is none, unless the environment names one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert devices.visible() == []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert devices.visible() == ["0", "1"]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (None, ["GPU-a", "GPU-b", "GPU-c"]),
        ("", []),
        ("2, 0", ["GPU-c", "GPU-a"]),
        ("GPU-b", ["GPU-b"]),
        ("7", []),
        ("1,7,0", ["GPU-b"]),
        ("-1", []),
        ("NoDevFiles", []),
    ],
)
def test_devices_are_named_for_good(machine, monkeypatch, chosen, expected):
    """A number means another device in another process; an identifier does not."""
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert devices.visible() == expected


def test_without_a_lease_no_gpu_is_seen(machine, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert devices.lease(0) == []
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize("chosen", ["2", "GPU-c"])
def test_a_leased_gpu_is_shown_by_its_number(machine, monkeypatch, chosen):
    """DeepSpeed takes no identifiers."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    (lease,) = devices.lease(1)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2"
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert devices.visible() == ["GPU-c"]
    lease.release()


def test_too_few(machine, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(UserError, match=r"needs 2 GPUs and sees 1; set processes in the recipe to"):
        devices.lease(2)


def test_never_two_jobs_on_one_device(machine):
    """Twelve jobs of one, two or three GPUs: each device has one at a time, and all are used."""
    jobs = [start(machine, 1 + place % 3) for place in range(12)]
    assert [job.wait(300) for job in jobs] == [0] * 12
    spans: dict[str, list[tuple[float, float]]] = {}
    lines = (machine / "log").read_text().splitlines()
    assert sorted(len(line.split()[2].split(",")) for line in lines) == [1] * 4 + [2] * 4 + [3] * 4
    for line in lines:
        begin, end, names = line.split()
        for name in names.split(","):
            spans.setdefault(name, []).append((float(begin), float(end)))
    assert set(spans) == {"0", "1", "2"}
    for times in spans.values():
        times.sort()
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(times))


def test_a_killed_job_gives_its_devices_back(machine):
    job = start(machine, 3, "for ever")
    assert job.stdout.readline().strip() == "0,1,2"
    waiting = start(machine, 1, "0")
    time.sleep(1)
    assert waiting.poll() is None
    job.send_signal(signal.SIGKILL)
    job.wait(300)
    assert waiting.wait(300) == 0


def test_a_job_of_many_is_not_passed_by(machine):
    """While a job waits for several devices, later jobs for one device wait until it has run."""
    first = start(machine, 1, "2")
    time.sleep(0.7)
    many = start(machine, 3, "0.2")
    time.sleep(0.7)
    late = start(machine, 1, "0.2")
    assert [job.wait(300) for job in (first, many, late)] == [0, 0, 0]
    counts = [line.count(",") + 1 for line in (machine / "log").read_text().splitlines()]
    assert counts == [1, 3, 1]


def test_jobs_with_other_devices_do_not_wait(machine, monkeypatch):
    """A job that waits for a taken device does not delay jobs that may use another device."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    holder = start(machine, 1, "for ever")
    assert holder.stdout.readline().strip() == "0"
    waiting = start(machine, 1, "0")
    time.sleep(0.5)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert start(machine, 1, "0").wait(300) == 0
    assert waiting.poll() is None
    holder.kill()
    assert waiting.wait(300) == 0
    holder.wait()


def test_a_number_is_of_its_cluster_job(machine, monkeypatch):
    """Device 7 of one job of a cluster is not that of another."""
    (machine / "bin/nvidia-smi").write_text("#!/bin/sh\nexit 1\n")
    for job in ("11", "12"):
        monkeypatch.setenv("SLURM_JOB_ID", job)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
        assert [lease.path.name for lease in devices.lease(1)] == [f"job{job}-7.lock"]


def test_a_lock_is_had_once(tmp_path):
    path = tmp_path / "deep/one.lock"
    lock = try_to_lock(path)
    assert try_to_lock(path) is None
    lock.release()
    assert not path.exists()
    assert try_to_lock(path) is not None


def test_a_child_that_ends_does_not_release_a_lock(tmp_path):
    path = tmp_path / "one.lock"
    lock = try_to_lock(path)
    child = os.fork()
    if child == 0:
        lock.release()
        os._exit(0)
    os.waitpid(child, 0)
    assert path.exists()
    assert try_to_lock(path) is None


def test_a_lock_that_is_taken_away_meanwhile_is_not_had(tmp_path):
    """The file that a waiting process has opened may not be the one at the path any more."""
    path = tmp_path / "one.lock"
    lock = try_to_lock(path)
    waiting = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\n"
            "from palimpsest.locks import wait_for\n"
            f"lock = wait_for({str(path)!r}, lambda: print('waiting', flush=True))\n"
            "print('had', flush=True); input(); ",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert waiting.stdout.readline() == "waiting\n"
    lock.release()
    assert waiting.stdout.readline() == "had\n"
    assert try_to_lock(path) is None
    waiting.communicate("\n")
    assert waiting.returncode == 0
    wait_for(path, lambda: pytest.fail("it is free")).release()


def test_a_folder_without_permission(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"one\.lock: cannot be locked: File exists"):
        try_to_lock(tmp_path / "file/one.lock")


def test_a_folder_is_free_until_somebody_works_in_it(tmp_path, monkeypatch):
    """Taking it a second time changes nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".snakemake").mkdir()
    first, second = WorkingFolder(), WorkingFolder()
    assert second.is_free()
    first.take()
    first.take()
    assert first.is_free()
    assert not second.is_free()
    with pytest.raises(UserError, match="another Snakemake works in"):
        second.take()


def test_a_file_system_without_locks(tmp_path, monkeypatch, capsys):
    """It is told apart from other trouble: a folder there works, with a warning."""

    def refuse(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(NoLocks, match=r"one\.lock: cannot be locked: Function not implemented"):
        try_to_lock(tmp_path / "one.lock")
    monkeypatch.chdir(tmp_path)
    folder = WorkingFolder()
    (tmp_path / ".snakemake").mkdir()
    folder.take()
    warned = capsys.readouterr().err
    assert "the file .snakemake/palimpsest.json keeps other Snakemakes out" in warned
    folder.take()  # a second time changes nothing
    with pytest.raises(UserError, match="once you are sure that it has ended, delete that file"):
        WorkingFolder().take()
