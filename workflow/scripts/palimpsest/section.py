"""The interface of a section. A section holds everything that belongs to one paper's question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from palimpsest import paths
from palimpsest.configuration.layers import PartOf
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.figures.figure import Figure, figures_in
from palimpsest.interventions import Intervention
from palimpsest.lazy_import import named
from palimpsest.models.table import learning_rate
from palimpsest.requests import Runs, Unfinished
from palimpsest.tables.kinds import Kind


@dataclass(frozen=True)
class Derived:
    """Models that a section makes from trained models, for the plan.

    A seed has `n` of these models. Making one takes a `share` of the time of one training of
    `runs`. The models are finished when all `files` exist.
    """

    runs: Runs
    name: str
    seed: int
    n: int
    share: float
    files: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """A model that a section asks about texts and does not train as `Runs`, for the plan.

    `model` is a name of the table of models, a folder, or a name on the hub. `tokens` are those of
    all texts; None if no job has read them. Each token takes `passes` forward passes or more; a
    backward pass counts as two. The model is finished when `file` exists.
    """

    model: str
    tokens: float | None
    file: str
    passes: float = 1


# What a section's module of this name has for all sections
PARTS = {
    "kinds": "KINDS",
    "claims": "CLAIMS",
    "headline": "rows",
    "report": "part",
    "sentences": "sentences",
}


def nothing(settings: Settings) -> Iterable:
    """An empty part of a section."""
    return ()


@dataclass(frozen=True)
class Part:
    """A part of a section with a block and a target of its own, such as a study.

    `name` is the name of its target, and `key` that of its block. `uses` names the parts without
    which it is not complete. `files` are the beginnings of the paths of its own files.
    `chosen_in` is the key of a list of names that leaves out all other parts, unless it is null.
    Its `mistakes` and `requests` are those of the part alone.
    """

    name: str
    key: str
    mistakes: Callable[[Settings], Iterable[Mistake]]
    requests: Callable[[Settings], Iterable[Runs]]
    uses: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    chosen_in: str = ""


def queries_of(
    settings: Settings,
    runs: Iterable[Runs],
    query: str,
    values: Mapping | None = None,
    weights: str = paths.WEIGHTS,
) -> Iterator[Unfinished]:
    """The jobs that ask a query of each run's models, with the values of the query's rule.

    `query` names it, such as "palimpsest.density.embedding:embeddings".
    """
    for each in runs:
        for dataset, file in zip(each.datasets, each.paths(weights), strict=True):
            yield query_of(settings, each, dataset, [file], query, dict(values or {}))


def query_of(
    settings: Settings, runs: Runs, dataset: str, weights: list[str], query: str, values: dict
) -> Unfinished:
    """The job that asks a query of models that were trained as `runs`."""
    given = {
        "model": runs.model,
        "corpus": settings.corpus_file(runs.corpus),
        "learning_rate": learning_rate(runs.model, settings.models),
        "predict_end": settings.config["datasets"]["predict_end"],
        "training": settings.training(runs.model, runs.recipe),
        "engine": settings.engine(runs.model),
        "query": query,
        "values": values,
        "dataset": dataset,
        "weights": weights,
    }
    return Unfinished(dataset, given)


@dataclass(frozen=True)
class Section:
    """The runs that a section requests and the files that it delivers.

    `name` is the name of the section's block in the configuration, of its target in Snakemake and
    of its file of rules. All functions are called only if the configuration has the block, except
    `schema`. `requests` gives the runs to train, `outputs` the files, `derived` the models made
    from trained ones, and `unfinished` the jobs that keep state. `on_demand` gives the replicates
    that only a target of the section's own needs: they are in no plan and not in `finetune`.
    `asked` gives the models that the section asks and does not train as runs.
    `facts` are what the section's claims and its part of the report have to know of the
    configuration, by the names of the arguments of their statistics and of the function `part`.
    `mistakes` gives the errors in the block that its schema cannot find, except those of its
    `parts`. `unused` gives keys of the block that have no effect, and why; if a user set one, a
    line says so. `limits` gives keys of the block with what their answers cannot tell, which a line
    says before anything is trained. `schema` may add values from the section's code to the block's
    schema. `targets` names other targets of Snakemake that need the section only. `follows` are the
    keys of the block whose values come from a list elsewhere. `answers` are claims, word for word:
    the first that was tested answers the section's question at the top of the report. `page` is the
    path of an HTML page among the section's files, to which its page of the report has a link.
    `opens` are paths of tables that a person should open first, with wildcards in braces.

    The section's kinds, claims, headline, part of the report and sentences are found by their
    location: KINDS of `kinds`, CLAIMS and QUESTIONS of `claims`, the function `rows` of
    `headline`, the function `part` of `report` and the function `sentences` of `sentences`,
    modules of its folder. The function `rows` declares the tables that it reads. The function
    `sentences` answers the section's question from the reported tables, where no claim does.
    The text `kinds` names another place, such as "palimpsest.memorisation.studies:KINDS". A
    section without a module `report` has a chapter for its figures and claims. Its figures are
    the files of its folder `figures`. The claims are tested on tables of the kinds `judged`.
    The section's part of the report reads tables of the kinds `reported`. `interventions` are
    the section's own. `n_targets` is the number of target strings of a language that the
    section needs.
    """

    name: str
    title: str
    requests: Callable[[Settings], Iterable[Runs]]
    outputs: Callable[[Settings], Iterable[str]]
    mistakes: Callable[[Settings], Iterable[Mistake]] = nothing
    kinds: str | None = None
    judged: tuple[Kind, ...] = ()
    reported: tuple[Kind, ...] = ()
    interventions: tuple[Intervention, ...] = ()
    derived: Callable[[Settings], Iterable[Derived]] = nothing
    unfinished: Callable[[Settings], Iterable[Unfinished]] = nothing
    asked: Callable[[Settings], Iterable[Asked]] = nothing
    on_demand: Callable[[Settings], Iterable[Runs]] = nothing
    facts: Callable[[Settings], Mapping] = lambda settings: {}
    n_targets: Callable[[Settings], int] = lambda settings: 1
    unused: Callable[[Settings], Iterable[tuple[str, str]]] = nothing
    limits: Callable[[Settings], Iterable[tuple[str, str]]] = nothing
    schema: Callable[[dict], dict] = lambda schema: schema
    parts: tuple[Part, ...] = ()
    targets: tuple[str, ...] = ()
    follows: tuple[PartOf, ...] = ()
    answers: tuple[str, ...] = ()
    page: str = ""
    opens: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        return f"palimpsest.{self.name}"

    @property
    def folder(self) -> Path:
        return Path(find_spec(f"{self.package}.section").origin).parent

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        return figures_in(f"{self.package}.figures")

    def location(self, part: str) -> str | None:
        """The location of one of `PARTS`; None if the section has no such module."""
        if given := getattr(self, part, None):
            return given
        module = f"{self.package}.{part}"
        return f"{module}:{PARTS[part]}" if find_spec(module) else None

    def load(self, part: str):
        """The object of a part, for example `load("claims")`; () if the section lacks the part."""
        return named(self.location(part))

    def needed_by(self, target: str) -> list[str]:
        """The blocks that a target or a file of Snakemake's needs; [] if it is not this section's.

        The section's own block comes first, then those of its parts.
        """
        if part := self.part_of(target):
            used = [other.key for other in self.parts if other.name in part.uses]
            return [self.name, part.key, *used]
        if target in self._names or target.startswith(self._files):
            return [self.name, *(part.key for part in self.parts)]
        return []

    def is_made_by(self, target: str) -> bool:
        """Whether this is a target or a figure of the section's, or a file of one of its parts."""
        is_own = target in self._names or target.startswith(self._figures)
        return is_own or self.part_of(target) is not None

    def part_of(self, target: str) -> Part | None:
        for part in self.parts:
            if target == part.name or target.startswith(part.files):
                return part
        return None

    @property
    def _names(self) -> tuple[str, ...]:
        return self.name, *self.targets

    @property
    def _figures(self) -> tuple[str, ...]:
        """The beginnings of the paths of the section's figures."""
        return tuple(figure.beginning for figure in self.figures)

    @property
    def _files(self) -> tuple[str, ...]:
        """The beginnings of the paths of the section's tables and figures."""
        return (*{_beginning(kind.path) for kind in self.load("kinds")}, *self._figures)


def _beginning(path: str) -> str:
    """The folder of a section's tables, or the name of a table that is in `results` itself.

    For example, `results/records/` for `results/records/{language}/answers.parquet`, and
    `results/records.` for `results/records.parquet`.
    """
    folder, name, *inner = path.split("/")
    return f"{folder}/{name}/" if inner else f"{folder}/{name.partition('.')[0]}."
