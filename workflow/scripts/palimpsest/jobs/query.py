"""Queries: what a rule asks of trained models.

A query is a function with one of three decorators.

- `query`: tables about the model of each of some runs, or about its weights by epoch.
- `joint_query`: tables that need several models of several runs, one set for each question.
- `folder_query`: a new model, made from trained ones, as a folder of Hugging Face.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from palimpsest.fingerprint import own_code
from palimpsest.jobs.bench import Bench, TrainedWeights, holder_of, keys_of_weights
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.delivery import Files
from palimpsest.jobs.memory import less_next_time
from palimpsest.jobs.model_queries import LossIn, MakeTables, ModelQuery, run_model_queries
from palimpsest.lazy_import import named
from palimpsest.tables.kinds import Kind
from palimpsest.training.attempts import Attempts, Passes
from palimpsest.training.kept_weights import weights_by_epoch


@dataclass(frozen=True)
class QueryFiles:
    """The dataset and the weights that a query reads, and one table of each kind that it writes.

    `weights` are files, or the only folder of a query `by_epoch`. The manifest of a folder with a
    model is in the folder.
    """

    dataset: str
    weights: Sequence[str]
    tables: Sequence[str] = ()
    manifest: str = ""

    def to_deliver(self, kinds: Sequence[Kind]) -> Files:
        return Files(self.manifest, tuple(zip(self.tables, kinds, strict=True)))


@dataclass(frozen=True)
class Question:
    """What is asked of `n_models` models: one table of each kind.

    `name` says in one word what is asked. `about` holds everything that decides the tables, except
    the models and their dataset, as JSON values.
    """

    name: str
    about: dict
    n_models: int
    make_tables: MakeTables


@dataclass(frozen=True)
class Query:
    """A query of a section, which makes tables of some kinds.

    `questions` gives what is asked, from the number of files of weights and the values of the rule.
    A joint query asks all questions of the models of one dataset. Any other query asks its only
    question of the models of each run. The code of an extension's query is a part of what decides
    its tables.
    """

    section: str
    kinds: tuple[Kind, ...]
    questions: Callable[[int, Mapping], Iterable[Question]]
    by_epoch: bool = False
    is_joint: bool = False
    make_bench: Callable[..., Bench] = Bench
    loss_in: LossIn | None = None
    location: str = ""  # "module:function"

    def run(
        self,
        files: Sequence[QueryFiles],
        values: Mapping,
        assignment: Assignment,
        attempts: Attempts | None = None,
    ) -> None:
        """Ask all questions and write the tables; `files` are those of each question, or run.

        Raises `UserError` if weights are missing, if a value does not fit the models, or if memory
        is too short for any attempt. Raises `OutOfMemory` if the next attempt can succeed.
        """
        for together in [files] if self.is_joint else [[one] for one in files]:
            asked = self.asked(together[0].dataset, together[0].weights, values, assignment)
            queries = [
                replace(one, files=made.to_deliver(self.kinds))
                for one, made in zip(asked, together, strict=True)
            ]
            run_model_queries(queries, self.make_bench, attempts, self.loss_in)

    def asked(
        self, dataset: str, weights: Sequence[str], values: Mapping, assignment: Assignment
    ) -> list[ModelQuery]:
        """What is asked of the models of one dataset, without the files to write."""
        if self.by_epoch:
            by_epoch = weights_by_epoch(*weights)
            weights = list(map(str, by_epoch.values()))
            values = {**values, "epochs": list(by_epoch)}
        return [
            ModelQuery(
                section=self.section,
                assignment=assignment,
                dataset=dataset,
                weights=list(weights),
                files=Files("", ()),
                **{**vars(question), "about": {**question.about, **own_code(self.location)}},
            )
            for question in self.questions(len(weights), values)
        ]


@dataclass(frozen=True)
class FolderQuery:
    """A query that makes a model; it keeps no state."""

    function: Callable
    make_bench: Callable[..., Bench]

    def run(
        self,
        files: Sequence[QueryFiles],
        values: Mapping,
        assignment: Assignment,
        attempts: Attempts | None = None,
    ) -> None:
        """Write the model into the folder of the only manifest.

        Raises as `Query.run`.
        """
        (only,) = files
        torch.set_num_threads(assignment.threads)
        run = assignment.run(only.dataset)
        passes = attempts.passes() if attempts else Passes.of(assignment.recipe)
        bench = self.make_bench(run, holder_of(assignment), passes)
        with less_next_time(
            attempts, assignment.engine, passes, lambda: bench.is_measuring, cuts_batches=False
        ):
            model, about = self.function(bench, TrainedWeights(only.weights), **values)
        if bench.holder.rank == 0:
            # Imported only when needed: the import of transformers takes seconds.
            from palimpsest.jobs.export import export

            assignment.keep_code()
            about = {
                **bench.keys,
                **about,
                "weights": keys_of_weights(only.weights),
                "predict_end": run.recipe.predict_end,
            }
            folder = Path(only.manifest).parent
            export(folder, run.row, run.scale, run.corpus.alphabet, model, about)
            if attempts:
                attempts.forget()
        bench.holder.wait()
        bench.holder.close()


def query(section: str, name: str, *kinds: Kind, by_epoch: bool = False) -> Callable:
    """Declare a function as a query of a section that makes tables of these kinds, for each run.

    The function takes a bench, the weights, the numbers of some models, and the values of its rule
    by their names; it returns one table of each kind. `name` is for messages. The weights of a
    query `by_epoch` are a folder with a file for each measured epoch. Its function is also given
    `epochs`, one for each model.
    """

    def declare(function: Callable) -> Callable:
        def questions(n_models: int, values: Mapping) -> list[Question]:
            return [Question(name, dict(values), n_models, partial(function, **values))]

        function.query = Query(section, kinds, questions, by_epoch)
        return function

    return declare


def joint_query(
    section: str,
    *kinds: Kind,
    make_bench: Callable[..., Bench] = Bench,
    loss_in: LossIn | None = None,
) -> Callable:
    """Declare a function as a joint query of a section that makes tables of these kinds.

    The function takes the values of its rule by their names, and returns the questions in the order
    of the rule's files. All questions share the bench. For `make_bench` and `loss_in`, see
    `run_model_queries`.
    """

    def declare(function: Callable) -> Callable:
        def questions(n_files: int, values: Mapping) -> Iterable[Question]:
            return function(**values)

        function.query = Query(
            section, kinds, questions, is_joint=True, make_bench=make_bench, loss_in=loss_in
        )
        return function

    return declare


def folder_query(make_bench: Callable[..., Bench] = Bench) -> Callable:
    """Declare a function as a query that makes a model.

    The function takes a bench, the weights, and the values of its rule by their names. It returns
    the weights of the model by the names of its parameters, and what the model is, as JSON values.
    """

    def declare(function: Callable) -> Callable:
        function.query = FolderQuery(function, make_bench)
        return function

    return declare


def query_named(place: str) -> Query | FolderQuery:
    """The query at a place such as "palimpsest.density.embedding:embeddings"."""
    found = named(place).query
    return replace(found, location=place) if isinstance(found, Query) else found


def keys_of_job(models: str, given: Mapping) -> list[str]:
    """The keys of the states of a query's job, from `palimpsest.requests.Unfinished`.

    `models` is the path of the table of models. Raises `UserError` if the models of the job are not
    trained.
    """
    query = query_named(given["query"])
    assignment = Assignment.of_unfinished(models, given)
    asked = query.asked(given["dataset"], given["weights"], given["values"], assignment)
    return [one.state().key for one in asked]
