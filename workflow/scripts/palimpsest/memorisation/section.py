"""The section `memorisation`: how much of their training strings models memorised.

Source: Learning Without Memorizing Considered Infeasible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from palimpsest.configuration.checks import (
    too_many_strings,
    unknown_languages,
    unknown_models,
    without_probabilities,
)
from palimpsest.configuration.layers import PartOf
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import GRID, Settings
from palimpsest.memorisation import kinds
from palimpsest.memorisation.figures import FIGURES
from palimpsest.memorisation.interventions import INTERVENTIONS
from palimpsest.memorisation.studies import STUDIES, requested
from palimpsest.memorisation.study import NEEDS, Study
from palimpsest.models.table import TWIN
from palimpsest.requests import Runs, Unfinished, merged, paths_of
from palimpsest.section import Part, Section

# The rules of the measures where the section's block is null; other sections use them, too
DEFAULTS = {
    "start": "after_last_miss",
    "loss_threshold": 0.2,
    "accuracy_threshold": 0.95,
    "stand_in_gap": 0.5,
}
BLOCKS = "memorisation/studies"
ONLY = "only"  # a key among the studies: the names of the studies to run
CHOSEN = f"{BLOCKS}/{ONLY}"
MEASURED = (kinds.STARTS, kinds.SCORES, kinds.TRAINING_SET, kinds.LEARNING, kinds.AVERAGES)


def measured(settings: Settings) -> list[Runs]:
    """Runs whose memorisation is measured: the runs of the grid, and the runs that studies add."""
    config = settings.config
    grid = [
        Runs(model, language, size, seeds=settings.seeds, recipe=config["recipe"])
        for model in config["models"]
        for language in config["languages"]
        for size in config["sizes"]
    ]
    added = [runs for study in requested(settings) for runs in study.measured(settings)]
    return merged([*grid, *added])


def requests(settings: Settings) -> Iterator[Runs]:
    yield from measured(settings)
    for study in requested(settings):
        yield from study.retrained(settings)


def unfinished(settings: Settings) -> Iterator[Unfinished]:
    for study in requested(settings):
        yield from study.queries(settings)


def n_targets(settings: Settings) -> int:
    """Number of target strings of a language: those that the study `disagreement` leaves out."""
    block = STUDIES["disagreement"].block(settings)
    return block["targets"] if block else 1


def outputs(settings: Settings) -> Iterator[str]:
    yield from paths_of(measured(settings), *(kind.path for kind in MEASURED))
    for study in requested(settings):
        yield from study.outputs(settings)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    config = settings.config
    yield from unknown_models(settings, "models", config["models"])
    yield from unknown_languages(settings, "languages", config["languages"])
    yield from without_probabilities(settings, "languages", config["languages"], NEEDS)
    yield from too_many_strings(settings, "sizes", config["sizes"], config["languages"])
    studies = settings.given["memorisation"]["studies"] or {}
    for place, name in enumerate(studies.get(ONLY) or ()):
        if studies.get(name) is None:
            yield Mistake(
                f"{CHOSEN}[{place}]",
                f"the study {name} has no settings here; write its block as well, or leave it out",
            )


def with_studies(schema: dict) -> dict:
    several = {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}}
    choice = {"oneOf": [{"const": "all"}, several]}
    common = {
        "models": {"description": "Models of the study; `all`: the grid's models.", **choice},
        "languages": {
            "description": "Languages of the study; `all`: the grid's languages.",
            **choice,
        },
    }
    recipe = {
        "description": f"Recipe of the study's runs; `{GRID}`: that of the grid's runs.",
        "type": "string",
    }
    common = {**common, "recipe": recipe}
    blocks = {
        study.name: {
            "description": study.description,
            "type": ["object", "null"],
            "additionalProperties": False,
            "required": [*common, *study.keys],
            "properties": {**common, **study.keys},
        }
        for study in STUDIES.values()
    }
    only = {
        "description": "The studies to run, of those that have a block; null for all of them.",
        "title": f"null, or a list of names of studies: {', '.join(STUDIES)}",
        "type": ["array", "null"],
        "uniqueItems": True,
        "items": {"enum": list(STUDIES)},
    }
    studies = {**schema["properties"]["studies"], "properties": {**blocks, ONLY: only}}
    return {**schema, "properties": {**schema["properties"], "studies": studies}}


def files_of(study: Study) -> tuple[str, ...]:
    """The beginnings of the paths of a study's table and figures."""
    figures = (figure.beginning for figure in FIGURES if figure.chapter == study.name)
    return study.kind.path.split("{")[0], *figures


def _if_asked(study: Study, part: Callable[[Settings], Iterable], settings: Settings) -> Iterable:
    return () if study.block(settings) is None else part(settings)


SECTION = Section(
    name="memorisation",
    title="What models memorised",
    answers=(
        "Memorisation is unavoidable when a language is learned optimally.",
        "Memorisation is unavoidable when a language is learned optimally (by retraining).",
    ),
    interventions=INTERVENTIONS,
    n_targets=n_targets,
    requests=requests,
    outputs=outputs,
    unfinished=unfinished,
    mistakes=mistakes,
    schema=with_studies,
    parts=tuple(
        Part(
            name=study.name,
            key=f"{BLOCKS}/{study.name}",
            mistakes=partial(_if_asked, study, study.mistakes),
            requests=partial(_if_asked, study, study.requests),
            uses=study.uses,
            files=files_of(study),
            chosen_in=f"{BLOCKS}/{ONLY}",
        )
        for study in STUDIES.values()
    ),
    follows=(
        # The study retrains models for every string, which is too expensive for a full model.
        PartOf(f"{BLOCKS}/exact/models", "models", TWIN, CHOSEN),
        PartOf(f"{BLOCKS}/exact/seeds", "seeds", among=CHOSEN),
        PartOf(f"{BLOCKS}/*/models", "models", among=CHOSEN),
        PartOf(f"{BLOCKS}/*/languages", "languages", among=CHOSEN),
    ),
    kinds="palimpsest.memorisation.studies:KINDS",
    facts=lambda settings: {"start_rule": settings.block("memorisation")["start"]},
    judged=(
        *(study.kind for study in STUDIES.values()),
        kinds.AGREEMENT,
        kinds.LEAVE_ONE_OUT,
        kinds.APPROXIMATION,
    ),
    reported=(
        STUDIES["tradeoff"].kind,
        STUDIES["exposure"].kind,
        kinds.AGREEMENT,
        kinds.APPROXIMATION,
        kinds.LEARNING,
    ),
    opens=("results/studies/tradeoff/{language}.parquet", kinds.SCORES.path),
)
