"""Starting commands: which Python, how many processes, how memory is kept."""

import ctypes
import os
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # from malloc.h


def prefer_this_python() -> None:
    """Let shell commands find the Python that runs Snakemake first.

    Snakemake may be called by its path, without its environment being active. A rule with an
    environment of its own puts that in front again.
    """
    here = os.path.dirname(sys.executable)
    os.environ["PATH"] = os.pathsep.join([here, os.environ.get("PATH", "")])


def relaunch_with(processes: int, threads: int) -> None:
    """Replace this process by a launcher of `processes` copies of its command, if more than one.

    The launcher chooses a free port for each job. Under it, or with one process, nothing happens
    but the number of threads being fixed, which must precede the import of torch.
    """
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if processes == 1 or "WORLD_SIZE" in os.environ:
        return
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    os.execv(sys.executable, [sys.executable, *launcher, *sys.argv])


def keep_freed_memory() -> None:
    """Let the C library keep freed memory instead of handing it back to the system at each step.

    Training on the CPU allocates and frees the same large buffers over and over; giving them back
    each time costs a fifth of the run. Does nothing where the C library is not glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 1 << 30)
        mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
