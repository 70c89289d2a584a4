"""The section `information`: does memorisation show in the activations of neurons?

Source: the paper on information measures of neurons.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from palimpsest.configuration.checks import of_one_study
from palimpsest.configuration.layers import PartOf
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError
from palimpsest.information import activation_files, finetuned, kinds
from palimpsest.information.answers import answers
from palimpsest.information.encoders import study as encoders
from palimpsest.information.interventions import (
    INTERVENTIONS,
    MARKED,
    REPEATED,
    SHUFFLED,
    marked,
    percent_marked,
    shuffled,
)
from palimpsest.information.kinds import LAST
from palimpsest.models.sites import MLP
from palimpsest.models.table import resolve
from palimpsest.paths import CHECKPOINTS
from palimpsest.requests import TRACE, WEIGHTS, Runs, Unfinished, paths_of
from palimpsest.section import Asked, Section, queries_of

MANIFEST = f"{kinds.RUN}/manifest.json"
SITES = ("layers", "places", "positions")  # keys of the block: which activations are read
ALL = "all"
READING = "palimpsest.information.activations:activations"
MEASURING_LAYERS = "palimpsest.information.layers:layers"
MEASURING = ("bins", "neighbours", "pairs")  # and how neurons are measured
WIDEST = 4  # the widest feed-forward layer of twins, in widths of the model
NEEDS = "what decides the last symbol of its strings"


def seeds(settings: Settings) -> tuple[int, ...]:
    """The seeds of the section: those of the experiment, or some of them."""
    asked = settings.block("information")["seeds"]
    return settings.seeds if asked == ALL else tuple(asked)


def variants(settings: Settings) -> list[str]:
    """The variants that every model is trained on: markers, then shuffled answers."""
    block = settings.block("information")
    return [
        *(marked(percent(alpha)) for alpha in block["alphas"]),
        *(shuffled(percent(beta)) for beta in block["betas"]),
    ]


def percent(share: float) -> int:
    return round(100 * share)


def requests(settings: Settings) -> Iterator[Runs]:
    """The runs on markers and shuffled answers, and those that are looked at after every epoch."""
    yield from intervened(settings)
    yield from finetuned.runs(settings, seeds(settings))


def intervened(settings: Settings) -> Iterator[Runs]:
    """A run for every model, language and variant; its weights are kept for activations."""
    block, keeps = settings.block("information"), frozenset({TRACE, WEIGHTS})
    for model in block["models"]:
        for language in block["languages"]:
            for variant in variants(settings):
                names = model, language, block["size"], variant
                job = MARKED if percent_marked(variant) is not None else SHUFFLED
                yield Runs(*names, seeds(settings), block["recipe"], keeps=keeps, job=job)


def outputs(settings: Settings) -> Iterator[str]:
    of_runs = (kind.path for kind in (*kinds.OF_MODEL, *kinds.OF_NEURONS))
    yield from paths_of(intervened(settings), *of_runs, MANIFEST)
    yield from paths_of(intervened(settings), kinds.INFORMATION.path)
    runs = finetuned.runs(settings, seeds(settings))
    yield from paths_of(runs, kinds.LAYERS.path, MANIFEST)
    yield from paths_of((one for one in runs if one.variant == REPEATED), kinds.EPOCHS.path)
    for group in activation_files.groups(settings.block("information")):
        for kind in kinds.OF_GIVEN:
            yield kind.path.format(language=group)
    yield from encoders.outputs(settings, seeds(settings))


def sites(settings: Settings) -> dict:
    """The values of the block that say which activations are read."""
    block = settings.block("information")
    return {key: block[key] for key in SITES}


def of_layers(settings: Settings) -> dict:
    """The values of the block that say which activations are read, and how they are measured."""
    block = settings.block("information")
    return {**sites(settings), **{key: block[key] for key in MEASURING}}


def unfinished(settings: Settings) -> Iterator[Unfinished]:
    yield from queries_of(settings, intervened(settings), READING, sites(settings))
    runs, values = finetuned.runs(settings, seeds(settings)), of_layers(settings)
    yield from queries_of(settings, runs, MEASURING_LAYERS, values, CHECKPOINTS)


def asked(settings: Settings) -> Iterator[Asked]:
    """The encoders that studies fine-tune, one for each seed and variant."""
    yield from encoders.asked(settings, seeds(settings))


def n_layers(settings: Settings, model: str) -> int:
    row, scale = resolve(model, settings.models)
    return row.twin_layers if scale == "twin" else row.layers


def mistakes(settings: Settings) -> Iterator[Mistake]:
    block = settings.block("information")
    needed = block["size"] + block["tests"]
    yield from of_one_study(settings, "information", block, needed, NEEDS)
    yield from _shares(block)
    yield from _seeds(settings, block)
    yield from _answers(settings, block)
    yield from _layers(settings, block)
    yield from _samples(settings, block)
    yield from _judged_site(block)
    yield from finetuned.mistakes(settings)
    yield from activation_files.mistakes(settings)
    yield from encoders.mistakes(settings)


def _shares(block: dict) -> Iterator[Mistake]:
    """Shares that are no whole percents, and none at all."""
    for name in ("alphas", "betas"):
        for place, share in enumerate(block[name]):
            if not math.isclose(100 * share, percent(share), abs_tol=1e-9):
                yield Mistake(
                    f"information/{name}[{place}]",
                    f"{share} is not a whole percent, and variants are named by their percent; "
                    f"set it to {percent(share) / 100}",
                )
    if block["models"] and not block["alphas"] and not block["betas"]:
        yield Mistake(
            "information/alphas",
            "there is nothing to train without alphas and without betas; name some, or set the "
            "block information to null",
        )


def _seeds(settings: Settings, block: dict) -> Iterator[Mistake]:
    """Seeds that the experiment does not have."""
    if block["seeds"] == ALL:
        return
    for place, seed in enumerate(block["seeds"]):
        if seed not in settings.seeds:
            known = ", ".join(map(str, settings.seeds))
            yield Mistake(
                f"information/seeds[{place}]",
                f"{seed} is not among the seeds of the experiment: {known}; choose one of them, or "
                "add it to the key seeds",
            )


def _answers(settings: Settings, block: dict) -> Iterator[Mistake]:
    """Languages whose strings have no answer, and numbers of tests that cannot be divided."""
    for place, language in enumerate(block["languages"]):
        try:
            n = len(answers(settings.corpus(language).grammar))
        except UserError as error:
            yield Mistake(f"information/languages[{place}]", str(error))
            continue
        if block["tests"] % n**2:
            fewer = block["tests"] // n**2 * n**2
            near = f"{fewer} or {fewer + n**2}" if fewer else n**2
            yield Mistake(
                "information/tests",
                f"{block['tests']} strings cannot be evenly divided among the {n} answers and {n} "
                f"markers of {language}; choose a multiple of {n**2}, such as {near}",
            )


def _layers(settings: Settings, block: dict) -> Iterator[Mistake]:
    """Layers that a model does not have."""
    if block["layers"] == ALL:
        return
    for place, layer in enumerate(block["layers"]):
        for model in [*block["models"], *(block["finetuned"] or {"models": []})["models"]]:
            if layer >= (n := n_layers(settings, model)):
                known = ", ".join(map(str, range(n)))
                yield Mistake(
                    f"information/layers[{place}]",
                    f"{model} has no layer {layer}; its layers are {known}: choose among them, or "
                    "set the key to all",
                )


def _judged_site(block: dict) -> Iterator[Mistake]:
    """Sites without that of the claims: all models would be trained, and nothing judged."""
    for key, judged in (("places", MLP), ("positions", LAST)):
        if block["models"] and judged not in block[key]:
            yield Mistake(
                f"information/{key}",
                f"{judged} is not among {', '.join(block[key])}, and the claims are about it, so "
                f"nothing would be judged; add {judged}",
            )


def _samples(settings: Settings, block: dict) -> Iterator[Mistake]:
    """Too few strings for the nearest neighbours, and more pairs than there are."""
    if block["neighbours"] >= block["tests"]:
        yield Mistake(
            "information/neighbours",
            f"a string has only {block['tests'] - 1} neighbours among {block['tests']} evaluated "
            f"strings, and {block['neighbours']} are asked for; lower it, or raise "
            "information/tests",
        )
    # The table of models does not say how wide the feed-forward layers of full models are.
    models = block["models"]
    if block["pairs"] == ALL or not models or not all(map(settings.is_twin, models)):
        return
    widths = {model: resolve(model, settings.models)[0].twin_hidden for model in models}
    model = max(widths, key=widths.get)
    n = widths[model] * WIDEST
    if block["pairs"] > (most := n * (n - 1) // 2):
        yield Mistake(
            "information/pairs",
            f"{block['pairs']:,} are more than the {most:,} pairs of the {n} neurons that a site "
            f"of {model} has at most; lower it, or set it to all",
        )


SECTION = Section(
    name="information",
    title="Memorisation in the activations of neurons",
    answers=(
        "Mutual information falls with example-level memorisation.",
        "Mutual information rises with heuristic memorisation.",
        "Mutual information of encoders falls with example-level memorisation.",
        "Mutual information of encoders rises with heuristic memorisation.",
    ),
    requests=requests,
    outputs=outputs,
    mistakes=mistakes,
    unfinished=unfinished,
    asked=asked,
    judged=(kinds.INFORMATION, kinds.ENCODERS),
    reported=(
        kinds.INFORMATION,
        kinds.EPOCHS,
        kinds.GIVEN_LAYERS,
        kinds.GIVEN_ASSOCIATIONS,
        kinds.ENCODERS,
    ),
    follows=(PartOf("information/seeds", "seeds"),),
    interventions=INTERVENTIONS,
    opens=(kinds.GIVEN_NEURONS.path, kinds.ENCODERS.path, kinds.INFORMATION.path),
)
