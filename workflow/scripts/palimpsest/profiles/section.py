"""The section `profiles`: the effect of training on strings, estimated from one run.

Source: Causal Estimation of Memorisation Profiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from palimpsest.configuration.checks import too_many_strings, unknown_languages, unknown_models
from palimpsest.configuration.layers import PartOf
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.errors import nearest
from palimpsest.profiles import dilution, kinds, panel_checkpoints, panel_files
from palimpsest.profiles.interventions import INTERVENTIONS, STREAM, stream_without
from palimpsest.regimes import OnePass
from palimpsest.requests import WEIGHTS, Runs, Unfinished, paths_of
from palimpsest.section import Asked, Section, queries_of

OF_MODEL = (kinds.PROFILE, kinds.PERSISTENCE, kinds.POOLED_PROFILE, kinds.POOLED_PERSISTENCE)
OF_RETRAINING = (kinds.EXACT_PROFILE, kinds.ESTIMATOR_ERRORS)
OF_FINAL_MODEL = (kinds.CONTINUATIONS, kinds.INFLUENCES)
QUESTIONS = "palimpsest.profiles.final_models:answers"
FINAL_MODEL_MANIFEST = f"{kinds.OF_ONE_SEED}/manifest.json"
REPLICATES = "stream_replicates"  # names the rule that trains them
OF_DILUTION = (kinds.DILUTION, kinds.DILUTION_EFFECTS)
OF_STUDY = (
    kinds.PANELS_PROFILE,
    kinds.PANELS_PERSISTENCE,
    kinds.PANELS_EFFECTS,
    kinds.PANELS_CORRELATION,
)


def streams(settings: Settings) -> list[Runs]:
    block = settings.block("profiles")
    size = block["cohorts"] * block["cohort_size"]
    length = OnePass(block["cohorts"], measured_strings(block, block["cohorts"]))
    return [
        Runs(model, language, size, STREAM, settings.seeds, block["recipe"], length, job=STREAM)
        for language in block["languages"]
        for model in block["models"]
    ]


def contrasting(settings: Settings) -> list[Runs]:
    """The streams once more, in a recipe with another learning rate."""
    recipe = settings.block("profiles")["contrast_recipe"]
    return [] if recipe is None else [replace(runs, recipe=recipe) for runs in streams(settings)]


def measured_strings(block: dict, cohorts: int) -> int:
    """Number of measured strings of a stream: of `cohorts` macro-batches and of validation."""
    return cohorts * block["panel"] + block["validation"]


def exact(settings: Settings) -> list[Runs]:
    """The streams that are also trained without each of their macro-batches."""
    block = settings.block("profiles")
    asked = block["exact"] or {"models": [], "seeds": []}
    return [
        replace(runs, seeds=tuple(asked["seeds"]))
        for runs in streams(settings)
        if runs.model in asked["models"]
    ]


def requests(settings: Settings) -> Iterator[Runs]:
    """The streams, the same without each macro-batch, and replicates of both."""
    yield from streams(settings)
    yield from contrasting(settings)
    block = settings.block("profiles")
    numbers = range(1, block["cohorts"] + 1)
    length = OnePass(block["cohorts"], measured_strings(block, 1))
    for runs in exact(settings):
        without = [replace(runs.on(stream_without(n)), regime=length) for n in numbers]
        yield from without
        if block["notions"] is not None:
            yield replace(runs, keeps=runs.keeps | {WEIGHTS})
            for each in (runs, *without):
                at_end = replace(each.regime, every=block["cohorts"])
                for number in range(block["notions"]["replicates"]):
                    regime = replace(at_end, replicate=number)
                    yield replace(each, regime=regime, job="replicates", label=REPLICATES)
    yield from dilution.streams(settings)


def unfinished(settings: Settings) -> Iterator[Unfinished]:
    if settings.block("profiles")["notions"] is None:
        return
    yield from queries_of(settings, exact(settings), QUESTIONS)


def outputs(settings: Settings) -> Iterator[str]:
    block = settings.block("profiles")
    yield from paths_of(streams(settings), *(kind.path for kind in OF_MODEL))
    yield from paths_of(contrasting(settings), kinds.PROFILE_SCHEDULES.path)
    yield from paths_of(exact(settings), *(kind.path for kind in OF_RETRAINING))
    if block["notions"] is not None:
        of_models = (kind.path for kind in (*OF_FINAL_MODEL, kinds.NOTIONS))
        yield from paths_of(exact(settings), *of_models, FINAL_MODEL_MANIFEST)
    if len(block["models"]) > 1:
        yield from paths_of(streams(settings), kinds.PROFILE_CORRELATION.path)
    yield from paths_of(dilution.streams(settings), *(kind.path for kind in OF_DILUTION))
    for name, panel in panel_files.panels(block).items():
        if panel.measured:
            yield kinds.MEASURED_PANEL.path.format(language=name)
        for kind in (kinds.PANEL_PROFILE, kinds.PANEL_PERSISTENCE):
            yield kind.path.format(language=name)
    if panel_files.are_a_study(block):
        yield from (kind.path.format(language=kinds.STUDY) for kind in OF_STUDY)


def asked(settings: Settings) -> Iterator[Asked]:
    """The checkpoints under which the strings of panels are measured."""
    for name, panel in panel_files.panels_of(settings).items():
        if panel.measured:
            file = kinds.MEASURED_PANEL.path.format(language=name)
            tokens = panel_checkpoints.n_tokens(panel.measured)
            for model in panel.measured.checkpoints.values():
                yield Asked(model, tokens, file)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    block = settings.block("profiles")
    yield from unknown_models(settings, "profiles/models", block["models"])
    yield from unknown_languages(settings, "profiles/languages", block["languages"])
    # The strings of a stream are distinct; one more macro-batch takes the place of another.
    needed = (block["cohorts"] + 1) * block["cohort_size"] + block["validation"]
    yield from too_many_strings(settings, "profiles/cohorts", [needed], block["languages"])
    if block["panel"] > block["cohort_size"]:
        yield Mistake(
            "profiles/panel",
            f"{block['panel']} strings are more than a macro-batch has, which is "
            f"profiles/cohort_size, {block['cohort_size']}",
        )
    if block["validation"] < 2 * block["panel"]:
        yield Mistake(
            "profiles/validation",
            f"{block['validation']} strings are too few: half of them are the placebo, which needs "
            f"at least one cohort of profiles/panel strings; raise it to {2 * block['panel']}",
        )
    if block["contrast_recipe"] is not None:
        yield from _same_rates(settings, block)
    yield from _exact(settings, block)
    yield from _notions(settings, block)
    yield from dilution.mistakes(settings)
    yield from panel_files.mistakes(settings)


def _same_rates(settings: Settings, block: dict) -> Iterator[Mistake]:
    names = block["recipe"], block["contrast_recipe"]
    rates = [[settings.recipe(name)[key] for key in ("schedule", "warmup_ratio")] for name in names]
    if rates[0] == rates[1]:
        yield Mistake(
            "profiles/contrast_recipe",
            f"{names[1]} has the learning rates of {names[0]}, which is profiles/recipe; name one "
            "with another schedule or warmup_ratio",
        )


def _exact(settings: Settings, block: dict) -> Iterator[Mistake]:
    """Models and seeds of the exact truth for which no estimate exists."""
    asked = block["exact"] or {"models": [], "seeds": []}
    for name, known in (("models", block["models"]), ("seeds", settings.seeds)):
        where = "profiles/models" if name == "models" else "seeds"
        for place, value in enumerate(asked[name]):
            if value not in known:
                yield Mistake(
                    f"profiles/exact/{name}[{place}]",
                    f"{value} is not in {where}, so there is no estimate to compare with; choose "
                    f"from {', '.join(map(str, known))}{nearest(str(value), map(str, known))}",
                )


def _notions(settings: Settings, block: dict) -> Iterator[Mistake]:
    """Models that are too large for influence functions."""
    if block["notions"] is None or block["exact"] is None:
        return
    for name in block["exact"]["models"]:
        if not settings.is_twin(name):
            yield Mistake(
                "profiles/notions",
                f"{name} in profiles/exact/models is too large for influence functions, which are "
                "for twins; take it out there, or set this key to null",
            )


SECTION = Section(
    name="profiles",
    title="When strings are memorised and forgotten",
    requests=requests,
    outputs=outputs,
    mistakes=mistakes,
    unfinished=unfinished,
    asked=asked,
    judged=(
        kinds.PROFILE,
        kinds.PROFILE_CORRELATION,
        kinds.ESTIMATOR_ERRORS,
        kinds.NOTIONS,
        kinds.DILUTION,
        kinds.PANELS_EFFECTS,
        kinds.PANELS_CORRELATION,
        kinds.PROFILE_SCHEDULES,
    ),
    reported=(
        kinds.PROFILE,
        kinds.PERSISTENCE,
        kinds.ESTIMATOR_ERRORS,
        kinds.PROFILE_CORRELATION,
        kinds.NOTIONS,
        kinds.DILUTION,
        kinds.DILUTION_EFFECTS,
        kinds.PANELS_EFFECTS,
        kinds.PANEL_PROFILE,
        kinds.PANEL_PERSISTENCE,
    ),
    follows=(
        PartOf("profiles/exact/models", "profiles/models"),
        PartOf("profiles/exact/seeds", "seeds"),
    ),
    interventions=INTERVENTIONS,
    opens=(kinds.PANELS_PROFILE.path, kinds.PANEL_PROFILE.path, kinds.PROFILE.path),
)
