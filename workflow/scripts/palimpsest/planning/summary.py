"""The plan as a text for a terminal: totals by model, and the assumptions."""

import math
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace

from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes
from palimpsest.planning.kinds import PLAN
from palimpsest.planning.shapes import Hardware
from palimpsest.planning.wall_time import at_least, gpu_hours_left, longest_chain
from palimpsest.section import Derived

HEADER = (
    "model", "models", "left", "GPUs", "per GPU", "memory", "time", "GPU time", "disk", "basis"
)  # fmt: skip
MOST_NAMED = 3  # models of a section
pd = lazy_import("pandas")


@makes(PLAN)
def plan_table(bill: SimpleNamespace) -> "pd.DataFrame":
    """The plan as a table; it may have no rows. Prints the summary.

    `bill` has the `rows`, a list of dict, and the `summary`, a text.
    """
    print(bill.summary)
    return pd.DataFrame(bill.rows, columns=PLAN.names)


def summary(rows: list[dict], hardware: Hardware, derived: Sequence[Derived] = ()) -> str:
    """Totals by model and over all, then the assumptions. Hours and disk cover unfinished runs."""
    if not rows:
        return "This configuration trains nothing."
    by_model: dict[str, list[dict]] = {}
    for row in rows:
        by_model.setdefault(row["model"], []).append(row)
    lines = [HEADER, *(_line(model, of_it) for model, of_it in by_model.items())]
    lines.append(_line("all", rows))
    on_gpus = _on_gpus(rows, hardware.gpus, derived)
    return "\n".join([*_aligned(lines), "", *on_gpus, *_notes(rows, hardware)])


def _on_gpus(rows: list[dict], n_gpus: int | None, derived: Sequence[Derived]) -> list[str]:
    """The wall time on the GPUs that there are; nothing if their number is not known."""
    if n_gpus is None:
        return []
    what = f"{n_gpus} GPU{'s' * (n_gpus > 1)} (hardware/gpus)"
    largest = max(rows, key=lambda row: row["gpus"])
    if largest["gpus"] > n_gpus:
        return [
            f"On {what}: no end; a run of {largest['model']} needs {largest['gpus']} at once.",
            "",
        ]
    bound = _time(at_least(rows, derived, n_gpus))
    shared, chain = _time(gpu_hours_left(rows) / n_gpus), _time(longest_chain(rows, derived))
    return [
        f"On {what}: at least {bound} of wall time, an estimate: the GPU time shared",
        f"out is {shared}, and the longest run, with what is made from it, is {chain}.",
        *_of_twins(rows),
        "",
    ]


def _of_twins(rows: list[dict]) -> list[str]:
    """What the time of twins on GPUs rests on before one is finished."""
    left = [row for row in rows if not row["done"]]
    twins = [
        r for r in left if r["gpu_memory_gb"] is None and r["gpus"] and r["basis"] != "measured"
    ]
    if not twins:
        return []
    return [
        f"{_sum(twins, 'trainings'):,} of the {_sum(left, 'trainings'):,} runs are of twins, whose "
        "speed is assumed to be that of one thread",
        "of a CPU: that on a GPU is known when one is finished there.",
    ]


def only_asked(lines: Sequence[tuple[str, ...]]) -> str:
    """What `asking.lines` says of the models that sections ask; empty if there are none."""
    if not lines:
        return ""
    head = ("asks, without training", "models", "left", "tokens", "time, at least")
    table = _aligned([head, *lines, ("",) * len(head)])[:-2]
    return "\n".join(
        [
            *table,
            "",
            "Time: one GPU (hardware), a forward pass over every token, the start of each job,",
            "and reading its model. Generated answers and further passes come on top. Not known:",
            "the length of texts that no job has read, the size of a model in no table or folder.",
        ]
    )


def additions(
    added: Mapping[str, Mapping[str, int]],
    hours: Mapping[str, float],
    n_derived: Mapping[str, int],
    total_hours: float,
) -> str:
    """The trainings that each section and study adds to those before it, with their models.

    `hours` are those of GPUs that are left, and `n_derived` the models that a section makes from
    trained ones, both by section or study.
    """
    if not added:
        return ""
    lines = [("asked for by", "runs", "unlearned", "GPU time", "models")]
    for name, of_models in added.items():
        models = ", ".join(list(of_models)[:MOST_NAMED])
        more = len(of_models) - MOST_NAMED
        models += f" and {more} more" if more > 0 else ""
        counts = sum(of_models.values()), n_derived.get(name, 0)
        lines.append((name, *map(_count, counts), _time(hours.get(name, 0)), models))
    total = sum(sum(models.values()) for models in added.values()), sum(n_derived.values())
    lines.append(("all", *map(_count, total), _time(total_hours), ""))
    return "\n".join(_aligned(lines))


def _count(n: int) -> str:
    return f"{n:,}" if n else "-"


def _line(name: str, rows: list[dict]) -> tuple[str, ...]:
    left = [row for row in rows if not row["done"]]
    needs = [row["gpu_memory_gb"] for row in rows if row["gpu_memory_gb"] is not None]
    bases = sorted({row["basis"] for row in left})
    return (
        name,
        f"{_sum(rows, 'trainings'):,}",
        f"{_sum(left, 'trainings'):,}",
        f"{max(row['gpus'] for row in rows)}",
        _size(max(needs)) if needs else "-",
        _size(max(row["main_memory_gb"] for row in rows)),
        _time(_sum(left, "hours")),
        _time(_sum(left, "gpu_hours")),
        _size(_sum(left, "disk_gb") + max((row["state_gb"] for row in left), default=0)),
        " and ".join(bases) or "done",
    )


def _sum(rows: Iterable[dict], column: str) -> float:
    return sum(row[column] for row in rows)


def _time(hours: float) -> str:
    return f"{hours:,.0f} h" if hours >= 2 else f"{math.ceil(60 * hours)} min"


def _size(gigabytes: float) -> str:
    return f"{gigabytes:,.0f} GB" if gigabytes >= 1 else f"{math.ceil(1000 * gigabytes)} MB"


def _aligned(lines: list[tuple[str, ...]]) -> list[str]:
    """A table: names and words left-aligned, numbers right-aligned, lines around the models."""
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
        "Time and disk are for the unfinished runs: time as if one job ran after another, disk",
        "with the checkpoints of one run in progress. Memory is that of the largest run, on each",
        "GPU and in the main memory of its job. 1 GB is 10^9 bytes.",
        "",
        f"Assumed: GPUs of {hardware.gpu_memory_gb:g} GB at {hardware.gpu_terabytes_per_second:g} "
        f"terabytes a second and {hardware.gpu_teraflops:g} teraflops,",
        f"of which {hardware.utilisation:.0%} are reached; twins on one thread of a CPU; a GPU is "
        "counted for the",
        "same time (hardware/twin_gpus).",
    ]
    if measured:
        return [*notes, f"Measured by finished runs: {', '.join(measured)}."]
    return [
        *notes,
        "Nothing is measured yet; the first finished run of a model replaces its assumptions.",
    ]
