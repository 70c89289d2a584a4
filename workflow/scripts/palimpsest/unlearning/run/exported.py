"""One unlearned model as a folder of Hugging Face.

The tables of unlearned models do not need weights, and there can be thousands of models. So the job
that unlearns keeps no weights. The job here unlearns a single model again, from the same weights
and with the same random numbers, and keeps the model.
"""

from __future__ import annotations

import torch

from palimpsest.jobs.bench import TrainedWeights
from palimpsest.jobs.query import folder_query
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.run.wave import seeds_of
from palimpsest.unlearning.run.workbench import Workbench


@folder_query(make_bench=Workbench)
def unlearned_model(
    workbench: Workbench,
    trained: TrainedWeights,
    *,
    method: str,
    phases: list[dict],
    variant: str,
    start: int,
    origin: int,
    cutoff: float,
) -> tuple[dict[str, torch.Tensor], dict]:
    """The model that a method makes of one replicate: its first unlearning.

    It starts from the replicate `start` of `variant`, and `origin` names it in the tables. `cutoff`
    is the largest share of the steps of retraining that the method may take.

    The weights are in the format in which the model predicts. An adapter is merged into them in
    float32: in 16 bits, small updates would be lost.
    """
    applied = Method.of(method, phases)
    dtype = torch.float32 if workbench.run.recipe.lora else workbench.holder.dtype
    models = workbench.holder.open([trained.of(variant, start)])
    seeds = seeds_of(workbench.keys["seed"], method, [origin], [0])
    workbench.task(models, seeds, cutoff).run(applied.phases)
    with models.weights() as weights:
        unlearned = {
            name: tensor[0].to("cpu", dtype, copy=True) for name, tensor in weights.items()
        }
    about = {
        "method": method,
        "phases": applied.written,
        "origin": origin,
        "unlearning_replicate": 0,
        "starts_from": {"variant": variant, "replicate": start},
    }
    return unlearned, about
