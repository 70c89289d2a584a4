"""The study of support: ordinary training sets, the runs on them, and the mistakes in its block.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
"""

from collections.abc import Iterator

from palimpsest.configuration.checks import (
    too_many_strings,
    unknown_languages,
    unknown_model,
    without_probabilities,
)
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.requests import TRACE, WEIGHTS, Runs

NEEDS = "the comparison of densities with exact probabilities"


def block(settings: Settings) -> dict | None:
    """The block `density/support`; None if it is left out."""
    return settings.block("density")["support"]


def runs(settings: Settings) -> Iterator[Runs]:
    """The runs on every language; their weights are kept for embeddings."""
    asked = block(settings)
    if asked is None:
        return
    keeps = frozenset({TRACE, WEIGHTS})
    for language in asked["languages"]:
        yield Runs(asked["model"], language, asked["size"], seeds=settings.seeds, keeps=keeps)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """The mistakes in the block that its schema cannot find."""
    asked, key = block(settings), "density/support"
    if asked is None:
        return
    yield from unknown_model(settings, f"{key}/model", asked["model"])
    yield from unknown_languages(settings, f"{key}/languages", asked["languages"])
    yield from without_probabilities(settings, f"{key}/languages", asked["languages"], NEEDS)
    yield from too_many_strings(settings, f"{key}/size", [asked["size"]], asked["languages"])
    if settings.block("density")["neighbours"] > asked["size"]:
        yield Mistake(
            "density/neighbours",
            f"{settings.block('density')['neighbours']} is more than the {asked['size']} training "
            f"strings of {key}; lower it",
        )
