"""The section `repetition`: how often training strings are repeated."""

from collections.abc import Iterator

from palimpsest.configuration.checks import too_many_strings, unknown_languages, unknown_model
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.repetition.counting import REPEATED
from palimpsest.requests import Runs
from palimpsest.section import Section


def runs(settings: Settings, language: str) -> Runs:
    """The runs on a language: its datasets are what the section looks at."""
    block = settings.block("repetition")
    return Runs(block["model"], language, block["size"], seeds=settings.seeds)


def datasets(settings: Settings, language: str) -> list[str]:
    return runs(settings, language).datasets


def requests(settings: Settings) -> Iterator[Runs]:
    """One model on every language."""
    for language in settings.block("repetition")["languages"]:
        yield runs(settings, language)


def outputs(settings: Settings) -> Iterator[str]:
    """A table for every language."""
    for language in settings.block("repetition")["languages"]:
        yield REPEATED.path.format(language=language)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """Names that nobody knows, and sizes that a language does not have."""
    block = settings.block("repetition")
    yield from unknown_model(settings, "repetition/model", block["model"])
    yield from unknown_languages(settings, "repetition/languages", block["languages"])
    yield from too_many_strings(settings, "repetition/size", [block["size"]], block["languages"])


SECTION = Section(
    name="repetition",
    title="Repeated strings",
    requests=requests,
    outputs=outputs,
    mistakes=mistakes,
    kinds="palimpsest.repetition.counting:KINDS",
    judged=(REPEATED,),
    answers=("Most distinct training strings occur once.",),
)
