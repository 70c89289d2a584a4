"""Jobs that refuse their input: what they say is one line, and Snakemake adds no error of its own.

A job that ends because of its input writes a line that begins with `error: `, as the last one of
its log. Snakemake follows with the command of the job, its exit status and its files, which are
about the workflow and not about the input. Other failures are shown as Snakemake shows them.
"""

from __future__ import annotations

import logging
import sys

from palimpsest.ends.interruption import last_line

OF_A_COMMAND = "CalledProcessError"
OF_ANY_JOB = ("Exiting because a job execution failed", "At least one job did not complete")


class Refusals(logging.Filter):
    """Drops Snakemake's errors about jobs that refused their input, on one machine."""

    def __init__(self):
        super().__init__()
        self._started: set[str] = set()  # logs of jobs
        self._announced: set[str] = set()  # logs whose error of a command was dropped
        self._refusals: dict[str, str] = {}  # the last lines of logs
        self._has_others = False  # jobs that failed otherwise
        self._is_last = True  # whether nothing was written after the only refusal

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep a message, unless it is an error about a job that refused its input."""
        logs = getattr(record, "log", None) or ()
        if hasattr(record, "rule_name") and record.levelno < logging.ERROR:
            self._started.update(logs)
            self._is_last = not self._refusals
        elif hasattr(record, "rule_name"):
            return self._is_kept(logs)
        elif hasattr(record, "exception") and OF_A_COMMAND in record.getMessage():
            return not self._announce()
        elif any(words in record.getMessage() for words in OF_ANY_JOB):
            return self._has_others or not self._refusals
        return True

    def end(self) -> None:
        """Say the refusals again, if other jobs have written since."""
        if len(self._refusals) > 1 or not self._is_last:
            lines = dict.fromkeys(self._refusals.values())
            print(*lines, sep="\n", file=sys.stderr, flush=True)

    def _announce(self) -> bool:
        """Whether the command of a job that refused its input failed; each job counts once."""
        for log in self._started - self._announced:
            if refusal(log):
                self._announced.add(log)
                return True
        return False

    def _is_kept(self, logs: list[str]) -> bool:
        found = {log: line for log in logs if (line := refusal(log))}
        self._refusals.update(found)
        self._has_others |= not found
        return not found


def refusal(log: str) -> str:
    """The line with which a job refused its input; empty if it did not."""
    line = last_line(log)
    return line if line.startswith("error: ") else ""
