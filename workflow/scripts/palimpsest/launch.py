"""Starting commands: which Python, in how many processes, watched by whom, how memory is kept."""

import atexit
import contextlib
import ctypes
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # from malloc.h
PR_SET_PDEATHSIG = 1  # from sys/prctl.h
LAUNCHED = "PALIMPSEST_LAUNCHED"


def prefer_this_python() -> None:
    """Let shell commands find the Python that runs Snakemake first.

    Snakemake may be called by its path, without its environment being active. A rule with an
    environment of its own puts that in front again.
    """
    here = os.path.dirname(sys.executable)
    os.environ["PATH"] = os.pathsep.join([here, os.environ.get("PATH", "")])


def is_launched() -> bool:
    """Whether this process is one of several that `relaunch_with` has had started."""
    return LAUNCHED in os.environ


def in_child(work: Callable[[], None]) -> int:
    """Do some work in a child that dies with this process; its exit status.

    The child inherits open files, and with them every lock that this process holds.
    """
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        die_with(parent)
        work()
        sys.exit()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def die_with(parent: int) -> None:
    """Have the system end this process when the one that started it dies, however it dies.

    Does nothing where the system cannot (it is Linux's).
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def relaunch_with(processes: int, threads: int) -> None:
    """Replace this process by a launcher of `processes` copies of its command, if more than one.

    The launcher chooses a free port for each job. In a process that it has started, or with one
    process, this sets the number of threads, before torch is imported, and goes on. A process that
    a launcher has started dies with the launcher.
    """
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if is_launched():
        die_with(os.getppid())
        return
    if processes == 1:
        return
    os.environ[LAUNCHED] = "1"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    os.execv(sys.executable, [sys.executable, *launcher, *sys.argv])


def collect_rarely() -> None:
    """Have Python look for unreachable objects rarely, and not when the process ends.

    Looking for them takes a sixth of the time of a process that lasts seconds.
    """
    gc.set_threshold(50_000, 50, 50)
    atexit.register(gc.freeze)


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Keep Python from looking for unreachable objects among those of large modules.

    What a module holds stays until the process ends. Looking through the objects of torch and
    transformers takes a quarter of the time of a small training.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def keep_freed_memory() -> None:
    """Let the C library keep freed memory instead of handing it back to the system at each step.

    Training on the CPU allocates and frees the same large buffers over and over; giving them back
    each time costs a fifth of the run. Does nothing where the C library is not glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 1 << 30)
        mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
