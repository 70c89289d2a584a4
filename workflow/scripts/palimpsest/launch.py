"""How processes start and end: the Python, child processes, launchers, signals, memory settings."""

import atexit
import contextlib
import ctypes
import gc
import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # from malloc.h
PR_SET_PDEATHSIG = 1  # from sys/prctl.h
TARGETS = "PALIMPSEST_TARGETS"  # environment variable: what the main process is to make, by lines
BILL = "PALIMPSEST_BILL"  # environment variable: what its jobs make, as JSON
LONGEST_VALUE = 100_000  # of an environment variable; Linux starts no program with 128 KiB
LAUNCHED = "PALIMPSEST_LAUNCHED"  # environment variable: the process id of the launcher
ENDING = (signal.SIGINT, signal.SIGTERM)  # the signals with which people and clusters end a program


def is_read_by_a_shell(path: str) -> bool:
    """Whether a shell would not take a path for one word, so that it must be quoted."""
    return re.search(r"""[\s"'`$&;|<>()*?!#{}\\\[\]]""", path) is not None


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


def hand_on_targets(targets: Iterable[str] | None) -> None:
    """Let the local jobs of this process know what it is to make; see `handed_targets`."""
    os.environ[TARGETS] = "\n".join(targets or ())
    os.environ.pop(BILL, None)


def handed_targets() -> list[str]:
    """The targets of the main process; [] if it makes all, or runs on another machine."""
    return [target for target in os.environ.get(TARGETS, "").split("\n") if target]


def hand_on_bill(made: Mapping) -> None:
    """Let the local job that writes the plan know what is made; see `handed_bill`."""
    text = json.dumps(made)
    if len(text) <= LONGEST_VALUE:
        os.environ[BILL] = text


def handed_bill() -> dict | None:
    """What `hand_on_bill` was given by the main process; None if nothing, or if it was too long."""
    return json.loads(os.environ[BILL]) if BILL in os.environ else None


class Interrupted(BaseException):
    """A signal of `ENDING` told this process to end; `kept` says in words what is kept of its work.

    No `Exception`, so that no code takes it for an error.
    """

    def __init__(self, number: int, kept: str = ""):
        self.number, self.kept = number, kept

    def __str__(self) -> str:
        return "; ".join(filter(None, ["interrupted", self.kept, "the same command continues"]))

    @property
    def status(self) -> int:
        """The exit status by which shells name the signal: 130 after Ctrl-C."""
        return 128 + self.number


def raise_when_interrupted() -> None:
    """Let the first signal of `ENDING` raise `Interrupted`; the next ones are ignored.

    A signal that this process ignores already stays ignored.
    """

    def interrupt(number, frame) -> None:
        when_told_to_end(signal.SIG_IGN)
        raise Interrupted(number)

    when_told_to_end(interrupt)


def when_told_to_end(handler) -> None:
    """Set the handler of the signals of `ENDING`, except those that this process ignores."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def is_launched() -> bool:
    """Whether this process is one of several that a launcher has started for `relaunch_with`."""
    return LAUNCHED in os.environ


def in_child(work: Callable[[], None]) -> int:
    """Do some work in a child process and return its exit status; the child dies with this process.

    The child inherits open files, and so it shares every lock that this process holds. A terminal
    sends its signals to this process only. If this process is interrupted, it kills the child: a
    kill harms no state, while an exception in the middle of a library may hang or print pages.
    """
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        die_with(parent)
        os.setsid()
        when_told_to_end(signal.SIG_DFL)
        work()
        sys.exit()
    try:
        _, status = os.waitpid(child, 0)
    except Interrupted:
        _kill_with_group(child)
        raise
    return os.waitstatus_to_exitcode(status)


def _kill_with_group(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # it had no time to make the group
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)


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
        die_with(int(os.environ[LAUNCHED]))
        return
    if processes == 1:
        return
    os.environ[LAUNCHED] = str(os.getpid())
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
