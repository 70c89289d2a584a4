"""The flags that all jobs share: the model, its data, the engine, the machine and the recipe.

A job is a command that a rule runs with `shell:`. Its script takes the parser from here, adds its
own flags, and passes its work to `supervise`.
"""

import argparse
import contextlib
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from palimpsest import extensions, launch
from palimpsest.code_archive import keep_code
from palimpsest.corpora import Corpus, read_corpus
from palimpsest.errors import OutOfMemory, UserError
from palimpsest.models import Model, read_models, resolve
from palimpsest.models.adapters import NONE
from palimpsest.models.table import TWIN
from palimpsest.requests import DEFAULT
from palimpsest.training.recipe import Recipe, add_flags

if TYPE_CHECKING:
    from palimpsest.training.runs import Run


Job = TypeVar("Job")
# One process asks one model, which is not trained.
ALONE = {"processes": 1, "zero_stage": 0, "offload_optimizer": "none", "micro_batch_size": 1}


def parser_of_one_model(description: str, items: str, at_once: int) -> argparse.ArgumentParser:
    """The flags of a job that asks one model, which is not trained, about `items`."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--evaluation-batch-size", type=int, default=at_once, help=f"{items} per forward pass"
    )
    made.add_argument("--state", required=True, help="folder for locks and notes")
    made.add_argument("--gpus", type=int, default=0, help="GPUs to wait for; 0: use the CPU")
    made.add_argument("--threads", type=int, default=1, help="CPU threads")
    made.set_defaults(**ALONE)
    return made


def parser_about_records(description: str) -> argparse.ArgumentParser:
    """The flags of a job that asks one model about records, in float32."""
    made = parser_of_one_model(description, "records", at_once=16)
    made.add_argument("--language", required=True, help="name of the records")
    made.add_argument("--name", required=True, help="name of the model in results")
    made.add_argument("--corpus", required=True, help="table of the records")
    made.add_argument("--model", required=True, help="folder or hub name of the model")
    made.set_defaults(precision="fp32")
    return made


def job_of(kind: type[Job], arguments: argparse.Namespace) -> Job:
    """A job from the flags that have the names of its fields."""
    return kind(**{field.name: getattr(arguments, field.name) for field in fields(kind)})


def parser(description: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--recipe", default=DEFAULT, help="name of the recipe, for messages")
    made.add_argument("--model", required=True, help="name in the table of models, or its twin")
    made.add_argument("--models", required=True, help="the table of models (TSV)")
    made.add_argument("--corpus", required=True, help="file of a grammar (.pcfg) or a text (.txt)")
    made.add_argument("--engine", required=True, choices=["deepspeed", "fleet"], help="engine")
    made.add_argument("--memory-mb", type=int, default=8000, help="memory a fleet may use, in MB")
    made.add_argument("--state", required=True, help="folder for unfinished work")
    made.add_argument("--gpus", type=int, default=0, help="GPUs to wait for; 0: use the CPU")
    made.add_argument("--processes", type=int, default=1, help="processes that share one model")
    made.add_argument("--threads", type=int, default=1, help="CPU threads of all processes")
    add_flags(made)
    return made


def parsed(made: argparse.ArgumentParser) -> argparse.Namespace:
    """The flags of this process; prints one line and ends if they contradict each other."""
    arguments = made.parse_args()
    if arguments.engine == "fleet" and arguments.processes > 1:
        made.error("--processes: a fleet is one process; give it --threads")
    if arguments.adapter != NONE and arguments.model.endswith(TWIN):
        raise UserError(
            f"recipes/{arguments.recipe}/adapter: {arguments.adapter} is for full models, and "
            f"{arguments.model} is a twin, all of whose weights are trained; set it to none"
        )
    if 0 < arguments.gpus < arguments.processes:
        raise UserError(
            f"recipes/{arguments.recipe}/processes: a run of {arguments.model} takes "
            f"{arguments.processes} GPUs, and the job has {arguments.gpus}; set it to at most the "
            "number of GPUs of one machine"
        )
    return arguments


@dataclass(frozen=True)
class Assignment:
    """The values that every job needs: model, corpus, recipe, engine and machine.

    `model` is a name in the table of models, which is the file `models`. `corpus` is the file of a
    corpus. `state` is the folder for unfinished work. `threads` is the number of CPU threads of one
    process. `memory` is the number of bytes that a fleet may use. `recipe_name` affects no result.
    """

    model: str
    models: str
    corpus: str
    recipe: Recipe
    engine: str
    state: str
    threads: int = 1
    memory: int = 2**33
    recipe_name: str = DEFAULT

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> "Assignment":
        return cls(
            model=arguments.model,
            models=arguments.models,
            corpus=arguments.corpus,
            recipe=job_of(Recipe, arguments),
            engine=arguments.engine,
            state=arguments.state,
            threads=threads_of_a_process(arguments),
            memory=arguments.memory_mb * 2**20,
            recipe_name=arguments.recipe,
        )

    @classmethod
    def of_unfinished(cls, models: str, given: Mapping) -> "Assignment":
        """The assignment of a run or of a job that keeps state, for the key of its state.

        `given` holds the values of `palimpsest.requests.Unfinished`. The number of processes
        affects no result, so it is not in a recipe.
        """
        training = {key: value for key, value in given["training"].items() if key != "processes"}
        recipe = Recipe(given["learning_rate"], predict_end=given["predict_end"], **training)
        return cls(given["model"], models, given["corpus"], recipe, given["engine"], state="")

    def keep_code(self) -> None:
        """Save the running code in a folder next to the state; the manifests name this copy."""
        keep_code(Path(self.state).with_name("code"))

    def run(self, dataset: str) -> "Run":
        """The run of this model on a dataset.

        Raises `UserError` if the model is not in the table of models, or if the corpus is wrong.
        """
        # Imported here, because this module imports torch, and `begin` must be called before that.
        from palimpsest.training.runs import Run

        row, scale = self._row_and_scale
        return Run(self.model, row, scale, self._corpus, dataset, self.recipe)

    @property
    def scale(self) -> str:
        """`full` for a pretrained model, `twin` for a twin."""
        return self._row_and_scale[1]

    @cached_property
    def _row_and_scale(self) -> tuple[Model, str]:
        return resolve(self.model, read_models(self.models))

    @cached_property
    def _corpus(self) -> Corpus:
        return read_corpus(self.corpus)


def threads_of_a_process(arguments: argparse.Namespace) -> int:
    return max(1, arguments.threads // arguments.processes)


def begin(arguments: argparse.Namespace) -> None:
    """Prepare this process; it becomes a launcher if several processes share the work.

    Call this before anything imports torch.
    """
    launch.relaunch_with(arguments.processes, threads_of_a_process(arguments))
    launch.keep_freed_memory()
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)


@contextlib.contextmanager
def ending_in_one_line() -> Iterator[None]:
    """Turn an error that a user can mend, or an interruption, into one line and exit.

    There is no traceback, except of an error in the code of an extension, before its line. The
    copies that a launcher starts end with the launcher, in silence.
    """
    if not launch.is_launched():
        launch.raise_when_interrupted()
    try:
        with extensions.errors_in_one_line():
            yield
    except launch.Interrupted as interrupted:
        print(interrupted, file=sys.stderr, flush=True)
        sys.exit(interrupted.status)
    except OutOfMemory as error:
        sys.exit(f"warning: {error}")
    except UserError as error:
        if isinstance(error, extensions.ErrorOfExtension):
            traceback.print_exception(error.__cause__)
        sys.exit(f"error: {error}")
