"""Whether a full model fits on its GPUs, and the smallest changes of settings that make it fit."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations, product

from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.models.adapters import LORA
from palimpsest.planning.memory import GB, gpu_peak
from palimpsest.planning.plan import Planner
from palimpsest.planning.shapes import Shape, Training
from palimpsest.requests import Runs

MOST_PROCESSES = 64
SUGGESTED = 2
BATCHES = ("micro_batch_size", "evaluation_batch_size")


def does_not_fit(
    settings: Settings, planner: Planner, requests: Iterable[Runs]
) -> Iterator[Mistake]:
    """Full models that do not fit on the GPUs, each on its language with the longest strings."""
    longest: dict[tuple[str, str], str] = {}
    for runs in requests:
        if not settings.is_twin(runs.model):
            key = runs.model, runs.recipe
            languages = runs.corpus, longest.get(key, runs.corpus)
            longest[key] = max(languages, key=lambda name: planner.tokens(name)[1])
    for (model, recipe), language in longest.items():
        yield from _does_not_fit(settings, planner, model, recipe, language)


def _does_not_fit(
    settings: Settings, planner: Planner, model: str, recipe: str, language: str
) -> Iterator[Mistake]:
    has = settings.config["hardware"]["gpu_memory_gb"]
    needs = planner.gpu_peak(model, language, recipe)
    if needs <= has * GB:
        return
    training = planner.training(model, recipe)
    asked = planner.shape(model, language), training, planner.tokens(language)[1]
    changes = changes_that_fit(*asked, has)
    where = f"training_by_model/{model}"
    remedy = " or ".join(f"{where}: {_in_braces(change)}" for change in changes)
    own = settings.config["training_by_model"].get(model)
    key = "hardware/gpu_memory_gb"
    if changes:
        first = next(iter(changes[0]))
        set_here = own is not None and first in own
        is_whole = own is not None and not set_here
        key = where if is_whole else settings.key_of(first, model, recipe)
    rank = settings.recipe(recipe)["adapter_rank"]
    # Smaller batches change no result, so where they are enough, nothing else is suggested.
    if not any(set(change) <= set(BATCHES) for change in changes) and (
        adapted := change_to_adapters(*asked, has, rank)
    ):
        remedy += f"{' or, ' if remedy else ''}with adapters, {where}: {_in_braces(adapted)}"
    gpus = f"{training.processes} GPU{'s' if training.processes > 1 else ''}"
    offloaded = ", the optimiser offloaded," if training.offloaded else ""
    yield Mistake(
        key,
        f"{model} needs {needs / GB:,.0f} GB on each GPU with ZeRO {training.zero_stage}"
        f"{offloaded} on {gpus}, and hardware/gpu_memory_gb is {has:g}; "
        + (f"it fits with {remedy}" if remedy else "no settings fit; leave the model out"),
    )


def _in_braces(block: dict) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in block.items()) + "}"


def fits(shape: Shape, training: Training, longest: int, gpu_memory_gb: float) -> bool:
    return gpu_peak(shape, training, longest) <= gpu_memory_gb * GB


def change_to_adapters(
    shape: Shape, training: Training, longest: int, gpu_memory_gb: float, rank: int
) -> dict:
    """The change to adapters of a rank, on the same GPUs, with smaller batches if needed.

    It is empty if the model has adapters already, or does not fit with adapters.
    """
    if training.adapts:
        return {}
    change = {"adapter": LORA}
    adapted = replace(training, **change, adapter_rank=rank)
    if fits(shape, adapted, longest, gpu_memory_gb):
        return change
    smaller = changes_that_fit(shape, adapted, longest, gpu_memory_gb, BATCHES)
    return {**change, **smaller[0]} if smaller else {}


def changes_that_fit(
    shape: Shape,
    training: Training,
    longest: int,
    gpu_memory_gb: float,
    keys: tuple[str, ...] | None = None,
) -> list[dict]:
    """At most two changes of settings with which a model fits; they change as few keys as possible.

    A change maps keys of a recipe to values; only some `keys` may change, if they are given. For
    each choice of keys, it has the smallest values that fit. The list is empty if no change fits.
    """
    choices = {
        key: values for key, values in _choices(training).items() if keys is None or key in keys
    }
    for count in range(1, len(choices) + 1):
        found = []
        for some in combinations(choices, count):
            change = next(
                (
                    change
                    for change in _values(some, choices)
                    if _allowed(changed := replace(training, **change))
                    and fits(shape, changed, longest, gpu_memory_gb)
                ),
                None,
            )
            if change is not None:
                found.append(change)
        if found:
            return found[:SUGGESTED]
    return []


def _choices(training: Training) -> dict[str, list]:
    """For every key that can save memory, other values that save more, nearest value first.

    The precision is the last key, because only this key changes results.
    """
    choices = {
        "micro_batch_size": _halves(training.strings_per_pass),
        "evaluation_batch_size": _halves(training.evaluation_batch_size),
        "zero_stage": list(range(training.zero_stage + 1, 4)),
        "offload_optimizer": [] if training.offloaded else ["cpu"],
        "processes": _doubles(training.processes),
        "precision": ["bf16"] if training.precision == "fp32" else [],
    }
    return {key: values for key, values in choices.items() if values}


def _values(keys: tuple[str, ...], choices: dict[str, list]) -> Iterator[dict]:
    """Every change of some keys, smallest first: more GPUs count as more than a ZeRO stage."""
    dearest_first = sorted(keys, key=["processes", "offload_optimizer"].__contains__, reverse=True)
    for values in product(*(choices[key] for key in dearest_first)):
        change = dict(zip(dearest_first, values, strict=True))
        yield {key: change[key] for key in keys}


def _allowed(training: Training) -> bool:
    return not (training.offloaded and training.zero_stage == 0)


def _halves(value: int) -> list[int]:
    return [value // 2**step for step in range(1, value.bit_length())]


def _doubles(value: int) -> list[int]:
    return [value * 2**step for step in range(1, 7) if value * 2**step <= MOST_PROCESSES]
