"""The plan in words: totals by model, and what they rest on, aligned for a terminal."""

from collections.abc import Iterable

from palimpsest.planning.shapes import Hardware

HEADER = (
    "model", "runs", "left", "GPUs", "GB/GPU", "RAM GB", "hours", "GPU hours", "disk GB", "basis"
)  # fmt: skip


def summary(rows: list[dict], hardware: Hardware) -> str:
    """Totals by model and of all, then the assumptions. Hours and disk are of the runs left."""
    by_model: dict[str, list[dict]] = {}
    for row in rows:
        by_model.setdefault(row["model"], []).append(row)
    lines = [HEADER, *(_line(model, of_it) for model, of_it in by_model.items())]
    lines.append(_line("all", rows))
    return "\n".join([*_aligned(lines), "", *_notes(rows, hardware)])


def _line(name: str, rows: list[dict]) -> tuple[str, ...]:
    left = [row for row in rows if not row["done"]]
    needs = [row["gpu_memory_gb"] for row in rows if row["gpu_memory_gb"] is not None]
    bases = sorted({row["basis"] for row in left})
    return (
        name,
        f"{_sum(rows, 'trainings'):,}",
        f"{_sum(left, 'trainings'):,}",
        f"{max(row['gpus'] for row in rows)}",
        f"{max(needs):.1f}" if needs else "-",
        f"{max(row['main_memory_gb'] for row in rows):,.0f}",
        f"{_sum(left, 'hours'):,.1f}",
        f"{_sum(left, 'gpu_hours'):,.1f}",
        f"{_sum(left, 'disk_gb') + max((row['state_gb'] for row in left), default=0):,.1f}",
        " and ".join(bases) or "done",
    )


def _sum(rows: Iterable[dict], column: str) -> float:
    return sum(row[column] for row in rows)


def _aligned(lines: list[tuple[str, ...]]) -> list[str]:
    """Names and words to the left, numbers to the right, and rules around the models."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    last = len(widths) - 1
    text = [
        "  ".join(
            cell.ljust(width) if place in (0, last) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    rule = "-" * max(map(len, text))
    return [text[0], rule, *text[1:-1], rule, text[-1]]


def _notes(rows: list[dict], hardware: Hardware) -> list[str]:
    measured = list(dict.fromkeys(row["model"] for row in rows if row["basis"] == "measured"))
    notes = [
        "Hours, GPU hours and disk are of the runs that are left: hours of one job after another, "
        "disk with the",
        "checkpoints of one run under way. GB are 10^9 bytes, of the run that needs most.",
        f"Assumed: GPUs of {hardware.gpu_memory_gb:g} GB with {hardware.gpu_teraflops:g} teraflops "
        f"at a utilisation of {hardware.utilisation:g}; twins on one thread of a CPU.",
    ]
    if measured:
        return [*notes, f"Measured by finished runs: {', '.join(measured)}."]
    return [
        *notes,
        "Nothing is measured yet; the first finished run of a model replaces its guess.",
    ]
