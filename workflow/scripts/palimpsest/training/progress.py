"""Progress of long work: a bar on a terminal, plain lines in a log."""

import sys
import time
from collections.abc import Callable


def show_progress(
    name: str, unit: str = "epoch", measured: str = "train loss"
) -> Callable[[int, int, float], None]:
    """A progress reporter for one run: a bar on a terminal, or a line every 30 seconds in a log."""
    last = time.monotonic()

    def report(done: int, whole: int, loss: float) -> None:
        nonlocal last
        line = f"{name}: {unit} {done}/{whole}, {measured} {loss:.4f} nats per token"
        if sys.stderr.isatty():
            filled = "#" * (20 * done // whole)
            print(f"\r[{filled:<20}] {line}", end="", file=sys.stderr, flush=True)
            if done == whole:
                print(file=sys.stderr)
        elif done in (1, whole) or time.monotonic() - last > 30:
            print(line, file=sys.stderr, flush=True)
            last = time.monotonic()

    return report
