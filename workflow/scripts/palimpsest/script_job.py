"""The context of every script of a rule: a log, and one line for an error that a user can mend."""

import contextlib
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import TextIO

from palimpsest import extensions
from palimpsest.errors import Notice, UserError
from palimpsest.launch import Interrupted, collect_rarely, raise_when_interrupted


@contextlib.contextmanager
def script_job(job) -> Iterator[TextIO]:
    """Send the warnings of a `script:` job to its log; turn a `UserError` into one line.

    `job` is Snakemake's `snakemake` object, and the context's value is the open log. A `Notice` is
    shown on the terminal, too. No line is repeated. An error in the code of an extension is one
    line, and its traceback is in the log. Any other exception but a `UserError` is a defect, and
    keeps its traceback.
    """
    collect_rarely()
    raise_when_interrupted()
    with open(job.log[0], "w") as log:
        said = set()

        def show(message: Warning, *_) -> None:
            if str(message) in said:
                return
            said.add(str(message))
            for place in (log, sys.stderr) if isinstance(message, Notice) else (log,):
                print(f"warning: {message}", file=place)

        warnings.showwarning = show
        try:
            with extensions.errors_in_one_line():
                yield log
        except Interrupted as interrupted:
            print(interrupted, file=log)
            sys.exit(interrupted.status)
        except UserError as error:
            if isinstance(error, extensions.ErrorOfExtension):
                traceback.print_exception(error.__cause__, file=log)
            print(f"error: {error}", file=log)
            print(f"error: {error}", file=sys.stderr)
            sys.exit(1)
