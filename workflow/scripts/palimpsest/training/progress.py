"""Progress of long work: a bar on a terminal, plain lines in a log."""

import sys
import time
from collections.abc import Callable


def show_progress(name: str) -> Callable[[int, int, float], None]:
    """A progress reporter for one run: a bar on a terminal, a plain line now and then in a log."""
    last = time.monotonic()

    def report(epoch: int, epochs: int, loss: float) -> None:
        nonlocal last
        line = f"{name}: epoch {epoch}/{epochs}, train loss {loss:.4f} nats per token"
        if sys.stderr.isatty():
            filled = "#" * (20 * epoch // epochs)
            print(f"\r[{filled:<20}] {line}", end="", file=sys.stderr, flush=True)
            if epoch == epochs:
                print(file=sys.stderr)
        elif epoch in (1, epochs) or time.monotonic() - last > 30:
            print(line, file=sys.stderr, flush=True)
            last = time.monotonic()

    return report
