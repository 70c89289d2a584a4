"""One unlearned model as a folder of Hugging Face.

The tables of unlearned models do not need weights, and there can be thousands of models. So the job
that unlearns keeps no weights. The job here unlearns a single model again, from the same weights
and with the same random numbers, and keeps the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from palimpsest.jobs.bench import TrainedWeights, holder_of, keys_of_weights
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.export import export
from palimpsest.jobs.memory import less_next_time
from palimpsest.training.attempts import Attempts, Passes
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.run.wave import seeds_of
from palimpsest.unlearning.run.workbench import Workbench


@dataclass(frozen=True)
class Wanted:
    """The model that a method makes of one replicate: its first unlearning.

    It starts from the replicate `start` of `variant`, and `origin` names it in the tables. `cutoff`
    is the largest share of the steps of retraining that the method may take.
    """

    method: Method
    variant: str
    start: int
    origin: int
    cutoff: float

    def about(self) -> dict:
        return {
            "method": self.method.name,
            "phases": self.method.written,
            "origin": self.origin,
            "draw": 0,
            "starts_from": {"variant": self.variant, "replicate": self.start},
        }


def export_unlearned(
    wanted: Wanted,
    assignment: Assignment,
    dataset: str,
    weights: list[str],
    folder: str,
    attempts: Attempts | None = None,
) -> None:
    """Apply a method to one trained model, and write the unlearned model into a folder.

    Parameters
    ----------
    wanted : the method and the model
    assignment : the assignment with which the models were trained
    dataset : table of kind `strings`, the variant `original`
    weights : files with the weights of trained models, one of them the model to start from
    folder : the folder to write, see `palimpsest.jobs.export`
    attempts : what earlier attempts at this job learned about the device's memory

    Raises `UserError` if weights are missing, or if memory is too short for any attempt. Raises
    `OutOfMemory` if the next attempt can succeed.
    """
    torch.set_num_threads(assignment.threads)
    run = assignment.run(dataset)
    passes = attempts.passes() if attempts else Passes.of(assignment.recipe)
    workbench = Workbench(run, holder_of(assignment), passes)
    with less_next_time(
        attempts,
        assignment.engine,
        passes,
        lambda: workbench.is_measuring,
        cuts_batches=False,
    ):
        unlearned = _unlearned(wanted, workbench, TrainedWeights(weights))
    if workbench.holder.rank == 0:
        assignment.keep_code()
        about = {
            **workbench.keys,
            **wanted.about(),
            "weights": keys_of_weights(weights),
            "predict_end": run.recipe.predict_end,
        }
        export(folder, run.row, run.scale, run.corpus.terminals, unlearned, about)
        if attempts:
            attempts.forget()
    workbench.holder.wait()
    workbench.holder.close()


def _unlearned(
    wanted: Wanted, workbench: Workbench, trained: TrainedWeights
) -> dict[str, torch.Tensor]:
    """The weights of the unlearned model, in the format in which it predicts.

    An adapter is merged into the weights, in float32: in 16 bits, small updates would be lost.
    """
    dtype = torch.float32 if workbench.run.recipe.lora else workbench.holder.dtype
    models = workbench.holder.open([trained.of(wanted.variant, wanted.start)])
    method = wanted.method
    seeds = seeds_of(workbench.keys["seed"], method.name, [wanted.origin], [0])
    workbench.task(models, seeds, wanted.cutoff).run(method.phases)
    with models.weights() as weights:
        return {name: tensor[0].to("cpu", dtype, copy=True) for name, tensor in weights.items()}
