"""The context of every script of a rule: a log, and one line for an error that a user can mend."""

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import TextIO

from palimpsest.errors import Notice, UserError
from palimpsest.launch import collect_rarely


@contextlib.contextmanager
def script_job(job) -> Iterator[TextIO]:
    """Send the warnings of a `script:` job to its log; turn a `UserError` into one line.

    A `Notice` is shown on the screen, too.
    `job` is Snakemake's `snakemake` object, and the context's value is the open log. Any exception
    but a `UserError` is a defect, and keeps its traceback.
    """
    collect_rarely()
    with open(job.log[0], "w") as log:

        def show(message: Warning, *_) -> None:
            for place in (log, sys.stderr) if isinstance(message, Notice) else (log,):
                print(f"warning: {message}", file=place)

        warnings.showwarning = show
        try:
            yield log
        except UserError as error:
            print(f"error: {error}", file=log)
            print(f"error: {error}", file=sys.stderr)
            sys.exit(1)
