"""The section `atlas`: which cheap measure to trust, for which question, at which price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from palimpsest.atlas import kinds
from palimpsest.atlas.interventions import FORETOLD, INTERVENTIONS
from palimpsest.configuration.checks import (
    texts,
    too_many_strings,
    unknown_languages,
    unknown_models,
    without_probabilities,
)
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.paths import CHECKPOINTS as CHECKPOINTS_PATH
from palimpsest.paths import WEIGHTS as WEIGHTS_PATH
from palimpsest.paths import fill
from palimpsest.regimes import REMOVALS, REMOVALS_AGAIN, Removals
from palimpsest.requests import CHECKPOINTS, TOKENS, TRACE, WEIGHTS, Runs, Unfinished, paths_of
from palimpsest.section import Section, queries_of, query_of

NEEDS = "the atlas"
ATTRIBUTION = "palimpsest.atlas.attribution:attribution"
LAST_PASS = "palimpsest.atlas.last_pass:last_pass"
REMOVED_TOKENS = "palimpsest.atlas.removed_tokens:removed_tokens"
OF_REMOVALS = ("base", REMOVALS, REMOVALS_AGAIN)  # variants, in the order of this query's weights
EARLIER, LATER = "earlier", "later"
CHANGED = {"neighbours": 8, "prefixes": 7}  # for each string, as in the audit by default


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
        of_removals = {WEIGHTS} if has_fields(settings, runs.corpus) else set()
        kept |= {WEIGHTS} if block["last_pass"] else of_removals
        yield replace(runs, keeps=frozenset({TRACE, TOKENS} | kept))
        for again in (False, True):
            regime = Removals(n, block["halves"], again)
            yield replace(runs, regime=regime, keeps=frozenset({TRACE} | of_removals))
    yield from runs_of(settings, EARLIER)
    yield from runs_of(settings, LATER)


def has_fields(settings: Settings, language: str) -> bool:
    """Whether the exact values of a language's strings are taken apart by fields."""
    corpus = settings.corpus(language)
    known = corpus.has_probabilities and corpus.is_text
    return settings.block("atlas")["fields"] and known and bool(corpus.grammar.fields)


def of_gradients(settings: Settings) -> dict:
    """The values of the query of gradients."""
    return {"methods": settings.block("atlas")["gradients"]}


def own_first(seeds: Sequence[int], seed: int) -> list[int]:
    """The seeds of the models that pass over the strings of a run: its own, then the others."""
    return [seed, *(other for other in seeds if other != seed)]


def of_last_pass(model_seeds: Sequence[int]) -> dict:
    """The values of the query of the last pass, by models of these seeds."""
    return {"model_seeds": model_seeds, **CHANGED}


def outputs(settings: Settings) -> Iterator[str]:
    block = settings.block("atlas")
    left_out = set() if block["gradients"] else set(kinds.OF_GRADIENTS)
    left_out |= set() if block["last_pass"] else {kinds.LAST_PASS}
    made = (kind for kind in kinds.OF_CELLS if kind not in left_out)
    yield from paths_of(cells(settings), *(kind.path for kind in made))
    with_fields = (runs for runs in cells(settings) if has_fields(settings, runs.corpus))
    yield from paths_of(with_fields, *(kind.path for kind in kinds.OF_FIELDS))
    if settings.block("atlas")["models"]:
        for language in settings.block("atlas")["languages"]:
            yield fill(kinds.CONFORMAL.path, language=language)
        yield kinds.STRINGS_PAGE
    yield from paths_of(runs_of(settings, LATER), *(kind.path for kind in kinds.OF_FORETELLING))


def unfinished(settings: Settings) -> Iterator[Unfinished]:
    if settings.block("atlas")["gradients"]:
        values = of_gradients(settings)
        yield from queries_of(settings, cells(settings), ATTRIBUTION, values, CHECKPOINTS_PATH)
    if settings.block("atlas")["last_pass"]:
        for runs in cells(settings):
            yield from _last_passes(settings, runs)
    for runs in cells(settings):
        if has_fields(settings, runs.corpus):
            yield from _removed_tokens(settings, runs)


def _removed_tokens(settings: Settings, runs: Runs) -> Iterator[Unfinished]:
    of_variants = (runs.paths(WEIGHTS_PATH, variant=variant) for variant in OF_REMOVALS)
    for dataset, *weights in zip(runs.datasets, *of_variants, strict=True):
        yield query_of(settings, runs, dataset, weights, REMOVED_TOKENS, {})


def _last_passes(settings: Settings, runs: Runs) -> Iterator[Unfinished]:
    for seed, dataset in zip(runs.seeds, runs.datasets, strict=True):
        seeds = own_first(runs.seeds, seed)
        weights = replace(runs, seeds=tuple(seeds)).paths(WEIGHTS_PATH)
        yield query_of(settings, runs, dataset, weights, LAST_PASS, of_last_pass(seeds))


def limits(settings: Settings) -> Iterator[tuple[str, str]]:
    """Keys by which contenders are left out."""
    block = settings.block("atlas")
    if not block["models"]:
        return
    if not block["gradients"]:
        yield "atlas/gradients", "is empty, so TracIn, EK-FAC and TRAK are left out"
    if not block["last_pass"]:
        yield (
            "atlas/last_pass",
            "is false, so Min-K%++, discoverable extraction, the density of hidden states and "
            "attacks with changed strings or reference models are left out",
        )
    elif len(settings.seeds) < 2:
        yield (
            "seeds",
            "has one, and the references of attacks are models of other seeds, so these attacks "
            "are left out of the atlas",
        )


def mistakes(settings: Settings) -> Iterator[Mistake]:
    block = settings.block("atlas")
    yield from unknown_models(settings, "atlas/models", block["models"])
    yield from unknown_languages(settings, "atlas/languages", block["languages"])
    yield from without_probabilities(settings, "atlas/languages", block["languages"], NEEDS)
    yield from too_many_strings(settings, "atlas/sizes", block["sizes"], block["languages"])
    yield from _mistakes_of_full_models(settings, block)
    if block["foretelling"] is not None:
        yield from _mistakes_of_foretelling(settings, block["foretelling"])


def _mistakes_of_full_models(settings: Settings, block: dict) -> Iterator[Mistake]:
    """What is out of reach for a full model: a training of one takes minutes, not a second."""
    full = [model for model in block["models"] if not settings.is_twin(model)]
    if not full:
        return
    if block["strings"] == "all":
        place = block["models"].index(full[0])
        yield Mistake(
            f"atlas/models[{place}]",
            f"{full[0]!r} is a full model and would be trained twice without every single training "
            f"string; give atlas/strings a number, such as 16, or name its twin: {full[0]}-twin",
        )
    if block["gradients"]:
        yield Mistake(
            "atlas/gradients",
            f"are of twins only, because a gradient of {full[0]!r} is as large as the model; "
            "give [], or take it out of atlas/models",
        )
    if any(has_fields(settings, language) for language in block["languages"]):
        yield Mistake(
            "atlas/fields",
            f"keeps the weights of every training, and those of {full[0]!r} are large; give false, "
            "or take it out of atlas/models",
        )


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
    limits=limits,
    interventions=INTERVENTIONS,
    judged=(kinds.FRONTIER, kinds.CONFORMAL, kinds.FORETELLING),
    reported=(kinds.ATLAS, kinds.FORETELLING),
    page=kinds.STRINGS_PAGE,
    opens=(kinds.ATLAS.path,),
)
