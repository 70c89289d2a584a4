"""The base class of studies. A study combines tables of many runs to answer one question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from palimpsest.configuration.checks import (
    too_many_strings,
    unknown_languages,
    unknown_models,
    without_probabilities,
)
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import GRID, Settings
from palimpsest.lazy_import import lazy_import, named
from palimpsest.paths import STUDY_TABLE, fill
from palimpsest.paths import TOKENS as TOKENS_PATH
from palimpsest.requests import TOKENS, Runs, Unfinished, paths_of
from palimpsest.tables.kinds import Column, Kind

pd = lazy_import("pandas")

# Named in errors: memorisation needs probabilities, for stand-ins and for the Bayes-optimal loss.
NEEDS = "memorisation"
SIZE_KEY = {
    "description": "Number of training strings, with copies.",
    "type": "integer",
    "minimum": 1,
    "maximum": 1000000,
}


def kind_of_study(name: str, rows: str, columns: tuple[Column, ...]) -> Kind:
    return Kind(name, rows, fill(STUDY_TABLE, study=name), columns)


class Study:
    """One question about memorisation, with a table and figures for each of its languages.

    A study is one file in the folder `studies`. The file has a function `table`, which makes the
    study's table; the decorators name the tables that it reads. The file ends with, for example,
    `STUDY = Tradeoff()`. A subclass overrides what differs. `keys` is the JSON schema of the keys
    in the study's block, except `models` and `languages`. `order` is the study's position in the
    report. The study's figures are those whose chapter has the name of the study.
    """

    name: str
    order: int
    title: str
    description: str  # for the reference page of the configuration
    text: str  # for the report: the subject of the study; true for any content of the tables
    makes: tuple[Kind, ...] = ()  # tables, one per model, that only this study needs
    keys: ClassVar[Mapping[str, dict]] = {"size": SIZE_KEY}
    files: ClassVar[Mapping[str, str]] = {}  # patterns of more files of the runs, by input
    uses: tuple[str, ...] = ()  # other studies from whose runs the table is made

    def block(self, settings: Settings) -> dict | None:
        studies = (settings.block("memorisation") or {"studies": None})["studies"] or {}
        chosen = studies.get("only")
        return studies.get(self.name) if chosen is None or self.name in chosen else None

    def models(self, settings: Settings) -> list[str]:
        """The study's models; `all` means the grid's models."""
        return self._chosen(settings, "models")

    def languages(self, settings: Settings) -> list[str]:
        """The study's languages, each with a table and figures; `all` means the grid's."""
        return self._chosen(settings, "languages")

    def sizes(self, settings: Settings) -> list[int]:
        block = self.block(settings)
        return block["sizes"] if "sizes" in block else [block["size"]]

    def recipe(self, settings: Settings) -> str:
        """The recipe of the study's runs; `grid` means the grid's recipe."""
        named = self.block(settings)["recipe"]
        return settings.config["recipe"] if named == GRID else named

    def variants(self, settings: Settings, language: str) -> list[str]:
        return ["base"]

    def runs(self, settings: Settings, language: str) -> list[Runs]:
        """The runs on a language whose tables the study reads."""
        return [
            Runs(model, language, size, variant, settings.seeds, self.recipe(settings))
            for model in self.models(settings)
            for size in self.sizes(settings)
            for variant in self.variants(settings, language)
        ]

    def measured(self, settings: Settings) -> Iterable[Runs]:
        """Runs that are trained and measured for the study."""
        return self._all_runs(settings)

    def retrained(self, settings: Settings) -> Iterable[Runs]:
        """Runs that are trained for the study's own measures only."""
        return ()

    def inputs(self, settings: Settings, language: str) -> dict[str, list[str]]:
        runs = self.runs(settings, language)
        tables = {name: kind.path for name, kind in self.table.reads.items()}
        return {name: paths_of(runs, path) for name, path in {**tables, **self.files}.items()}

    @property
    def table(self) -> Callable[..., pd.DataFrame]:
        return named(self.location)

    @property
    def kind(self) -> Kind:
        (kind,) = self.table.makes
        return kind

    def parameters(self, settings: Settings, language: str) -> dict:
        """Values that the function `table` needs in addition to tables."""
        return {}

    def outputs(self, settings: Settings) -> list[str]:
        own = [self.kind.path.format(language=name) for name in self.languages(settings)]
        of_models = paths_of(self._all_runs(settings), *(kind.path for kind in self.makes))
        return [*own, *of_models]

    def mistakes(self, settings: Settings) -> Iterable[Mistake]:
        key, block = f"memorisation/studies/{self.name}", self.block(settings)
        if block["models"] != "all":
            yield from unknown_models(settings, f"{key}/models", block["models"])
        if block["languages"] != "all":
            yield from unknown_languages(settings, f"{key}/languages", block["languages"])
            yield from without_probabilities(
                settings, f"{key}/languages", block["languages"], NEEDS
            )
        size_key = "sizes" if "sizes" in block else "size"
        asked = self.sizes(settings), self.languages(settings)
        yield from too_many_strings(settings, f"{key}/{size_key}", *asked)

    def queries(self, settings: Settings) -> Iterable[Unfinished]:
        """The jobs that ask trained models something for the study, and keep state."""
        return ()

    def requests(self, settings: Settings) -> Iterable[Runs]:
        return [*self.measured(settings), *self.retrained(settings)]

    @property
    def location(self) -> str:
        return f"{type(self).__module__}:table"

    def _chosen(self, settings: Settings, what: str) -> list[str]:
        block = self.block(settings)
        if block is None:
            return []
        return settings.config[what] if block[what] == "all" else block[what]

    def _all_runs(self, settings: Settings) -> list[Runs]:
        return [runs for name in self.languages(settings) for runs in self.runs(settings, name)]


class StudyOfTokens(Study):
    """A study of the losses of single tokens, beside what the language's grammar leaves open."""

    files: ClassVar = {"tokens": TOKENS_PATH}

    def runs(self, settings: Settings, language: str) -> list[Runs]:
        """The runs on a language; each keeps the losses of its tokens."""
        return [
            replace(runs, keeps=runs.keeps | {TOKENS}) for runs in super().runs(settings, language)
        ]

    def inputs(self, settings: Settings, language: str) -> dict[str, list[str]]:
        corpus = [settings.corpus_file(language)]
        return {**super().inputs(settings, language), "corpus": corpus}

    def parameters(self, settings: Settings, language: str) -> dict:
        return {"predict_end": settings.config["datasets"]["predict_end"]}


class StudyOfFields(StudyOfTokens):
    """A study of the fields that the grammar of a language of text names."""

    def mistakes(self, settings: Settings) -> Iterator[Mistake]:
        yield from super().mistakes(settings)
        for place, language in enumerate(self.languages(settings)):
            if why := _without_fields(settings, language):
                key = f"memorisation/studies/{self.name}/languages[{place}]"
                yield Mistake(key, f"{language!r} {why}; name a language of text with fields")


def _without_fields(settings: Settings, language: str) -> str:
    """Why a language has no fields; empty if it has some."""
    corpus = settings.corpus(language)
    if not corpus.has_probabilities:
        return ""  # a mistake already
    if not corpus.is_text:
        return "is a language of symbols, and only texts have fields (%text)"
    return "" if corpus.grammar.fields else "has no fields; write a line %field into its grammar"
