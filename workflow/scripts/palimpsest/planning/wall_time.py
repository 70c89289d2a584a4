"""Wall time of an experiment on a number of GPUs: a bound from below, from the rows of the plan."""

from collections.abc import Iterable

from palimpsest.section import Derived


def gpu_hours_left(rows: Iterable[dict]) -> float:
    return sum(row["gpu_hours"] for row in rows if not row["done"])


def longest_chain(rows: Iterable[dict], derived: Iterable[Derived]) -> float:
    """Hours of the longest work that no number of GPUs makes shorter.

    An unfinished training, or a training followed by one of the models that are made from it.
    """
    hours: dict[tuple, float] = {}
    for row in rows:
        if not row["done"]:
            per_run = row["hours"] / row["trainings"]
            hours[_key(row)] = max(per_run, hours.get(_key(row), 0))
    chains = [
        hours.get(_of(made, made.name), 0) + hours.get(_of(made, made.runs.variant), 0)
        for made in derived
    ]
    return max([*hours.values(), *chains], default=0.0)


def _key(row: dict) -> tuple:
    return tuple(row[name] for name in ("model", "language", "size", "variant", "seed"))


def _of(made: Derived, variant: str) -> tuple:
    return made.runs.model, made.runs.corpus, made.runs.size, variant, made.seed


def at_least(rows: list[dict], derived: Iterable[Derived], n_gpus: int) -> float:
    """Hours that `n_gpus` GPUs take at least: the longest chain, or all GPU hours shared out.

    The work takes longer where GPUs wait: for each other in a run on several GPUs, for a job of
    several runs, for a queue, or for the last runs.
    """
    return max(longest_chain(rows, derived), gpu_hours_left(rows) / n_gpus)
