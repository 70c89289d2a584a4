"""How processes start: the Python to use, child processes, launchers and memory settings."""

import atexit
import contextlib
import ctypes
import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # from malloc.h
PR_SET_PDEATHSIG = 1  # from sys/prctl.h
LAUNCHED = "PALIMPSEST_LAUNCHED"


def prefer_this_python() -> None:
    """Put the Python that runs Snakemake first in the PATH of shell commands.

    A user may call Snakemake by its path, without an active environment. If a rule has its own
    environment, the Python of that environment comes first.
    """
    here = os.path.dirname(sys.executable)
    os.environ["PATH"] = os.pathsep.join([here, os.environ.get("PATH", "")])


def asked_targets(arguments: Sequence[str]) -> set[str] | None:
    """The targets and files that a command line of Snakemake's names; None if it names none.

    The rules and files of --until, --forcerun and --prioritize are made as well. Snakemake itself
    knows its targets only after it has read the Snakefile, so its parser reads the command line
    here. Without its command line, nothing is known of the targets: None.
    """
    from snakemake.cli import get_argument_parser  # only in Snakemake's processes

    try:
        with contextlib.redirect_stderr(io.StringIO()):
            given = get_argument_parser().parse_args(list(arguments))
    except SystemExit:
        return None
    if not given.targets:
        return None
    return {*given.targets, *given.until, *given.forcerun, *given.prioritize}


def is_launched() -> bool:
    """Whether this process is one of several that a launcher has started for `relaunch_with`."""
    return LAUNCHED in os.environ


def in_child(work: Callable[[], None]) -> int:
    """Do some work in a child process and return its exit status; the child dies with this process.

    The child inherits open files, and so it shares every lock that this process holds.
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
    """Let the system kill this process when its parent dies, for whatever reason the parent dies.

    Works on Linux; does nothing on other systems.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def relaunch_with(processes: int, threads: int) -> None:
    """If `processes` is more than 1, replace this process by a launcher of `processes` copies.

    Each copy runs the same command, and dies when the launcher dies. The launcher chooses a free
    port for each job. In such a copy, or if `processes` is 1, this function only sets the number of
    threads and returns. Call it before torch is imported.
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
    """Run Python's garbage collection rarely, and not at the end of the process.

    Garbage collection takes a sixth of the time of a process that lasts seconds.
    """
    gc.set_threshold(50_000, 50, 50)
    atexit.register(gc.freeze)


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Exclude the objects of large modules from Python's garbage collection.

    The objects of a module stay until the process ends. Without this, collecting among the objects
    of torch and transformers takes a quarter of the time of a small training.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def keep_freed_memory() -> None:
    """Let the C library keep freed memory, instead of returning the memory to the system.

    Training on the CPU allocates and frees the same large buffers at each step. Returning them to
    the system each time costs a fifth of the run. Works with glibc; does nothing with another C
    library.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 1 << 30)
        mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
