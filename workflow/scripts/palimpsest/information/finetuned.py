"""Models that are fine-tuned on a language, and measured after every epoch.

A model is fine-tuned on a few strings, again and again. The placebo is the same model on fresh
strings: equally many in every epoch, and no string is ever repeated. What changes with both is
learning the language; what changes with repeated strings alone may be memorisation.
"""

from __future__ import annotations

from collections.abc import Iterator

from palimpsest.configuration.checks import of_one_study
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.information.interventions import FRESH, REPEATED
from palimpsest.regimes import SINGLE, OnePass
from palimpsest.requests import CHECKPOINTS, TRACE, Runs

VARIANTS = (REPEATED, FRESH)
KEY = "information/finetuned"
NEEDS = "the exact probabilities of strings, to find stand-ins for what is memorised"


def block(settings: Settings) -> dict | None:
    return settings.block("information")["finetuned"]


def size_of(variant: str, size: int, epochs: int) -> int:
    """The number of training strings. An epoch has `size` of them; fresh strings never repeat."""
    return size * epochs if variant == FRESH else size


def n_epochs(settings: Settings) -> int:
    return settings.recipe(block(settings)["recipe"])["epochs"]


def runs(settings: Settings, seeds: tuple[int, ...]) -> list[Runs]:
    """The runs on repeated and on fresh strings; the weights after every epoch are kept."""
    asked = block(settings)
    if asked is None:
        return []
    length = OnePass(n_epochs(settings), asked["tests"])
    return [
        Runs(
            model,
            language,
            size_of(variant, asked["size"], length.cohorts),
            variant,
            seeds,
            asked["recipe"],
            keeps=frozenset({TRACE, CHECKPOINTS}),
            regime=length if variant == FRESH else SINGLE,
            job=variant,
        )
        for model in asked["models"]
        for language in asked["languages"]
        for variant in VARIANTS
    ]


def mistakes(settings: Settings) -> Iterator[Mistake]:
    asked = block(settings)
    if asked is None:
        return
    needed = size_of(FRESH, asked["size"], n_epochs(settings)) + asked["tests"]
    yield from of_one_study(settings, KEY, asked, needed, NEEDS)
    if (every := settings.recipe(asked["recipe"])["evaluate_every"]) != 1:
        yield Mistake(
            f"{KEY}/recipe",
            f"by the recipe {asked['recipe']}, models are measured after each {every} epochs only; "
            "set its evaluate_every to 1, or name another recipe",
        )
    neighbours = settings.block("information")["neighbours"]
    if neighbours >= asked["tests"]:
        yield Mistake(
            f"{KEY}/tests",
            f"{asked['tests']} strings are too few for the {neighbours} neighbours of "
            f"information/neighbours; raise it to {neighbours + 1} or more",
        )
