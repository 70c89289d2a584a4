"""The command line that all jobs share: the model, its data, the engine, the machine, the recipe.

A job is a command that a rule with `shell:` runs. A script makes the parser here, adds the flags
of its own work, and hands that work to `supervise`.
"""

import argparse
import contextlib
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from palimpsest import launch
from palimpsest.code_archive import keep_code
from palimpsest.corpora import Corpus, read_corpus
from palimpsest.errors import OutOfMemory, UserError
from palimpsest.models import Model, read_models, resolve
from palimpsest.training.recipe import Recipe, add_flags

if TYPE_CHECKING:
    from palimpsest.training.runs import Run


def parser(description: str) -> argparse.ArgumentParser:
    """A parser with the flags of every job."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--model", required=True, help="a name of the table of models, or its twin")
    made.add_argument("--models", required=True, help="the table of models (TSV)")
    made.add_argument("--corpus", required=True, help="file of a grammar (.pcfg) or a text (.txt)")
    made.add_argument("--engine", required=True, choices=["deepspeed", "fleet"], help="engine")
    made.add_argument("--memory-mb", type=int, default=8000, help="memory that a fleet may use")
    made.add_argument("--state", required=True, help="folder for what is not finished")
    made.add_argument("--gpus", type=int, default=0, help="GPUs to wait for; 0: use the CPU")
    made.add_argument("--processes", type=int, default=1, help="processes that share one model")
    made.add_argument("--threads", type=int, default=1, help="CPU threads of all processes")
    add_flags(made)
    return made


def parsed(made: argparse.ArgumentParser) -> argparse.Namespace:
    """The flags of this process; ends with one line if they contradict each other."""
    arguments = made.parse_args()
    if arguments.engine == "fleet" and arguments.processes > 1:
        made.error("--processes: a fleet is one process; give it --threads")
    if 0 < arguments.gpus < arguments.processes:
        raise UserError(
            f"training/processes: a run of {arguments.model} takes {arguments.processes} GPUs, and "
            f"the job has {arguments.gpus}; set it to at most as many as one machine has"
        )
    return arguments


@dataclass(frozen=True)
class Assignment:
    """What every job is told, whatever it does.

    `model` is a name of the table of models in the file `models`, `corpus` a corpus' file and
    `state` the folder for what is not finished. `threads` are those of one process, `memory` the
    bytes that a fleet may use.
    """

    model: str
    models: str
    corpus: str
    recipe: Recipe
    engine: str
    state: str
    threads: int = 1
    memory: int = 2**33

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> "Assignment":
        """The assignment that the flags of a command give."""
        return cls(
            model=arguments.model,
            models=arguments.models,
            corpus=arguments.corpus,
            recipe=Recipe(
                **{field.name: getattr(arguments, field.name) for field in fields(Recipe)}
            ),
            engine=arguments.engine,
            state=arguments.state,
            threads=threads_of_a_process(arguments),
            memory=arguments.memory_mb * 2**20,
        )

    def keep_code(self) -> None:
        """Keep the code that runs beside the state, for the manifests that will name it."""
        keep_code(Path(self.state).with_name("code"))

    def run(self, dataset: str) -> "Run":
        """The model on a dataset.

        Raises `UserError` if the table of models does not know the model, or the corpus is wrong.
        """
        # Imported here: it imports torch, which must not happen before `begin`.
        from palimpsest.training.runs import Run

        row, scale = self._row_and_scale
        return Run(self.model, row, scale, self._corpus, dataset, self.recipe)

    @cached_property
    def _row_and_scale(self) -> tuple[Model, str]:
        return resolve(self.model, read_models(self.models))

    @cached_property
    def _corpus(self) -> Corpus:
        return read_corpus(self.corpus)


def threads_of_a_process(arguments: argparse.Namespace) -> int:
    """CPU threads of each of the processes that share a model."""
    return max(1, arguments.threads // arguments.processes)


def begin(arguments: argparse.Namespace) -> None:
    """Make this process ready to work; it becomes a launcher if several are to share the work.

    To be called before anything imports torch.
    """
    launch.relaunch_with(arguments.processes, threads_of_a_process(arguments))
    launch.keep_freed_memory()
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)


@contextlib.contextmanager
def ending_in_one_line() -> Iterator[None]:
    """End the process with one line, without a traceback, for errors that a user can mend."""
    try:
        yield
    except OutOfMemory as error:
        sys.exit(f"warning: {error}")
    except UserError as error:
        sys.exit(f"error: {error}")
