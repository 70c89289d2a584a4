"""Print the milliseconds that this machine takes for a loop of five million steps (median)."""

import statistics
import time


def milliseconds() -> float:
    begin = time.perf_counter()
    total = 0
    for step in range(5_000_000):
        total += step
    return 1000 * (time.perf_counter() - begin)


print(round(statistics.median(milliseconds() for _ in range(9))))
