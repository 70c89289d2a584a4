"""Starting a training command with one or several processes."""

import os
import sys


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
