"""The study of support: ordinary training sets, the runs on them, and the mistakes in its block."""

from collections.abc import Iterator

from palimpsest.configuration.checks import of_one_study
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.requests import TRACE, WEIGHTS, Runs

NEEDS = "the comparison of densities with exact probabilities"


def block(settings: Settings) -> dict | None:
    return settings.block("density")["support"]


def runs(settings: Settings) -> Iterator[Runs]:
    """The runs on every language; their weights are kept for embeddings."""
    asked = block(settings)
    if asked is None:
        return
    keeps = frozenset({TRACE, WEIGHTS})
    for language in asked["languages"]:
        yield Runs(
            asked["model"],
            language,
            asked["size"],
            seeds=settings.seeds,
            recipe=asked["recipe"],
            keeps=keeps,
        )


def mistakes(settings: Settings) -> Iterator[Mistake]:
    asked, key = block(settings), "density/support"
    if asked is None:
        return
    yield from of_one_study(settings, key, asked, asked["size"], NEEDS)
    if (k := settings.block("density")["neighbours"]) > asked["size"]:
        yield Mistake(
            "density/neighbours",
            f"{k} is more than the {asked['size']} training strings of {key}; lower it",
        )
