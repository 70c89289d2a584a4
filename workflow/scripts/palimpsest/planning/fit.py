"""Whether a full model fits, and the smallest changes of its settings that make it fit."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

from palimpsest.planning.memory import GB, gpu_peak
from palimpsest.planning.shapes import Settings, Shape

MOST_PROCESSES = 64
SUGGESTED = 2


def fits(shape: Shape, settings: Settings, longest: int, gpu_memory_gb: float) -> bool:
    """Whether a run fits on its GPUs."""
    return gpu_peak(shape, settings, longest) <= gpu_memory_gb * GB


def changes_that_fit(
    shape: Shape, settings: Settings, longest: int, gpu_memory_gb: float
) -> list[dict]:
    """The changes of fewest keys with which a model fits, at most two, the smaller values first.

    Each maps keys of `training` to values. Of several values of the same keys, the first that fits
    is given; the list is empty if none does.
    """
    choices = _choices(settings)
    for count in range(1, len(choices) + 1):
        found = []
        for keys in combinations(choices, count):
            change = next(
                (
                    change
                    for change in _values(keys, choices)
                    if _allowed(changed := replace(settings, **change))
                    and fits(shape, changed, longest, gpu_memory_gb)
                ),
                None,
            )
            if change is not None:
                found.append(change)
        if found:
            return found[:SUGGESTED]
    return []


def _choices(settings: Settings) -> dict[str, list]:
    """For every key that saves memory, its values beyond the present one, the nearest first.

    Keys that change no result come before the precision, which does.
    """
    choices = {
        "micro_batch_size": _halves(settings.strings_per_pass),
        "evaluation_batch_size": _halves(settings.evaluation_batch_size),
        "zero_stage": list(range(settings.zero_stage + 1, 4)),
        "offload_optimizer": [] if settings.offloaded else ["cpu"],
        "processes": _doubles(settings.processes),
        "precision": ["bf16"] if settings.precision == "fp32" else [],
    }
    return {key: values for key, values in choices.items() if values}


def _values(keys: tuple[str, ...], choices: dict[str, list]) -> Iterator[dict]:
    """Every change of some keys; a change of fewer GPUs is smaller than one of the ZeRO stage."""
    dearest_first = sorted(keys, key=["processes", "offload_optimizer"].__contains__, reverse=True)
    for values in product(*(choices[key] for key in dearest_first)):
        change = dict(zip(dearest_first, values, strict=True))
        yield {key: change[key] for key in keys}


def _allowed(settings: Settings) -> bool:
    return not (settings.offloaded and settings.zero_stage == 0)


def _halves(value: int) -> list[int]:
    return [value // 2**step for step in range(1, value.bit_length())]


def _doubles(value: int) -> list[int]:
    return [value * 2**step for step in range(1, 7) if value * 2**step <= MOST_PROCESSES]
