"""The section `density`: does a model do better where its training data is dense?

Source: LMD3: Language Model Data Density Dependence.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from palimpsest.configuration.checks import id_of, of_one_study
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.named_files import errors_of
from palimpsest.configuration.settings import Settings
from palimpsest.density import kinds, leakage, texts
from palimpsest.density.interventions import INTERVENTIONS, NO_LEAK, leaked
from palimpsest.requests import TRACE, WEIGHTS, Runs, Unfinished, paths_of
from palimpsest.section import Asked, Section, queries_of
from palimpsest.tables.user_files import AT_ONCE

OF_RUN = (kinds.DENSITY, kinds.NEIGHBOURS)
MANIFEST = f"{kinds.RUN}/manifest.json"
EMBEDDING = "palimpsest.density.embedding:embeddings"
NEEDS = "the comparison of densities with exact probabilities"


def requests(settings: Settings) -> Iterator[Runs]:
    """The runs of the factorial, those without one production, and those on ordinary datasets.

    The weights of all of them are kept for embeddings.
    """
    yield from leakage.runs(settings)
    yield from supported(settings)


def supported(settings: Settings) -> Iterator[Runs]:
    """The runs of the study of support, on ordinary datasets."""
    asked, keeps = settings.block("density")["support"], frozenset({TRACE, WEIGHTS})
    for language in asked["languages"] if asked else ():
        names = asked["model"], language, asked["size"]
        yield Runs(*names, seeds=settings.seeds, recipe=asked["recipe"], keeps=keeps)


def outputs(settings: Settings) -> Iterator[str]:
    of_runs = (kind.path for kind in (kinds.EMBEDDINGS, *OF_RUN))
    yield from paths_of(requests(settings), *of_runs, MANIFEST)
    whole = [runs for runs in leakage.runs(settings) if runs.variant == leaked(NO_LEAK)]
    of_factorial = (*kinds.OF_FACTORIAL, kinds.REGRESSIONS)
    yield from paths_of(whole, *(kind.path for kind in of_factorial))
    of_grammars = [runs for runs in whole if not leakage.has_questions(settings, runs.corpus)]
    yield from paths_of(of_grammars, kinds.TRUTH.path)
    lacking = [runs for runs in whole if leakage.without_productions(settings, runs.corpus)]
    yield from paths_of(lacking, kinds.LEFT_OUT.path)
    yield from paths_of(supported(settings), kinds.TRUTH.path)
    if settings.given["memorisation"] is not None:
        yield from paths_of(supported(settings), kinds.MEMORISED.path)
    yield from texts.outputs(settings)


def unfinished(settings: Settings) -> Iterator[Unfinished]:
    yield from queries_of(settings, requests(settings), EMBEDDING)


def asked(settings: Settings) -> Iterator[Asked]:
    """The models that embed texts of the user's, or whose perplexity on them is measured."""
    for text in texts.texts(settings).values():
        models = text.model and id_of(settings, text.model), text.folder
        file = kinds.TEXT_EMBEDDINGS.path.format(language=text.name, role=texts.QUERY)
        yield from (Asked(model, None, file) for model in models if model)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    yield from shown(settings)
    yield from leakage.mistakes(settings)
    yield from _support(settings)
    yield from approximation(settings)
    yield from texts.mistakes(settings)
    yield from _first_texts(settings)


def shown(settings: Settings) -> Iterator[Mistake]:
    """A setting to show that is not among the settings to estimate."""
    block = settings.block("density")
    kernel, bandwidth = block["shown"]["kernel"], block["shown"]["bandwidth"]
    known = block["kernels"].get(kernel, [])
    if bandwidth not in known:
        yield Mistake(
            "density/shown/bandwidth",
            f"{bandwidth} is not among the bandwidths in density/kernels/{kernel}: "
            f"{', '.join(map(str, known)) or 'none'}; add it there, or choose one of them",
        )


def _support(settings: Settings) -> Iterator[Mistake]:
    """Models and languages of the study of support that do not fit, and too few strings."""
    asked, key = settings.block("density")["support"], "density/support"
    if asked is None:
        return
    yield from of_one_study(settings, key, asked, asked["size"], NEEDS)
    if (k := settings.block("density")["neighbours"]) > asked["size"]:
        yield Mistake(
            "density/neighbours",
            f"{k} is more than the {asked['size']} training strings of {key}; lower it",
        )


def approximation(settings: Settings) -> Iterator[Mistake]:
    """Sizes of algorithm 1 that fit no corpus. Studies whose corpora are too small do without."""
    asked = settings.block("density")["approximation"]
    if asked is None:
        return
    if asked["m2"] > asked["m1"] - asked["k"]:
        yield Mistake(
            "density/approximation/m2",
            f"{asked['m2']} points cannot be drawn for a query: of the first sample of "
            f"{asked['m1']}, without {asked['k']} neighbours, {max(0, asked['m1'] - asked['k'])} "
            "are left; lower it, or raise m1",
        )


def _first_texts(settings: Settings) -> Iterator[Mistake]:
    """Files whose first rows lack the field of the texts, or have something else than texts."""

    def check(path: str, field: str) -> None:
        from palimpsest.density.segments import read_texts  # tables are slow to import

        for _ in itertools.islice(read_texts(path, field), AT_ONCE):
            pass

    for text in texts.texts(settings).values():
        for name, path in text.files.items():
            yield from errors_of(f"{texts.KEY}/{text.name}/{name}", check, path, text.field)


SECTION = Section(
    name="density",
    title="Where training data is dense",
    answers=(
        "In regressions: Perplexity falls as the density of n-grams rises.",
        "The perplexity of a text falls as the density of the nearest texts in the corpus rises.",
    ),
    requests=requests,
    outputs=outputs,
    mistakes=mistakes,
    unfinished=unfinished,
    asked=asked,
    judged=(
        kinds.LEAKAGE,
        kinds.SEPARATION,
        kinds.RETRIEVAL,
        kinds.LEFT_OUT,
        kinds.REGRESSIONS,
        kinds.TRUTH,
        kinds.MEMORISED,
        kinds.TEXT_DENSITY,
        kinds.TEXT_REGRESSIONS,
    ),
    reported=(
        kinds.LEAKAGE,
        kinds.RETRIEVAL,
        kinds.MEMORISED,
        kinds.TEXT_DENSITY,
        kinds.TEXT_REGRESSIONS,
    ),
    interventions=INTERVENTIONS,
    opens=(kinds.LEAKAGE.path, kinds.TEXT_DENSITY.path),
)
