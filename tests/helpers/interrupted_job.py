"""A job that saves two of five epochs and then works for ever, also in a process of its own."""

import argparse
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from palimpsest.jobs import command
from palimpsest.jobs.supervision import OF_MEMORY, supervise
from palimpsest.training.progress import note_work


def work(name: str, attempts) -> None:
    """Look like a training at its third epoch."""
    state = Path("state") / name
    (state / "epoch-000002").mkdir(parents=True)
    note_work(f"twin on {name}", "epochs", {state: 5})
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(f"{name}.working").write_text(str(worker.pid))
    time.sleep(600)


if __name__ == "__main__":
    with command.ending_in_one_line():
        name = sys.argv[1]
        arguments = argparse.Namespace(state="state", **{**dict.fromkeys(OF_MEMORY, 1), "gpus": 0})
        sys.exit(supervise(arguments, [name], [partial(work, name)]))
