"""Queries: tables about the trained model of each of some runs, or about its weights by epoch.

A query is a function with the decorator `query`. It takes a bench, the weights, the numbers of some
models, and the values of its rule by their names; it returns one table of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from palimpsest.jobs.command import Assignment
from palimpsest.jobs.delivery import Files
from palimpsest.jobs.model_queries import ModelQuery, run_model_queries
from palimpsest.lazy_import import named
from palimpsest.tables.kinds import Kind
from palimpsest.training.attempts import Attempts
from palimpsest.training.kept_weights import weights_by_epoch


@dataclass(frozen=True)
class Query:
    """What a query makes: its section, its name in messages, and the kinds of its tables.

    The weights of a query `by_epoch` are a folder with a file for each measured epoch. Its function
    is also given `epochs`, one for each model.
    """

    section: str
    name: str
    kinds: tuple[Kind, ...]
    function: Callable
    by_epoch: bool = False

    def of_run(self, assignment: Assignment, files: QueryFiles, values: Mapping) -> ModelQuery:
        """The query of one run's models, with the values of the rule."""
        if self.by_epoch:
            by_epoch = weights_by_epoch(files.weights)
            weights = list(map(str, by_epoch.values()))
            values = {**values, "epochs": list(by_epoch)}
        else:
            weights = [files.weights]
        return ModelQuery(
            name=self.name,
            section=self.section,
            assignment=assignment,
            dataset=files.dataset,
            weights=weights,
            about=dict(values),
            n_models=len(weights),
            files=Files(files.manifest, tuple(zip(files.tables, self.kinds, strict=True))),
            make_tables=partial(self.function, **values),
        )


@dataclass(frozen=True)
class QueryFiles:
    """The files of one run: its dataset, its weights, and the tables and manifest to write."""

    dataset: str
    weights: str
    tables: tuple[str, ...]
    manifest: str


def query(section: str, name: str, *kinds: Kind, by_epoch: bool = False) -> Callable:
    """Declare a function as a query of a section that makes tables of these kinds."""

    def declare(function: Callable) -> Callable:
        function.query = Query(section, name, kinds, function, by_epoch)
        return function

    return declare


def query_named(place: str) -> Query:
    """The query at a place such as "palimpsest.density.embedding:embeddings"."""
    return named(place).query


def run_queries(
    query: Query,
    runs: Iterable[QueryFiles],
    values: Mapping,
    assignment: Assignment,
    attempts: Attempts | None = None,
) -> None:
    """Query the models of some runs, one run after another, and write the tables of each.

    Raises `UserError` if weights are missing, if a value does not fit the model, or if memory is
    too short for any attempt.
    """
    for files in runs:
        run_model_queries([query.of_run(assignment, files, values)], attempts=attempts)


def key_of_job(models: str, given: dict) -> str:
    """The key of a query's state, from `palimpsest.requests.Unfinished`.

    Raises `UserError` if the run is not trained.
    """
    query = query_named(given["query"])
    files = QueryFiles(given["dataset"], given["weights"], ("",) * len(query.kinds), "")
    assignment = Assignment.of_unfinished(models, given)
    return query.of_run(assignment, files, given["values"]).state().key
