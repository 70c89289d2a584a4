"""The section `atlas`: which cheap measure to trust, for which question, at which price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from palimpsest.atlas import kinds
from palimpsest.atlas.interventions import FORETOLD, INTERVENTIONS
from palimpsest.configuration.checks import (
    texts,
    too_many_strings,
    trained_for_each_string,
    unknown_languages,
    unknown_models,
    without_probabilities,
)
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.paths import CHECKPOINTS as CHECKPOINTS_PATH
from palimpsest.paths import fill
from palimpsest.regimes import Removals
from palimpsest.requests import CHECKPOINTS, TOKENS, TRACE, Runs, Unfinished, paths_of
from palimpsest.section import Section, queries_of

NEEDS = "the atlas"
ATTRIBUTION = "palimpsest.atlas.attribution:attribution"
EARLIER, LATER = "earlier", "later"


def cells(settings: Settings) -> list[Runs]:
    """The runs on all strings; each model, language and size is a cell."""
    block = settings.block("atlas")
    return [
        Runs(model, language, size, seeds=settings.seeds, recipe=block["recipe"])
        for model in block["models"]
        for language in block["languages"]
        for size in block["sizes"]
    ]


def runs_of(settings: Settings, which: str) -> list[Runs]:
    """The `earlier` or the `later` runs of foretelling; [] if nothing is to be foretold."""
    foretelling = settings.block("atlas")["foretelling"]
    if foretelling is None:
        return []
    block, recipe = foretelling[which], settings.block("atlas")["recipe"]
    # A job of their own, which can wait for the predictions
    waits = {"intervention": FORETOLD, "job": FORETOLD} if which == LATER else {}
    return [
        Runs(model, language, size, seeds=tuple(block["seeds"]), recipe=recipe, **waits)
        for model in block["models"]
        for language in block["languages"]
        for size in block["sizes"]
    ]


def requests(settings: Settings) -> Iterator[Runs]:
    """Each cell's training on all strings, and its removals, twice; and what is foretold."""
    block = settings.block("atlas")
    n = None if block["strings"] == "all" else block["strings"]
    for runs in cells(settings):
        kept = {CHECKPOINTS} if block["gradients"] else set()
        yield replace(runs, keeps=frozenset({TRACE, TOKENS} | kept))
        for again in (False, True):
            yield replace(runs, regime=Removals(n, block["halves"], again))
    yield from runs_of(settings, EARLIER)
    yield from runs_of(settings, LATER)


def of_gradients(settings: Settings) -> dict:
    """The values of the query of gradients."""
    return {"methods": settings.block("atlas")["gradients"]}


def outputs(settings: Settings) -> Iterator[str]:
    has_gradients = bool(settings.block("atlas")["gradients"])
    made = (kind for kind in kinds.OF_CELLS if has_gradients or kind not in kinds.OF_GRADIENTS)
    yield from paths_of(cells(settings), *(kind.path for kind in made))
    if settings.block("atlas")["models"]:
        for language in settings.block("atlas")["languages"]:
            yield fill(kinds.CONFORMAL.path, language=language)
        yield kinds.STRINGS_PAGE
    yield from paths_of(runs_of(settings, LATER), *(kind.path for kind in kinds.OF_FORETELLING))


def unfinished(settings: Settings) -> Iterator[Unfinished]:
    if settings.block("atlas")["gradients"]:
        values = of_gradients(settings)
        yield from queries_of(settings, cells(settings), ATTRIBUTION, values, CHECKPOINTS_PATH)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    block = settings.block("atlas")
    yield from unknown_models(settings, "atlas/models", block["models"])
    yield from unknown_languages(settings, "atlas/languages", block["languages"])
    yield from without_probabilities(settings, "atlas/languages", block["languages"], NEEDS)
    yield from too_many_strings(settings, "atlas/sizes", block["sizes"], block["languages"])
    yield from trained_for_each_string(settings, "atlas/models", block["models"])
    if block["foretelling"] is not None:
        yield from _mistakes_of_foretelling(settings, block["foretelling"])


def _mistakes_of_foretelling(settings: Settings, block: dict) -> Iterator[Mistake]:
    for which in (EARLIER, LATER):
        runs, key = block[which], f"atlas/foretelling/{which}"
        yield from unknown_models(settings, f"{key}/models", runs["models"])
        yield from unknown_languages(settings, f"{key}/languages", runs["languages"])
        for check in (without_probabilities, texts):
            yield from check(settings, f"{key}/languages", runs["languages"], "foretelling")
        yield from too_many_strings(settings, f"{key}/sizes", runs["sizes"], runs["languages"])
    known = _names_of([*runs_of(settings, EARLIER), *cells(settings)])
    if both := known & _names_of(runs_of(settings, LATER)):
        run = ", ".join(map(str, min(both)))
        yield Mistake(
            "atlas/foretelling/later",
            f"has a run that is also an earlier one, or a cell's: {run}; what is known cannot be "
            "foretold: give later runs other seeds, models or languages",
        )


def _names_of(requests: list[Runs]) -> set[tuple[str, str, int, int]]:
    return {(runs.model, runs.corpus, runs.size, seed) for runs in requests for seed in runs.seeds}


SECTION = Section(
    name="atlas",
    title="Which cheap measure to trust",
    requests=requests,
    outputs=outputs,
    mistakes=mistakes,
    unfinished=unfinished,
    interventions=INTERVENTIONS,
    judged=(kinds.FRONTIER, kinds.CONFORMAL, kinds.FORETELLING),
    reported=(kinds.ATLAS, kinds.FORETELLING),
    page=kinds.STRINGS_PAGE,
)
