"""What a study is: tables of memorisation of many runs, laid side by side for one question.

Only light modules are imported: Snakemake reads this while it builds its graph of jobs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from palimpsest.configuration.checks import (
    too_many_strings,
    unknown_languages,
    unknown_models,
    without_probabilities,
)
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.figures.figure import Figure
from palimpsest.lazy_import import lazy_import
from palimpsest.requests import Runs
from palimpsest.tables.kinds import Kind

pd = lazy_import("pandas")

# What cannot be had without probabilities: stand-ins of equal probability, the Bayes-optimal loss
NEEDS = "memorisation"
SIZE_KEY = {
    "description": "Training strings, copies counted.",
    "type": "integer",
    "minimum": 1,
    "maximum": 1000000,
}


class Study:
    """One question about memorisation, with a table and figures for each of its languages.

    A study is one file of the folder `studies`, which ends with `STUDY = Tradeoff()` and has a
    function `table` from the tables that the study reads to its own. A subclass says what differs.
    `keys` is the JSON schema of the keys of its block, `models` and `languages` apart; `order` is
    its place in the report.
    """

    name: str
    order: int
    title: str
    description: str  # for the reference page of the configuration
    text: str  # for the report: what the study is about, true whatever the tables hold
    kind: Kind
    reads: tuple[Kind, ...]
    makes: tuple[Kind, ...] = ()  # tables of each of its models that are made for it alone
    figures: tuple[Figure, ...]
    keys: ClassVar[Mapping[str, dict]] = {"size": SIZE_KEY}

    def block(self, settings: Settings) -> dict | None:
        """Its block of the configuration; None if it is left out."""
        memorisation = settings.block("memorisation") or {"studies": {}}
        return memorisation["studies"].get(self.name)

    def models(self, settings: Settings) -> list[str]:
        """Its models; `all` are those of the grid."""
        return self._chosen(settings, "models")

    def languages(self, settings: Settings) -> list[str]:
        """Its languages, each of which has its table and its figures; `all` are the grid's."""
        return self._chosen(settings, "languages")

    def sizes(self, settings: Settings) -> list[int]:
        """Its training sizes."""
        block = self.block(settings)
        return block["sizes"] if "sizes" in block else [block["size"]]

    def variants(self, settings: Settings, language: str) -> list[str]:
        """The variants of the datasets that it reads."""
        return ["base"]

    def runs(self, settings: Settings, language: str) -> list[Runs]:
        """The runs that it reads on a language."""
        return [
            Runs(model, language, size, variant, settings.seeds)
            for model in self.models(settings)
            for size in self.sizes(settings)
            for variant in self.variants(settings, language)
        ]

    def measured(self, settings: Settings) -> Iterable[Runs]:
        """Runs that it needs trained, and their memorisation measured."""
        return self._all_runs(settings)

    def retrained(self, settings: Settings) -> Iterable[Runs]:
        """Runs that it needs trained for measures of its own."""
        return ()

    def inputs(self, settings: Settings, language: str) -> dict[str, list[str]]:
        """The files that its table is made from: those of the kinds that it reads, by kind."""
        runs = self.runs(settings, language)
        return {
            kind.name: list(
                dict.fromkeys(path for group in runs for path in group.paths(kind.path))
            )
            for kind in self.reads
        }

    @property
    def table(self) -> Callable[..., pd.DataFrame]:
        """The function from the tables that it reads to its own."""
        return sys.modules[type(self).__module__].table

    def parameters(self, settings: Settings, language: str) -> dict:
        """The values that its table takes beside the tables that it reads."""
        return {}

    def outputs(self, settings: Settings) -> list[str]:
        """Its tables, and those that are made for it alone."""
        own = [self.kind.path.format(language=name) for name in self.languages(settings)]
        runs = self._all_runs(settings)
        return [
            *own,
            *(path for kind in self.makes for one in runs for path in one.paths(kind.path)),
        ]

    def mistakes(self, settings: Settings) -> Iterable[Mistake]:
        """What is wrong with its block beyond the schema."""
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

    @property
    def code(self) -> tuple[str, ...]:
        """The places of the code that makes its table, for its fingerprint."""
        module = type(self).__module__
        return f"{module}:table", f"{module}:KIND"

    def _chosen(self, settings: Settings, what: str) -> list[str]:
        block = self.block(settings)
        if block is None:
            return []
        return settings.config[what] if block[what] == "all" else block[what]

    def _all_runs(self, settings: Settings) -> list[Runs]:
        """The runs that it reads on all its languages."""
        return [runs for name in self.languages(settings) for runs in self.runs(settings, name)]
