"""Ctrl-C in Snakemake's main process: stop the jobs, say what is kept, end without a traceback.

Snakemake waits for its running jobs, however long they take, unless the terminal stops them itself;
then each of them prints its own error: https://github.com/snakemake/snakemake/issues/448. Here only
public means are used: signal handlers, Snakemake's hooks, its logger and the prefix of its shell.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

from palimpsest.launch import Interrupted, when_told_to_end

# The shell of a job, and all that it starts, ignores Ctrl-C: the main process ends the jobs itself,
# so it does not matter whether a signal is sent to it alone or to all. The shell ends after what it
# started, so that whoever waits for the shell waits for the job.
TRAPS = 'trap "" INT; trap "exit 143" TERM; '
PATIENCE = 10  # seconds that an interrupted job gets to end by itself
PAUSE = 0.1
KEPT = re.compile(r"interrupted; (.+ kept); the same command continues")


class Interruption:
    """The ending of the main process by Ctrl-C or by SIGTERM.

    `logger` is Snakemake's.
    """

    def __init__(self, logger: logging.Logger):
        self._logger = logger
        self._logs = LogsOfJobs()
        self._interrupted: Interrupted | None = None
        self._can_wait = True
        self._jobs: dict = {}  # the stopped processes, and the time of the first signal
        # Until the first job starts, there is nothing to stop.
        when_told_to_end(self._end_at_once)

    def begin(self, shell, is_local: bool) -> None:
        """Be ready to stop jobs; call this before the first job starts, in Snakemake's `onstart`.

        `shell` is Snakemake's. `is_local` is false if Snakemake submits jobs to a cluster.
        """
        # A prefix replaces Snakemake's own, which it has for bash only.
        strict = "set -euo pipefail; " if str(shell.get_executable()).endswith("bash") else ""
        shell.prefix(strict + TRAPS)
        self._logger.addHandler(self._logs)
        # What Snakemake does on SIGTERM: it starts no further job, and waits for those that run.
        self._start_no_more = signal.getsignal(signal.SIGTERM)
        self._is_local = is_local
        when_told_to_end(self._stop)

    def end(self) -> None:
        """If there was an interruption, say what is kept, and end this process."""
        if self._interrupted is None:
            return
        self._wait_for_jobs()
        print(*self._summary(), sep="\n", file=sys.stderr, flush=True)
        sys.exit(self._interrupted.status)

    def _end_at_once(self, number: int, frame) -> None:
        interrupted = Interrupted(number)
        os.write(2, f"{interrupted}\n".encode())
        sys.exit(interrupted.status)

    def _stop(self, number: int, frame) -> None:
        """Stop all jobs; at the second signal, kill them."""
        if self._interrupted is not None:
            self._can_wait = False
            return
        self._interrupted = Interrupted(number)
        self._silence()
        # `print` may be at work already in the code that the signal interrupts.
        os.write(2, b"interrupted; stopping the jobs\n")
        if not self._is_local:
            self._stop_jobs()  # those that Snakemake runs here; it now cancels the others itself
            sys.exit(self._interrupted.status)
        threading.Thread(target=self._keep_stopping, daemon=True).start()

    def _silence(self) -> None:
        """Drop all that Snakemake says from now on: each stopped job would be an error."""
        self._logger.addFilter(lambda record: False)

    def _keep_stopping(self) -> None:
        """Stop jobs until Snakemake ends; one may just be starting, while the signal arrives."""
        # In a thread, because it takes a lock, which the interrupted main thread may hold.
        if callable(self._start_no_more):
            self._start_no_more()
        while True:
            self._stop_jobs()
            time.sleep(PAUSE)

    def _stop_jobs(self) -> None:
        """Tell all processes of jobs to end; kill those that had time to end."""
        import psutil

        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                if os.getpgid(process.pid) != os.getpgrp():
                    continue  # its job ends it, see `palimpsest.launch.in_child`
                if process not in self._jobs:
                    self._jobs[process] = time.monotonic()
                    process.terminate()
                elif time.monotonic() - self._jobs[process] > PATIENCE or not self._can_wait:
                    process.kill()

    def _wait_for_jobs(self) -> None:
        import psutil

        psutil.wait_procs(list(self._jobs), timeout=PATIENCE)

    def _summary(self) -> list[str]:
        """The lines to print: one if a single job had something to keep, or else one for each."""
        lines = (last_line(log) for log in self._logs.paths)
        kept = [found[1] for line in lines if (found := KEPT.fullmatch(line))]
        if len(kept) == 1:
            return [str(Interrupted(self._interrupted.number, kept[0]))]
        return [str(self._interrupted), *(f"  {each}" for each in kept)]


class LogsOfJobs(logging.Handler):
    """Collects the paths of the logs of all jobs that Snakemake starts, from its messages."""

    def __init__(self):
        super().__init__()
        self.paths: dict[str, None] = {}  # in order

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "rule_name") and record.levelno < logging.ERROR:
            self.paths.update(dict.fromkeys(record.log))


def last_line(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").rstrip().rpartition("\n")[2]
    except OSError:
        return ""
